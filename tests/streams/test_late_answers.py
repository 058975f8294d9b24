"""Joins by foreign key when subscriptions and answers take their time, as between batches and partitions of a cluster.

The test driver brings each record to its end before the next one, so nothing overtakes anything there. Here what is
written to the application's own topics arrives later, in any order but that of its key: in the end the result is the
join of what the two tables have in the end.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from ottla.streams import StreamsBuilder, Topology, TopologyTestDriver, serdes
from ottla.streams.record import Headers


class LateDriver(TopologyTestDriver):
    def __init__(self, topology: Topology, chance: random.Random) -> None:
        super().__init__(topology)
        self._chance = chance
        self._at: bytes | None = None
        # By topic and the key that it was written for: partitions of their own, as if each key had one.
        self._late: dict[tuple[str, bytes | None], deque[Any]] = {}

    def _process(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self._at = key
        super()._process(topic, key, value, timestamp, headers)

    def _emit(self, topic: str, *record: Any) -> None:
        if topic in self._internal:
            self._late.setdefault((topic, self._at), deque()).append(record[:4])
        else:
            super()._emit(topic, *record)

    def deliver(self, count: int) -> None:
        for _ in range(count):
            if not self._late:
                return
            where = self._chance.choice(list(self._late))
            queue = self._late[where]
            record = queue.popleft()
            if not queue:
                del self._late[where]
            self._process(where[0], *record)

    def deliver_all(self) -> None:
        while self._late:
            self.deliver(1)


def foreign_key(value: str) -> str | None:
    return None if value.startswith("-") else value[0]


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("history", [None, 1000])
def test_the_end_is_the_join_of_both_tables(kind: str, history: int | None) -> None:
    for seed in range(300):
        chance = random.Random(seed)
        builder = StreamsBuilder(key=serdes.string, value=serdes.string)
        stores = {} if history is None else {"history": history}
        left, right = (
            builder.table(topic, store=None if history is None else f"all-{topic}", **stores) for topic in "ab"
        )
        join = {"inner": left.join, "left": left.left_join}[kind]
        join(right, lambda one, other: f"{one}|{other}", foreign_key=foreign_key).to_stream().to("out")
        driver = LateDriver(builder.build(), chance)
        tables: dict[str, dict[str, str | None]] = {"a": {}, "b": {}}
        for at in range(chance.randrange(4, 30)):
            topic = chance.choice("ab")
            if topic == "a":
                key, value = chance.choice("12"), chance.choice(["x", "x'", "y", "y'", "-", None])
            else:
                key, value = chance.choice("xy"), chance.choice(["1", "2", None])
            driver.input_topic(topic).pipe(value, key=key, timestamp=at)
            tables[topic][key] = value
            driver.deliver(chance.choice([0, 0, 1, 3]))
        driver.deliver_all()
        results = {record.key: record.value for record in driver.output_topic("out").read_all()}
        for key, one in tables["a"].items():
            other = None if one is None else tables["b"].get(foreign_key(one) or "none")
            has_result = one is not None and (other is not None or kind == "left")
            assert results.get(key) == (f"{one}|{other}" if has_result else None), (seed, key, one, other)
