"""The path of a record as a page: what it shows, to whom, and what it refuses."""

from __future__ import annotations

import html
import json
import re
import threading
import time
import uuid
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed
from ottla.console.records.story import _parts, parse_story
from ottla.console.web import streaming
from ottla.testing import Broker
from ottla.testing.security import Security
from tests.console.running import RunningConsole, Visitor

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"
_HOP = re.compile(r'<td class="n"><a href="/topics/([^/"]+)/records/(\d+)/(\d+)">')


@pytest.fixture
def topics(broker: Broker) -> list[str]:
    """Orders, payments and shipments of this test."""
    tag = uuid.uuid4().hex[:6]
    names = [f"{word}-{tag}" for word in ("orders", "payments", "shipments")]
    for name in names:
        broker.create_topic(name, 1)
    return names


def address(topic: str, offset: int = 0, path: str = "/trace/stream", **more: str) -> str:
    return str(httpx.URL(path, params={"topic": topic, "partition": "0", "offset": str(offset), **more}))


def traced(visitor: Visitor, topic: str, offset: int = 0, **more: str) -> str:
    """What the page shows in the end."""
    events = visitor.events(address(topic, offset, **more))
    assert events[-1][0] == "done", events
    return next(data for kind, data in events if kind == "trace")


def refusal(visitor: Visitor, topic: str, offset: int = 0, **more: str) -> str:
    events = visitor.events(address(topic, offset, **more))
    assert [kind for kind, _ in events if kind != "progress"] == ["trouble"], events
    return str(json.loads(events[-1][1])["sentence"])


def hops(shown: str) -> list[tuple[str, int]]:
    table = shown.split('id="hops"')[1].split("</section>")[0]
    return [(topic, int(offset)) for topic, _, offset in _HOP.findall(table)]


def test_a_record_leads_to_its_path_with_times_groups_and_how_far_was_searched(
    broker: Broker, visitor: Visitor, topics: list[str]
) -> None:
    orders, payments, shipments = topics
    now_ms = time.time_ns() // 1_000_000
    broker.produce(orders, b"{}", key=b"o-1", timestamp_ms=now_ms)
    broker.produce(orders, b"{}", key=b"o-2", timestamp_ms=now_ms)
    broker.produce(payments, b'{"order": {"id": "o-1"}}', timestamp_ms=now_ms + 1500)
    broker.produce(shipments, b"parcel", headers={"order": "o-1"}, timestamp_ms=now_ms + 61_500)
    for group, offset in (("has-read", 1), ("has-not", 0)):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{group}-{payments}"})
        consumer.commit(offsets=[TopicPartition(payments, 0, offset)], asynchronous=False)
        consumer.close()
    record = visitor.get(f"/topics/{orders}/records/0/0").text
    assert f"/trace?topic={orders}&amp;partition=0&amp;offset=0" in record
    by = {"by": "key, json:order.id, header:order", "topics": ",".join(topics)}
    page = visitor.get(address(orders, path="/trace", **by))
    stream = html.unescape(page.text.split('data-trace="')[1].split('"')[0])
    shown = next(data for kind, data in visitor.events(stream) if kind == "trace")
    assert hops(shown) == [(orders, 0), (payments, 0), (shipments, 0)]
    assert "+1.5 s" in shown and "+1 min" in shown and "json:order.id" in shown and "header:order" in shown
    readers = shown.split('id="readers"')[1].split("</section>")[0]
    assert readers.index(f"/groups/has-not-{payments}") < readers.index(f"/groups/has-read-{payments}")
    assert ">not yet<" in readers and ">read<" in readers
    assert "3 topics, 4 records" in shown and "All of it." in shown
    drawing = ElementTree.fromstring(shown[shown.index("<svg xmlns") : shown.index("</svg>") + 6])
    assert len([part for part in drawing.iter() if part.tag.endswith("circle")]) == 3
    assert "<style" not in shown and " style=" not in shown
    assert hops(traced(visitor, orders, topics=orders)) == [(orders, 0)]


