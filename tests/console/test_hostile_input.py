"""Every address and every form with what nobody should send: an answer with a sentence, and never a broken page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, TopicPartition
from starlette.routing import Route

from ottla.console.app import build
from ottla.testing import Broker, Connect
from tests.console.running import RunningConsole, Visitor

# 5,000 digits: more than Python reads.
HUGE = "9" * 5_000
NAMES = (
    "..",
    "a/b",
    "<script>alert(1)</script>",
    "a\r\nset-cookie: x=1",
    "\x00",
    "中é",
    "-h",
    "x" * 3_000,
    "%2e%2e%2f",
)
NUMBERS = ("-1", "99999999999", "99999999999999999999", HUGE, "²", "nan")
# Each of them is asked of every address and form; in every run those that are worst.
HOSTILE = [
    pytest.param(value, id=ascii(value)[:24], marks=() if value in ("a/b", NAMES[2], HUGE, "nan") else pytest.mark.slow)
    for value in (*NAMES, *NUMBERS)
]
_FIELD = re.compile(r'<(?:input|textarea|select)[^>]*\bname="([^"]+)"')


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders", 2)
        running.produce("orders", b'{"n": 1}', partition=0)
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "files").mkdir()
    (folder / "files" / "one.sql").write_text("nonsense")
    with (
        Connect(broker.bootstrap_servers, spark=object()) as worker,
        RunningConsole(
            broker.bootstrap_servers,
            connect=(worker.url,),
            pipelines=folder / "data",
            pipeline_files=folder / "files",
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def visitor(console: RunningConsole) -> Visitor:
    return console.visitor()


def _routes(console: RunningConsole) -> list[Route]:
    return [route for route in build(console.console).routes if isinstance(route, Route)]


def _filled(route: Route, with_what: str) -> str:
    """The address with this in the place of each of its parameters."""

    def value(found: re.Match[str]) -> str:
        if found[2] == ":int":
            return with_what if with_what.isascii() and with_what.isdigit() else "0"
        return "orders" if found[1] == "topic" and with_what in NUMBERS else quote(with_what, safe="")

    return re.sub(r"\{(\w+)(:\w+)?\}", value, route.path)


def _answered(visitor: Visitor, method: str, path: str, fields: dict[str, str] | None = None) -> None:
    with visitor.http.stream(method, path, data=fields) as answer:
        where = (method, path[:200], {name: value[:40] for name, value in (fields or {}).items()})
        assert answer.status_code < 500 or answer.status_code in (502, 503), where
        assert "x" not in answer.cookies, where
        if answer.headers.get("content-type", "").startswith("text/html"):
            text = answer.read().decode()
            assert "<script>alert(1)" not in text, where
            assert "The console failed" not in text, where


@pytest.mark.parametrize("value", HOSTILE)
def test_no_address_breaks_a_page(console: RunningConsole, visitor: Visitor, value: str) -> None:
    asked = [
        *(
            "from",
            "offset",
            "at",
            "where",
            "text",
            "limit",
            "partition",
            "positions",
            "as",
            "isolation",
            "page",
            "sort",
        ),
        *("q", "to", "topic", "by", "window", "topics", "name", "worker", "plugin", "back", "new", "group", "version"),
    ]
    query = "&".join(f"{name}={quote(value, safe='')}" for name in asked)
    for route in _routes(console):
        if "GET" not in (route.methods or ()):
            continue
        path = _filled(route, value)
        if len(path) > 8_000:
            path = _filled(route, "0")
        _answered(visitor, "GET", path)
        if len(query) < 30_000:
            _answered(visitor, "GET", f"{path}?{query}")
    for page in ("/topics/orders/records?", "/trace?topic=orders&partition=0&offset=0&", "/topics?"):
        for name in asked:
            _answered(visitor, "GET", f"{page}{name}={quote(value, safe='')}")


@pytest.mark.parametrize("value", HOSTILE)
def test_no_form_breaks_a_page(console: RunningConsole, visitor: Visitor, value: str) -> None:
    token = visitor.token()
    source = "".join(
        path.read_text() for path in (Path(build.__code__.co_filename).parent / "templates").glob("*.html")
    )
    fields = {name: value for name in _FIELD.findall(source) if "{" not in name and name != "_csrf"}
    for route in _routes(console):
        if "POST" not in (route.methods or ()) or route.path == "/logout":
            continue
        path = _filled(route, value if len(value) < 5_000 else "0")
        _answered(visitor, "POST", path, {**fields, "_csrf": token})
        real = path if "{topic}" not in route.path else _filled(route, "0").replace("/topics/0", "/topics/orders")
        _answered(visitor, "POST", real, {**fields, "_csrf": token})
        _answered(visitor, "POST", real, {"_csrf": token})


def test_names_with_a_slash_lead_to_their_pages(broker: Broker, visitor: Visitor, console: RunningConsole) -> None:
    for name in ("team/billing", "100%2Fmore", "a b?c#d", "offsets/"):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": name})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        console.console.collector.look_now()
        link = f"/groups/{quote(name, safe='')}"
        assert link in visitor.get("/groups").text
        for path in (link, f"{link}/offsets?to=end"):
            assert visitor.get(path).status_code == 200, path
        plan = visitor.get(f"{link}/offsets?to=end").text
        found = re.search(r'name="move" value="([^"]+)"', plan)
        assert found is not None, plan
        assert "is moved" in visitor.post(f"{link}/offsets", {"move": found[1]}).text
        assert "are deleted" in visitor.post(f"{link}/delete", {"confirm": name}).text


@pytest.mark.parametrize("at", ["1969-12-31T23:59:59.999+00:00", "-99999w", "0001-01-02"])
def test_a_time_before_all_records_trims_nothing(broker: Broker, visitor: Visitor, at: str) -> None:
    assert "is trimmed" in visitor.post("/topics/orders/trim", {"before": "time", "at": at, "confirm": "orders"}).text
    assert len(broker.records("orders")) >= 1


@pytest.mark.parametrize(
    "fields",
    [
        {"value": "x", "partition": "99999999999"},
        {"value": "[" * 100_000, "encoding": "json"},
        {"value": "[" * 100_000, "encoding": "schema"},
        {"value": "NaN", "encoding": "json"},
        {"value": "{} {}", "encoding": "json"},
        {"value": "f", "encoding": "hex"},
        {"value": "x", "headers": "no colon"},
    ],
    ids=lambda fields: "-".join(fields.values())[:24],
)
def test_a_record_that_cannot_be_written_is_refused_in_a_sentence(visitor: Visitor, fields: dict[str, str]) -> None:
    answer = visitor.post("/topics/orders/produce", fields)
    assert answer.status_code == 200 and "notice bad" in answer.text


def test_json_is_written_as_it_was_typed_without_the_space_around_it(broker: Broker, visitor: Visitor) -> None:
    typed = '{ "big": 1e400, "exact": 1.10,\r\n "twice": 1, "twice": 2, "text": "a  \\" b : , {" }'
    assert "The record is in" in visitor.post("/topics/orders/produce", {"value": typed, "encoding": "json"}).text
    kept = [message.value for message in broker.records("orders")]
    assert b'{"big":1e400,"exact":1.10,"twice":1,"twice":2,"text":"a  \\" b : , {"}' in kept


def test_files_with_names_that_no_page_can_show_hide_no_others(console: RunningConsole, visitor: Visitor) -> None:
    assert console.console.starter is not None
    folder = os.fsencode(console.console.starter.folder)
    for name in (b"\xff.sql", b"two\nlines.sql"):
        with open(os.path.join(folder, name), "wb"):
            pass
    page = visitor.get("/pipelines")
    assert page.status_code == 200 and "one.sql" in page.text and "lines.sql" not in page.text


def test_a_form_that_is_too_long_is_refused_at_logout_as_well(visitor: Visitor) -> None:
    assert visitor.http.post("/logout", data={"x": "y" * 100_000}).status_code == 413
