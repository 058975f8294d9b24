"""A search that is slow: it goes on where it ended, shows each record once, and always comes further."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.where import Record
from ottla.console.records.query import END, NEXT, START, Query
from ottla.console.records.searching import CANCELLED, EVERYTHING, TIME_OVER, Search
from ottla.testing import Broker

RECORDS = 120
_TURNS_MAX = 200


def slowly(pause_s: float) -> Callable[[Record], Record]:
    def view(record: Record) -> Record:
        time.sleep(pause_s)
        return record

    return view


@pytest.mark.parametrize("origin", [END, START])
@pytest.mark.parametrize("text", ["", "x"], ids=["all", "some"])
def test_a_search_whose_first_window_takes_too_long_comes_to_its_end_in_several_turns(
    broker: Broker, topic: str, origin: str, text: str
) -> None:
    broker.create_topic(topic, 2)
    for number in range(2):
        values = [b"x" if n % 3 == 0 else b"-" for n in range(RECORDS // 2)]
        for at in range(0, len(values), 10):
            broker.produce(topic, *values[at : at + 10], partition=number)
    query = Query(topic, origin, is_backwards=origin == END, text=text, limit=RECORDS)
    shown: list[tuple[int, int]] = []
    endings: list[str | None] = []
    with ClusterReader(ClientSettings(bootstrap_servers=broker.bootstrap_servers)) as reader:
        for _ in range(_TURNS_MAX):
            search = Search(reader, query, slowly(0.001), seconds_max=0.02)
            for some in search.rounds():
                shown += [(record.partition, record.offset) for record in some]
            endings.append(search.progress.ended)
            if search.progress.ended == EVERYTHING:
                break
            query = replace(query, origin=NEXT, positions=tuple(search.progress.positions.items()))
    assert endings[-1] == EVERYTHING and TIME_OVER in endings
    step = 3 if text else 1
    assert sorted(shown) == [(number, offset) for number in range(2) for offset in range(0, RECORDS // 2, step)]
    for number in range(2):
        mine = [offset for partition, offset in shown if partition == number]
        assert mine == sorted(mine, reverse=origin == END)


def test_a_search_that_is_cancelled_ends_before_anything_is_found(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, 1)
    broker.produce(topic, *[b"x"] * 50)
    with ClusterReader(ClientSettings(bootstrap_servers=broker.bootstrap_servers)) as reader:
        search = Search(reader, Query(topic), None, seconds_max=60, is_cancelled=lambda: True)
        assert [some for some in search.rounds() if some] == []
    assert search.progress.ended == CANCELLED