def test_whatever_records_and_addresses_have_stays_text(broker: Broker, visitor: Visitor, topics: list[str]) -> None:
    orders, *_ = topics
    broker.produce(orders, EVIL.encode(), key=EVIL.encode(), headers={EVIL: EVIL})
    shown = traced(visitor, orders, topics=orders)
    assert "<script" not in shown and "<img" not in shown and EVIL in html.unescape(shown)
    page = visitor.get(str(httpx.URL("/trace", params=dict.fromkeys(("topic", "offset", "by", "window"), EVIL))))
    assert page.status_code == 200 and "<script>alert" not in page.text and "<img" not in page.text.split("<main")[1]
    assert "notice bad" in page.text and "data-trace" not in page.text


def test_a_record_of_any_time_is_shown(broker: Broker, visitor: Visitor, topics: list[str]) -> None:
    orders, *_ = topics
    visitor.post(f"/topics/{orders}/settings", {"setting": "message.timestamp.after.max.ms", "value": str(2**63 - 1)})
    broker.produce(orders, b"v", key=b"k", timestamp_ms=2**62)
    assert hops(traced(visitor, orders, topics=orders)) == [(orders, 0)]


def test_what_cannot_be_traced_is_said_in_a_sentence(broker: Broker, visitor: Visitor, topics: list[str]) -> None:
    orders, *_ = topics
    broker.produce(orders, b"no key")
    assert "neither a key nor a traceparent" in refusal(visitor, orders)
    assert "--by" not in refusal(visitor, orders) + refusal(visitor, orders, by="header:x")
    assert "no record at offset 7" in refusal(visitor, orders, 7)
    assert "there is no partition nowhere-0" in refusal(visitor, "nowhere")
    assert refusal(visitor, EVIL).endswith(".")
    assert "no topic matches 'x-*'" in refusal(visitor, orders, by="lineage", topics="x-*")
    assert "cannot be followed by 'colour'" in refusal(visitor, orders, by="colour")
    assert "say which record" in refusal(visitor, "")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("partition", "-1", "a partition is a whole number"),
        ("partition", "9" * 30, "a partition is a whole number"),
        ("offset", "", "an offset is a whole number"),
        ("offset", "9" * 5000, "an offset is a whole number"),
        ("window", "soon", "a window is a time"),
        ("window", "9" * 5000 + "d", "a window is a time"),
        ("window", "99999d", "ten years"),
        ("by", "json:a[" + "9" * 5000 + "]", "longer than"),
        ("by", "key," * 9, "at most 8"),
        ("by", "json:", "cannot be followed"),
        ("topics", "x" * 300, "longer than"),
    ],
)
def test_an_address_that_is_wrong_says_what(name: str, value: str, why: str) -> None:
    given = {"topic": "t", "partition": "0", "offset": "1", name: value}
    with pytest.raises(OttlaError, match=why):
        parse_story(list(given.items()))


def test_an_address_has_several_criteria_by_commas_or_one_by_one() -> None:
    pairs = [("topic", "t"), ("offset", "3"), ("by", 'key, json:$["a, b"]'), ("by", "header:x"), ("window", "1h30m")]
    story = parse_story(pairs)
    assert story is not None and story.start == ("t", 0, 3)
    assert story.by == ("key", 'json:$["a, b"]', "header:x") and story.window_ms == 5_400_000
    assert parse_story([("offset", "3")]) is None


