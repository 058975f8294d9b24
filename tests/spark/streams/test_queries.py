"""Stores of an application are read from outside: what is committed in their changelogs, in the process and by HTTP."""

from __future__ import annotations

import json
import math
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import confluent_kafka
import pytest

from ottla.common.errors import OttlaError
from ottla.exposition.protection import protection
from ottla.streams import StreamsBuilder, TimeWindows, Topology, ValueAndTimestamp, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.queries import StoreReader
from ottla.streams.engine.query_http import serving_queries
from ottla.testing import Broker
from tests.spark import topics


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def words(source: str) -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    grouped = builder.stream(source).group_by_key()
    grouped.count(store="counts")
    grouped.windowed_by(TimeWindows.of(10)).count(store="windows")
    return builder.build()


class Changes:
    """Batches of the application, as its changelogs have them."""

    def __init__(self, servers: str, application_id: str) -> None:
        self._id = application_id
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "transactional.id": application_id, "linger.ms": 0}
        )
        self._producer.init_transactions(10)

    def write(
        self, *changes: tuple[str, bytes, int | bytes | None, int], partition: int = 0, commits: bool = True
    ) -> None:
        self._producer.begin_transaction()
        for store, key, count, time_ms in changes:
            value = serdes.integer.serialize("", count) if isinstance(count, int) else count
            log = f"{self._id}-{store}-changelog"
            self._producer.produce(log, value, key, partition=partition, timestamp=time_ms)
        self._producer.flush(10)
        (self._producer.commit_transaction if commits else self._producer.abort_transaction)(10)


@pytest.fixture
def application(servers: str) -> Iterator[tuple[Topology, StoreReader, Changes]]:
    source = topics.create(servers, 2)
    topology = words(source)
    name = f"queried-{source}"
    StreamsApplication(topology, application_id=name, bootstrap=servers).prepare()
    changes = Changes(servers, name)
    changes.write(("counts", b"to", 2, 7), ("windows", b"to" + struct.pack(">q", 10), 5, 12))
    changes.write(("counts", b"be", 1, 8), partition=1)
    changes.write(("counts", b"to", 77, 9), commits=False)
    with StoreReader(topology, name, servers) as reader:
        yield topology, reader, changes


def test_a_store_is_read_as_it_is_committed_over_all_partitions(
    application: tuple[Topology, StoreReader, Changes],
) -> None:
    _, reader, changes = application
    counts = reader.store("counts")
    assert counts.get("to") == ValueAndTimestamp(2, 7)
    assert counts.get("nobody") is None
    assert [(key, found.value) for key, found in counts.all()] == [("be", 1), ("to", 2)]
    assert [key for key, _ in counts.range("be", "bz")] == ["be"]
    before = counts.as_of_ms
    changes.write(("counts", b"be", None, 9), ("counts", b"or", 1, 9), partition=1)
    assert [key for key, _ in counts.all()] == ["or", "to"]
    assert counts.as_of_ms >= before > 0
    assert reader.store("windows").fetch("to", 10) == 5
    with pytest.raises(AttributeError, match="only read from outside"):
        counts.put("to", 3)
    with pytest.raises(OttlaError, match="there is no store 'x'"):
        reader.store("x")


