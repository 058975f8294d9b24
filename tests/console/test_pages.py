"""Pages over HTTP, on a real broker: what they show, change and refuse."""

from __future__ import annotations

import html
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.common.passwords import hashed
from ottla.console.web.navigation import NAVIGATION
from ottla.console.web.streaming import SEARCHES_MAX, searches
from ottla.testing import Broker
from ottla.testing.security import Security
from tests.console.running import RunningConsole, Visitor

PAGES = [entry.path for _, entries in NAVIGATION for entry in entries]
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def create(broker: Broker, topic: str, partitions: int = 1) -> None:
    broker.create_topic(topic, partitions)


def found(visitor: Visitor, topic: str, **query: str) -> tuple[str, dict[str, object]]:
    """The rows of a search as HTML, and what it says at its end."""
    events = visitor.events(str(httpx.URL(f"/topics/{topic}/records/stream", params=query)))
    kind, data = events[-1]
    assert kind == "done", events
    return "".join(data for kind, data in events if kind == "rows"), json.loads(data)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_and_forbids_what_is_not_its_own(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 200, answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY" and answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in answer.text and " style=" not in answer.text and " onclick=" not in answer.text
    assert "http://" not in answer.text.replace("http://127.0.0.1", "").replace("http://www.w3.org", "")


def test_a_page_that_is_not_there_says_so(visitor: Visitor) -> None:
    for path in (
        "/nowhere",
        "/topics/nope",
        "/groups/nope",
        "/brokers/99",
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
    ):
        assert visitor.get(path).status_code == 404, path


def test_a_topic_is_created_changed_grown_trimmed_and_deleted(broker: Broker, visitor: Visitor, topic: str) -> None:
    made = visitor.post("/topics", {"name": topic, "partitions": "2", "settings": "retention.ms=86400000"})
    assert f"Topic {topic} is there." in made.text
    assert "86400000" in visitor.get(f"/topics/{topic}/settings").text
    visitor.post(f"/topics/{topic}/settings", {"setting": "retention.ms", "value": "3600000"})
    assert "3600000" in visitor.get(f"/topics/{topic}/settings").text
    refused = visitor.post(f"/topics/{topic}/settings", {"setting": "retention.ms", "value": "soon"})
    assert "retention.ms" in refused.text and "notice bad" in refused.text
    assert "has 3 partitions" in visitor.post(f"/topics/{topic}/grow", {"count": "3"}).text
    broker.produce(topic, b"v", partition=0)
    broker.produce(topic, b"w", partition=0)
    visitor.post(f"/topics/{topic}/trim", {"before": "offset", "at": "1", "confirm": topic})
    assert found(visitor, topic)[1]["matches"] == 1
    assert "nothing was deleted" in visitor.post(f"/topics/{topic}/delete", {"confirm": "other"}).text
    visitor.post(f"/topics/{topic}/delete", {"confirm": topic})
    assert visitor.get(f"/topics/{topic}").status_code == 404


@pytest.mark.parametrize("name", ["..", "a b", "", "x" * 250, EVIL])
def test_a_name_that_no_topic_can_have_is_refused_in_a_sentence(visitor: Visitor, name: str) -> None:
    answer = visitor.post("/topics", {"name": name})
    assert "is not a topic name" in answer.text and "<script>" not in answer.text


def test_records_that_are_html_and_script_stay_text(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    broker.produce(topic, EVIL.encode(), key=EVIL.encode(), headers={EVIL: EVIL})
    rows, _ = found(visitor, topic)
    page = visitor.get(f"/topics/{topic}/records/0/0").text
    for shown in (rows, page):
        assert "<script>alert" not in shown and "<img src=x" not in shown
        assert EVIL in html.unescape(shown)
    query = visitor.get(f"/topics/{topic}/records", params={"where": EVIL, "text": EVIL, "at": EVIL, "as": EVIL})
    assert "<script>alert" not in query.text and "<img src=x" not in query.text
    for path in ("/topics", "/groups", "/access", "/partitions", "/audit", "/find"):
        assert "<script>alert" not in visitor.get(path, params={"q": EVIL, "sort": EVIL, "page": EVIL}).text


def test_a_filter_finds_exactly_what_it_should_and_says_how_far_it_searched(
    broker: Broker, visitor: Visitor, topic: str
) -> None:
    create(broker, topic, 3)
    for partition in range(3):
        values = [json.dumps({"n": n, "user": f"u{n % 7}"}).encode() for n in range(partition, 3_000, 3)]
        broker.produce(topic, *values, partition=partition)
    rows, end = found(visitor, topic, where='value.n >= 2990 and value.user != "u1"', limit="500")
    wanted = [n for n in range(2_990, 3_000) if n % 7 != 1]
    assert end["matches"] == len(wanted) and rows.count("<tr>") == len(wanted)
    assert end["records"] == end["total"] == end["searched"] == 3_000 and end["ended"] == "everything"
    _, one = found(visitor, topic, text='"n": 77,', **{"from": "start"})
    assert one["matches"] == 1
    _, few = found(visitor, topic, partition="1", where="value.n < 100", **{"from": "start"})
    assert few["matches"] == 33


@pytest.mark.parametrize("origin", ["start", "end"])
def test_going_on_from_page_to_page_shows_each_record_once(
    broker: Broker, visitor: Visitor, topic: str, origin: str
) -> None:
    create(broker, topic, 3)
    for partition, count in enumerate((300, 75, 25)):
        # Times that do not grow with offsets: half of them are older than those before.
        half = [str(number).encode() for number in range(count)]
        broker.produce(topic, *half[: count // 2], partition=partition)
        broker.produce(topic, *half[count // 2 :], partition=partition, timestamp_ms=1_700_000_000_000 + partition)
    seen: list[tuple[int, int]] = []
    query = {"from": origin, "limit": "37", "where": 'value !~ "9$"'}
    for _ in range(30):
        rows, end = found(visitor, topic, **query)
        pieces = rows.split(f"/topics/{topic}/records/")[1:]
        seen += [tuple(map(int, piece.split('"')[0].split("/"))) for piece in pieces]  # type: ignore[misc]
        if end["ended"] == "everything":
            break
        query = dict(httpx.QueryParams(str(end["next"])))
    assert len(seen) == len(set(seen)) == sum(not str(n).endswith("9") for count in (300, 75, 25) for n in range(count))
    for partition in range(3):
        offsets = [offset for number, offset in seen if number == partition]
        assert offsets == sorted(offsets, reverse=origin == "end")


def test_a_condition_that_is_wrong_is_explained_on_the_page(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    page = visitor.get(f"/topics/{topic}/records", params={"where": "amount > 5"})
    assert "no field" in page.text and "data-stream" not in page.text
    assert visitor.events(f"/topics/{topic}/records/stream?where=amount")[-1][0] == "trouble"
    # Python's own regular expressions would take for ever.
    _, end = found(visitor, topic, where='value =~ "(a+)+$"')
    assert end["ended"] == "everything"


def test_the_tail_shows_what_is_written_now(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    broker.produce(topic, b"before")
    wrote = False

    def enough(kind: str) -> bool:
        nonlocal wrote
        if kind == "progress" and not wrote:
            wrote = True
            broker.produce(topic, b"now")
        return kind == "rows"

    events = visitor.events(f"/topics/{topic}/records/stream?tail=1", enough)
    assert "now" in events[-1][1] and "before" not in events[-1][1]


def test_a_download_has_every_record_as_a_line(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    broker.produce(topic, b'{"a": 1}', key=b"\xff")
    broker.produce(topic, None, key=b"gone")
    answer = visitor.get(f"/topics/{topic}/records.ndjson?from=start")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["value"] for line in lines] == [{"a": 1}, None]
    assert lines[0]["key"] == {"hex": "ff"} and "attachment" in answer.headers["content-disposition"]


def test_downloads_that_wait_for_their_turn_keep_nobody_waiting(
    broker: Broker, console: RunningConsole, visitor: Visitor, topic: str
) -> None:
    create(broker, topic)
    for _ in range(SEARCHES_MAX):
        assert searches.acquire(timeout=60)
    waiting = []
    try:
        address = urlsplit(console.url)
        for _ in range(50):
            waiting.append(socket.create_connection((address.hostname, address.port)))
            waiting[-1].sendall(f"GET /topics/{topic}/records.ndjson HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for one in waiting:
            assert one.recv(12) == b"HTTP/1.1 200"
        # Less than they wait.
        assert visitor.get("/topics", timeout=30).status_code == 200
    finally:
        for one in waiting:
            one.close()
        for _ in range(SEARCHES_MAX):
            searches.release()


def test_a_record_with_half_a_character_is_shown(broker: Broker, visitor: Visitor, topic: str) -> None:
    """JSON can name a surrogate that no text can have; it once made a page of the record impossible."""
    create(broker, topic)
    broker.produce(topic, b'{"name": "\\ud800 it is"}')
    page = visitor.get(f"/topics/{topic}/records/0/0")
    assert page.status_code == 200 and "it is" in page.text
    assert "it is" in visitor.get(f"/topics/{topic}/records.ndjson?from=start").text


def test_a_record_is_produced_and_shown(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    fields = {"key": "k", "value": '{"a": 1}', "encoding": "json", "headers": "region: eu"}
    page = visitor.post(f"/topics/{topic}/produce", fields)
    assert f"in {topic}-0 at offset 0" in page.text and "region" in page.text
    assert "is not JSON" in visitor.post(f"/topics/{topic}/produce", {"value": "{", "encoding": "json"}).text
    visitor.post(f"/topics/{topic}/produce", {"value": "00 ff", "encoding": "hex"})
    assert "00 ff" in visitor.get(f"/topics/{topic}/records/0/1").text


def committed(broker: Broker, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_offsets_move_after_the_plan_was_seen_and_the_lag_follows(
    broker: Broker, console: RunningConsole, visitor: Visitor, topic: str
) -> None:
    create(broker, topic)
    broker.produce(topic, *(str(number).encode() for number in range(10)))
    group = f"g-{topic}"
    committed(broker, group, topic, 8)
    plan = visitor.get(f"/groups/{group}/offsets?to=offset&at=3")
    assert "-5" in plan.text
    move = plan.text.split('name="move" value="')[1].split('"')[0]
    committed(broker, group, topic, 9)
    late = visitor.post(f"/groups/{group}/offsets", {"move": move})
    assert "has committed since" in late.text
    plan = visitor.get(f"/groups/{group}/offsets?to=shift&at=-9")
    move = plan.text.split('name="move" value="')[1].split('"')[0]
    done = visitor.post(f"/groups/{group}/offsets", {"move": move})
    assert "is moved in 1 partition." in done.text
    assert console.console.seen().groups[group].lag == 10
    committed(broker, group, topic, 10)
    until(lambda: console.console.seen().groups[group].lag == 0)
    assert "are deleted" in visitor.post(f"/groups/{group}/delete", {"confirm": group}).text


def test_a_group_with_members_is_not_moved(broker: Broker, visitor: Visitor, topic: str) -> None:
    create(broker, topic)
    broker.produce(topic, b"x")
    group = f"g-{topic}"
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.2) is not None)
    answer = visitor.post(f"/groups/{group}/offsets", {"move": f"0:0::{topic}"})
    assert "stop its consumers first" in answer.text
    assert consumer.memberid() in visitor.get(f"/groups/{group}").text
    consumer.close()


def test_a_page_that_refreshes_itself_takes_no_notice_away(visitor: Visitor, topic: str) -> None:
    """Another tab, or the page that was sent, asks every few seconds: the sentence was gone before its page came."""
    visitor.http.post("/topics", data={"_csrf": visitor.token(), "name": topic})
    assert f"Topic {topic} is there." not in visitor.get("/groups", headers={"x-refresh": "1"}).text
    assert f"Topic {topic} is there." in visitor.get(f"/topics/{topic}").text


# --- attacks


def test_a_change_without_the_token_of_the_page_changes_nothing(visitor: Visitor, topic: str) -> None:
    for token in ("", "x", "é"):
        answer = visitor.post("/topics", {"name": topic}, token=token)
        assert answer.status_code == 403 and "Nothing was changed" in answer.text
    assert visitor.get(f"/topics/{topic}").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example.com"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "null"},
    ],
)
def test_a_change_from_another_site_is_refused(visitor: Visitor, topic: str, headers: dict[str, str]) -> None:
    data = {"_csrf": visitor.token(), "name": topic}
    assert visitor.http.post("/topics", data=data, headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_to_a_page_and_not_let_it_work_for_them(visitor: Visitor, topic: str, site: str) -> None:
    """An image of another site that is a search, or a picture that takes a process to draw, costs only us."""
    hidden = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    framed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    linked = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for path in (f"/topics/{topic}/records.ndjson", "/pipelines/x/topology.svg", "/topics"):
        assert visitor.http.get(path, headers=hidden).status_code == 403
        assert visitor.http.get(path, headers=framed).status_code == 403
    assert visitor.http.get("/topics", headers=linked).status_code == 200


def test_another_name_in_the_host_header_is_not_answered(visitor: Visitor) -> None:
    answer = visitor.http.get("/topics", headers={"host": "evil.example.com"})
    assert answer.status_code == 421 and "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "back", ["//evil.example.com", "https://evil.example.com", "/\\evil.example.com", "javascript:alert(1)"]
)
def test_nobody_is_sent_to_another_site(visitor: Visitor, back: str) -> None:
    answer = visitor.http.post("/topics", params={"back": back}, data={"_csrf": visitor.token(), "name": ""})
    assert answer.status_code == 303 and answer.headers["location"] == "/"


def test_odd_paths_and_parameters_do_no_harm(visitor: Visitor) -> None:
    for path in (
        "/topics/%0d%0aset-cookie:x=y",
        "/topics/a%2fb/records",
        "/topics/%00",
        "/topics/x/records/0/99999999999999999999",
        "/find?q=%0d%0ax:y",
        "/find?q=" + "9" * 5000,
        "/topics?page=99999999999999999&sort=__class__",
        "/schemas/x?version=" + "9" * 3000,
    ):
        answer = visitor.http.get(path)
        assert answer.status_code in (200, 303, 404, 502), (path, answer.status_code)
        assert "x" not in answer.cookies


def test_a_form_that_is_too_long_is_refused(visitor: Visitor) -> None:
    token = visitor.token()
    answer = visitor.http.post("/topics", content=b"_csrf=" + token.encode() + b"&name=" + b"x" * 13_000_000)
    assert answer.status_code == 413


# --- who may what


def test_a_console_that_is_read_only_refuses_every_change(broker: Broker, topic: str) -> None:
    with RunningConsole(broker.bootstrap_servers, is_read_only=True) as running:
        visitor = running.visitor()
        assert "disabled" in visitor.get("/topics?new=1").text
        answer = visitor.post("/topics", {"name": topic})
        assert answer.status_code == 403 and "read-only" in answer.text
        assert "read-only" in visitor.get("/audit").text


def test_users_of_a_file_log_in_and_have_their_rights(broker: Broker, topic: str, tmp_path: Path) -> None:
    create(broker, topic)
    broker.produce(topic, b'{"card": "4111", "n": 1}')
    users = tmp_path / "users.toml"
    users.write_text(
        f'[users.vera]\npassword = "{hashed("v")}"\nrole = "viewer"\n'
        '[users.adam]\npassword = "a"\nrole = "admin"\nunmask = true\n'
    )
    with RunningConsole(broker.bootstrap_servers, users_file=str(users), masks=(f"{topic}:card",)) as running:
        stranger = running.visitor()
        assert stranger.http.get("/topics").status_code == 303
        assert stranger.http.get("/topics", headers={"accept": "*/*"}).status_code == 401
        assert stranger.http.get(f"/topics/{topic}/records/stream", headers={"accept": "*/*"}).status_code == 401
        vera, adam = running.visitor(), running.visitor()
        assert "wrong" in vera.post("/login", {"user": "vera", "password": "x"}).text
        before = dict(vera.http.cookies)
        logged_in = vera.post("/login", {"user": "vera", "password": "v", "to": "/groups"})
        assert logged_in.url.path == "/groups" and dict(vera.http.cookies) != before
        cookie = next(one for one in logged_in.history if "set-cookie" in one.headers).headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
        answer = vera.post(f"/topics/{topic}/delete", {"confirm": topic})
        assert answer.status_code == 403 and "viewer" in answer.text and "admin" in answer.text
        rows, _ = found(vera, topic)
        assert "4111" not in rows and "•••" in rows
        # Before anybody has logged in nobody has much to say.
        too_long = {"user": "x" * 100_000, "password": "x"}
        assert running.visitor().post("/login", too_long).status_code == 413
        assert found(vera, topic, where='value.card == "4111"')[1]["matches"] == 0
        assert found(vera, topic, text="4111")[1]["matches"] == 0
        assert "4111" not in vera.get(f"/topics/{topic}/records.ndjson").text
        assert "4111" not in vera.get(f"/topics/{topic}/records/0/0?as=hex").text
        adam.post("/login", {"user": "adam", "password": "a"})
        assert "4111" in found(adam, topic)[0]
        assert "is deleted" in adam.post(f"/topics/{topic}/delete", {"confirm": topic}).text
        vera.post("/logout")
        assert vera.http.get("/topics").status_code == 303
        for _ in range(6):
            last = vera.post("/login", {"user": "adam", "password": "no"})
        assert last.status_code == 429 and "Too many" in last.text


def test_passwords_that_are_guessed_side_by_side_are_judged_five_times(broker: Broker, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[users.vera]\npassword = "{hashed("v")}"\n')
    with RunningConsole(broker.bootstrap_servers, users_file=str(users)) as running:
        tokens = [(one := running.visitor(), one.token()) for _ in range(12)]

        def guess(given: tuple[Visitor, str]) -> int:
            visitor, token = given
            return visitor.post("/login", {"user": "vera", "password": "no"}, token=token).status_code

        with ThreadPoolExecutor(len(tokens)) as guessers:
            answers = Counter(guessers.map(guess, tokens))
    assert answers == {401: 5, 429: 7}


def test_users_of_the_cluster_act_in_their_own_name(topic: str) -> None:
    security = Security("SASL_PLAINTEXT", users={"admin": "admin-secret", "ben": "ben-secret"}, acls=True)
    with Broker(security=security) as secured:
        client = {key: str(value) for key, value in secured.client_settings("admin").items()}
        bootstrap = client.pop("bootstrap.servers")
        with RunningConsole(bootstrap, client=client, has_sasl_login=True) as running:
            ben, admin = running.visitor(), running.visitor()
            assert "wrong" in ben.post("/login", {"user": "ben", "password": "guess"}).text
            ben.post("/login", {"user": "ben", "password": "ben-secret"})
            admin.post("/login", {"user": "admin", "password": "admin-secret"})
            refused = ben.post("/topics", {"name": topic})
            assert "AUTHORIZATION" in refused.text or "not" in refused.text
            assert topic not in running.console.seen().topics
            assert "is there" in admin.post("/topics", {"name": topic}).text
            assert ben.post("/schemas", {"subject": "x"}).status_code == 403


# --- a cluster that goes away


def test_a_cluster_that_is_away_is_told_to_those_who_log_in_there() -> None:
    with RunningConsole("127.0.0.1:1", has_sasl_login=True) as running:
        visitor = running.visitor()
        for _ in range(6):  # and nobody is kept out for passwords that were never looked at
            answer = visitor.post("/login", {"user": "anna", "password": "a"})
            assert answer.status_code == 503 and "cannot be asked" in answer.text


def test_pages_say_that_the_cluster_is_gone_and_come_back(tmp_path: Path) -> None:
    first = Broker(data_dir=tmp_path / "data").start()
    port = first.bootstrap_servers.rpartition(":")[2]
    with RunningConsole(first.bootstrap_servers) as running:
        visitor = running.visitor()
        assert "does not answer</strong> since" not in visitor.get("/").text
        first.stop()
        until(lambda: running.console.collector.problem is not None)
        page = visitor.get("/")
        assert page.status_code == 200 and "does not answer</strong> since" in page.text
        second = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}, data_dir=tmp_path / "data").start()
        try:
            until(lambda: running.console.collector.problem is None)
            assert "does not answer</strong> since" not in visitor.get("/").text
        finally:
            second.stop()


def test_a_console_without_any_cluster_starts_and_says_so() -> None:
    with RunningConsole("127.0.0.1:1") as running:
        answer = running.visitor().get("/topics")
        assert answer.status_code == 503 and "cannot reach any broker" in answer.text
