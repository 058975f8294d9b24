"""Stores of an application are read from outside: what is committed in their changelogs, in the process and by HTTP."""

from __future__ import annotations

import json
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from ottla.common.errors import OttlaError
from ottla.streams import StreamsBuilder, TimeWindows, Topology, ValueAndTimestamp, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.queries import StoreReader
from ottla.streams.engine.query_http import QueryServer
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

    def write(self, *changes: tuple[str, bytes, int | None, int], partition: int = 0, commits: bool = True) -> None:
        self._producer.begin_transaction()
        for store, key, count, time_ms in changes:
            value = None if count is None else serdes.integer.serialize("", count)
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


def asked(server: QueryServer, path: str) -> Any:
    try:
        with urllib.request.urlopen(server.address + path) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_stores_are_read_over_http(application: tuple[Topology, StoreReader, Changes]) -> None:
    topology, reader, _ = application
    with QueryServer(topology, reader, "127.0.0.1", 0) as server:
        assert asked(server, "/stores") == (200, {"counts": "timestamped key-value", "windows": "window"})
        status, one = asked(server, "/stores/counts/to")
        assert (status, one["value"], one["timestamp_ms"]) == (200, 2, 7) and one["as_of_ms"] > 0
        _, part = asked(server, "/stores/counts?limit=1")
        assert [entry["key"] for entry in part["entries"]] == ["be"] and part["has_more"]
        assert asked(server, "/stores/windows/to?from_ms=5")[1]["windows"] == [{"start_ms": 10, "value": 5}]
        assert asked(server, "/stores/counts/nobody")[0] == 404
        assert asked(server, "/stores/nothing")[0] == 404
        assert asked(server, "/stores/counts?limit=many")[0] == 400