def test_what_is_masked_neither_shows_nor_finds_anything(broker: Broker, topics: list[str], tmp_path: Path) -> None:
    orders, payments, shipments = topics
    broker.produce(orders, b"bait", key=b"4111", headers={"auth": "s3cret"})
    card = json.dumps({"card": {"number": "4111"}, "order": "o-1", "note": "x" * 5000})
    broker.produce(payments, card.encode(), key=b"pay-1", headers={"auth": "s3cret"})
    broker.produce(shipments, b'{"order": "o-1"}', key=b"4111", headers={"auth": "s3cret"})
    users = tmp_path / "users.toml"
    users.write_text(
        f'[users.vera]\npassword = "{hashed("v")}"\nrole = "viewer"\n'
        f'[users.adam]\npassword = "{hashed("a")}"\nrole = "viewer"\nunmask = true\n'
    )
    masks = (f"{payments}:card.number,headers.auth", f"{shipments}:key")
    every = ",".join(topics)
    with RunningConsole(broker.bootstrap_servers, users_file=str(users), masks=masks) as running:
        stranger = running.visitor()
        assert stranger.http.get(address(orders), headers={"accept": "*/*"}).status_code == 401
        vera, adam = running.visitor(), running.visitor()
        vera.post("/login", {"user": "vera", "password": "v"})
        adam.post("/login", {"user": "adam", "password": "a"})
        assert "hidden from you" in vera.get("/trace").text and "hidden from you" not in adam.get("/trace").text
        # A value that somebody guesses, in a record of their own, under a name that is hidden elsewhere.
        for by in ("key", "key,json:card.number", 'key,json:$["card"]["number"]'):
            assert hops(traced(vera, orders, by=by, topics=every)) == [(orders, 0)]
        assert hops(traced(vera, orders, by="header:auth", topics=every)) == [(orders, 0), (shipments, 0)]
        assert len(hops(traced(adam, orders, by="key,json:card.number", topics=every))) == 3
        # From a record whose field is hidden.
        for by, told in (("json:card.number", "json:card.number"), ("header:auth", "header:auth")):
            sentence = refusal(vera, payments, by=by, topics=every)
            assert f"{told} is hidden from you" in sentence and "4111" not in sentence and "s3cret" not in sentence
        assert "hidden from you" in refusal(vera, shipments, topics=every)
        # What is not hidden still leads there, and shows the rest.
        for start in (payments, shipments):
            shown = traced(vera, start, by="json:order", topics=every)
            assert hops(shown) == [(payments, 0), (shipments, 0)]
            assert "4111" not in shown and "s3cret" not in shown and "•••" in shown and "o-1" in shown
        assert "4111" in traced(adam, payments, by="json:order", topics=every)


def test_users_of_the_cluster_trace_what_they_may_read() -> None:
    security = Security("SASL_PLAINTEXT", users={"admin": "admin-secret", "ben": "ben-secret"}, acls=True)
    with Broker(security=security) as secured:
        secured.create_topic("orders", 1)
        secured.produce("orders", b"v", key=b"k")
        client = {key: str(value) for key, value in secured.client_settings("admin").items()}
        bootstrap = client.pop("bootstrap.servers")
        with RunningConsole(bootstrap, client=client, has_sasl_login=True) as running:
            ben, admin = running.visitor(), running.visitor()
            ben.post("/login", {"user": "ben", "password": "ben-secret"})
            admin.post("/login", {"user": "admin", "password": "admin-secret"})
            assert "does not let this user use topic 'orders'" in refusal(ben, "orders")
            assert hops(traced(admin, "orders")) == [("orders", 0)]


def test_only_so_many_run_at_a_time_and_one_that_nobody_waits_for_ends(
    broker: Broker, visitor: Visitor, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, *_ = topics
    broker.produce(orders, b"v", key=b"k")
    begun, ended = threading.Event(), threading.Event()

    def endless(*args: object, is_cancelled: object, **more: object) -> None:
        begun.set()
        while not is_cancelled():  # type: ignore[operator]
            time.sleep(0.01)
        ended.set()
        raise OttlaError("cancelled.")

    slots = threading.BoundedSemaphore(1)
    monkeypatch.setattr("ottla.console.pages.traces.searches", slots)
    monkeypatch.setattr("ottla.console.pages.traces.trace", endless)
    with visitor.http.stream("GET", address(orders)):
        assert begun.wait(60)
        assert "too many searches" in refusal(Visitor(str(visitor.http.base_url)), orders)
    assert ended.wait(60)
    assert slots.acquire(timeout=60) and streaming.SEARCHES_MAX == 8


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        ("a,b", ["a", "b"]),
        ('$["a, b"],c', ['$["a, b"]', "c"]),
        ('a,$["b,c"].d,$["e"],f', ["a", '$["b,c"].d', '$["e"]', "f"]),
        ("[a,b", ["[a", "b"]),
        # A pattern that looks ahead takes seconds for it, in which no page is served.
        ("," * 60_000, [""] * 60_001),
    ],
)
def test_commas_separate_but_not_in_brackets(text: str, parts: list[str]) -> None:
    assert _parts(text) == parts
