"""A topic of very many records with binary keys: a search is bounded in time and memory, says how far it is, goes on
where it ended, and ends when nobody waits for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.console.records.query import Query, parse_query
from ottla.console.records.searching import EVERYTHING, Search
from ottla.testing import Broker
from tests.console.running import RunningConsole, Visitor
from tests.console.test_pages import until

PARTITIONS = 4
NEEDLE = b'{"needle": true, "note": "here it is"}'
# What a search may take beside the answers of two fetches: columns of a piece, and matches that are kept.
_MEMORY_BYTES_MAX = 400 * 1024 * 1024


@pytest.fixture(
    scope="module",
    params=[60_000, pytest.param(10_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])],
    ids=["some", "ten million"],
)
def large(request: pytest.FixtureRequest, broker: Broker) -> tuple[str, int]:
    """Its name, and how many records it has."""
    name, count = f"large-{request.param}", int(request.param)
    broker.create_topic(name, PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
        }
    )
    keys = [bytes((255, number & 255, 0, 128)) for number in range(256)]
    values = [json.dumps({"n": number, "note": "nothing to see"}).encode() for number in range(256)]
    for number in range(count):
        value = NEEDLE if number == count // 3 else values[number & 255]
        while True:
            try:
                producer.produce(name, value, keys[number & 255], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0
    return name, count


def peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say how much memory was used")


def test_one_record_among_all_is_found_turn_by_turn_in_bounded_memory(broker: Broker, large: tuple[str, int]) -> None:
    topic, count = large
    given = {"where": "value.needle == true", "limit": "500"}
    found, searched, turns = [], 0, 0
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_bytes()
    with ClusterReader(ClientSettings(bootstrap_servers=broker.bootstrap_servers)) as reader:
        query = parse_query(topic, given)
        while True:
            turns += 1
            search = Search(reader, query, None, seconds_max=20.0)
            found += [record for some in search.rounds() for record in some]
            progress = search.progress
            assert progress.searched > 0 and progress.ended in (EVERYTHING, "time")
            searched += progress.searched
            if progress.ended == EVERYTHING:
                break
            positions = ",".join(f"{number}:{offset}" for number, offset in progress.positions.items())
            query = parse_query(topic, {**given, "from": "next", "positions": positions, "back": "1"})
    assert [record.value for record in found] == [NEEDLE] and searched == count
    assert peak_bytes() - before < _MEMORY_BYTES_MAX


def test_a_condition_that_no_bytes_can_be_looked_up_for_is_bounded_as_well(
    broker: Broker, large: tuple[str, int]
) -> None:
    topic, _ = large
    with ClusterReader(ClientSettings(bootstrap_servers=broker.bootstrap_servers)) as reader:
        search = Search(reader, Query(topic, where="len(key) != 4", limit=50), None, seconds_max=0.5)
        assert [record for some in search.rounds() for record in some] == []
        told = search.progress
    assert told.ended in (EVERYTHING, "time") and 0 < told.searched <= told.total


def test_a_page_that_is_closed_ends_its_search_and_binary_keys_are_shown(
    broker: Broker, large: tuple[str, int]
) -> None:
    topic, _ = large
    with RunningConsole(broker.bootstrap_servers) as running:
        visitor: Visitor = running.visitor()
        rows = visitor.events(f"/topics/{topic}/records/stream?limit=50", until=lambda kind: kind == "rows")
        assert "ff " in rows[-1][1] and 'class="value hex"' in rows[-1][1]
        path = httpx.URL(f"/topics/{topic}/records/stream", params={"where": "len(key) != 4"})
        told = visitor.events(str(path), until=lambda kind: kind == "progress")[-1][1]
        assert json.loads(told)["total"] > json.loads(told)["searched"] > 0
        until(lambda: not any(thread.name == "console-search" for thread in threading.enumerate()))