def asked(server: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(server + path) as answer:
            return answer.status, json.load(answer, parse_constant=pytest.fail)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_stores_are_read_over_http(application: tuple[Topology, StoreReader, Changes]) -> None:
    topology, reader, _ = application
    with serving_queries(topology, reader, "127.0.0.1:0") as server:
        assert asked(server, "/stores") == (200, {"counts": "timestamped key-value", "windows": "window"})
        status, one = asked(server, "/stores/counts/to")
        assert (status, one["value"], one["timestamp_ms"]) == (200, 2, 7) and one["as_of_ms"] > 0
        _, part = asked(server, "/stores/counts?limit=1")
        assert [entry["key"] for entry in part["entries"]] == ["be"] and part["has_more"]
        assert asked(server, "/stores/windows/to?from_ms=5")[1]["windows"] == [{"start_ms": 10, "value": 5}]
        assert [entry["key"]["key"] for entry in asked(server, "/stores/windows?from_ms=5")[1]["entries"]] == ["to"]
        assert asked(server, "/stores/windows?from_ms=11")[1]["entries"] == []
        assert asked(server, "/stores/counts/nobody")[0] == 404
        assert asked(server, "/stores/nothing")[0] == 404
        assert asked(server, "/stores/counts?limit=many")[0] == 400


@dataclass
class Seat:
    row: int
    letter: str


def kinds(source: str, table: str) -> Topology:
    """Stores whose keys and values are not all that JSON can say."""
    builder = StreamsBuilder(value=serdes.double)
    records = builder.stream(source, key=serdes.raw)
    records.group_by_key().reduce(lambda before, after: after, store="raw")
    records.group_by(lambda key, value: 1, key=serdes.integer).reduce(lambda before, after: after, store="numbers")
    records.group_by(lambda key, value: Seat(1, "a"), key=serdes.of(Seat)).reduce(lambda a, b: b, store="seats")
    builder.table(table, key=serdes.string, history=1_000, store="history")
    return builder.build()


def test_questions_that_make_no_sense_are_answered_with_a_sentence(servers: str) -> None:
    source = topics.create(servers, 1)
    topology, name = kinds(source, topics.create(servers, 1)), f"kinds-{source}"
    StreamsApplication(topology, application_id=name, bootstrap=servers).prepare()
    changes = Changes(servers, name)
    not_a_number = serdes.double.serialize("", math.nan)
    changes.write(("raw", b"\xff/\xfb", not_a_number, 1), ("numbers", serdes.integer.serialize("", 7), not_a_number, 2))
    changes.write(("seats", serdes.of(Seat).serialize("", Seat(3, "c")), serdes.double.serialize("", 2.5), 3))
    with StoreReader(topology, name, servers) as reader, serving_queries(topology, reader, "127.0.0.1:0") as server:
        ((shown,), (seat,)) = (asked(server, f"/stores/{each}")[1]["entries"] for each in ("raw", "seats"))
        assert shown["value"] == "nan"
        assert asked(server, f"/stores/raw/{shown['key']}")[1]["timestamp_ms"] == 1  # with a slash and a plus
        assert asked(server, f"/stores/seats/{quote(json.dumps(seat['key']))}")[1]["value"] == 2.5
        assert asked(server, "/stores/numbers/7")[1]["timestamp_ms"] == 2
        assert asked(server, "/stores/history/a") == (404, {"error": "the store 'history' has no such key"})
        for question in (
            "numbers/seven",
            'numbers/"7"',
            "numbers/null",
            "numbers/[]",
            f"numbers/{2**63}",
            f"numbers/{'[' * 10_000}",
            "seats/3",
            "seats/%7B%22row%22:1%7D",
            "raw/%25%25",
            "numbers?from=x",
            "history",
            f"numbers?limit={'9' * 5_000}",
            "numbers?limit=-1",
        ):
            status, answer = asked(server, f"/stores/{question}")
            assert (status, [*answer]) == (400, ["error"]), question


def test_times_beyond_all_windows_have_none(application: tuple[Topology, StoreReader, Changes]) -> None:
    topology, reader, _ = application
    with serving_queries(topology, reader, "127.0.0.1:0") as server:
        far = f"from_ms={2**63 + 1}&to_ms={2**63 + 2}"
        assert asked(server, f"/stores/windows/to?{far}")[1]["windows"] == []


def test_who_listens_elsewhere_may_ask_for_a_login(
    application: tuple[Topology, StoreReader, Changes], tmp_path: Path
) -> None:
    topology, reader, _ = application
    users = tmp_path / "users.toml"
    users.write_text('[users.ann]\npassword = "secret"\n')
    serving = serving_queries(topology, reader, "127.0.0.1:0", protection(None, None, str(users)))
    with serving as server, pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server}/stores")
