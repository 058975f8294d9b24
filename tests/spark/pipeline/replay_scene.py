"""A pipeline with a table and an aggregation that is ended again and again, and the reference that it must equal.

The reference is plain Python. It takes from the checkpoint which offsets of the streams each batch covers (Spark's log)
and up to where it saw the table (the manifests), and reads the topics itself.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka

from ottla.spark.pipeline.definition import Pipeline, pipeline
from tests.spark import topics as kafka

CUSTOMERS = 12
COUNTRIES = ("aa", "bb", "cc", "dd")
ORDERS_PER_BATCH = 40
_BAD = b"no json"


class Names(NamedTuple):
    orders: str = "orders"
    customers: str = "customers"
    enriched: str = "enriched"
    sums: str = "sums"


def joining(name: str, topics_: Names, *, per_batch: int = ORDERS_PER_BATCH, by: str = "") -> Pipeline:
    """`by`: the table's rows are looked up, else they are walked over."""

    @pipeline(name=name, mode="update")
    def joined(topics: Any) -> Any:
        from pyspark.sql import functions as F

        orders = topics.stream(topics_.orders, "number int, customer string", maxOffsetsPerTrigger=per_batch)
        customers = topics.table(topics_.customers, "customer string not null, country string", by=by or ())
        rows = orders.join(customers, "customer").select("number", "customer", "country")
        sums = rows.groupBy("country").agg(F.count("*").alias("orders"), F.sum("number").alias("total"))
        return {topics_.enriched: rows, topics_.sums: sums.withColumn("key", F.col("country"))}

    return joined


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_ms: int


class ReplayScene:
    def __init__(self, servers: str, name: str, checkpoint: Path, seed: int, names: Names | None = None) -> None:
        self.servers, self.name, self.checkpoint = servers, name, checkpoint
        self.names = names or Names(*(kafka.create(servers) for _ in range(4)))
        self._chance = random.Random(seed)
        self._partitions = 1
        self._number = 0
        self._time_ms = 1_700_000_000_000
        self._guard = threading.Lock()

    # --- what happens to the topics

    def feed(self, orders: int) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        for _ in range(orders):
            row = {"number": self._number, "customer": f"c{self._chance.randrange(CUSTOMERS)}"}
            producer.produce(self.names.orders, json.dumps(row))
            self._number += 1
        assert producer.flush(60) == 0

    def change(self, count: int) -> None:
        """Customers move, are deleted and come back, in any partition; some records are bad, some clocks are wrong."""
        with self._guard:
            producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
            for _ in range(count):
                customer = f"c{self._chance.randrange(CUSTOMERS)}"
                row = json.dumps({"customer": customer, "country": self._chance.choice(COUNTRIES)}).encode()
                value = self._chance.choices([row, None, _BAD], [8, 1, 1])[0]
                self._time_ms += self._chance.randrange(-20, 100)
                partition = self._chance.randrange(self._partitions)
                producer.produce(self.names.customers, value, customer, partition, timestamp=self._time_ms)
            assert producer.flush(60) == 0

    def grow(self) -> None:
        with self._guard:
            self._partitions += 2
            kafka.grow(self.servers, self.names.customers, self._partitions)

    # --- what must be true

    def problems(self) -> list[str]:
        """Empty if what was written is what the reference says, batch for batch."""
        enriched, letters, sums = self._reference()
        found = []
        written = Counter(self._values(self.names.enriched))
        for what, some in (("missing", enriched - written), ("too many", written - enriched)):
            if some:
                found.append(f"enriched: {sum(some.values())} {what}, such as {next(iter(some))}")
        states: dict[str, list[Any]] = defaultdict(list)
        for row in map(json.loads, self._values(self.names.sums)):
            states[row["country"]].append((row["orders"], row["total"]))
        if states != sums:
            found.append(f"sums: {dict(states)} instead of {dict(sums)}")
        dead = Counter(json.dumps(_origin(row[6])) for row in kafka.consumed(self.servers, f"{self.name}-dead-letters"))
        if dead != letters:
            found.append(f"dead letters: {dead} instead of {letters}")
        return found

    def _values(self, topic: str) -> list[str]:
        rows = sorted(kafka.consumed(self.servers, topic))
        return [json.dumps(json.loads(row[3]), sort_keys=True) for row in rows]

    def _reference(self) -> tuple[Counter[str], Counter[str], dict[str, list[Any]]]:
        orders, customers = self._records(self.names.orders), self._records(self.names.customers)
        enriched: Counter[str] = Counter()
        sums: dict[str, list[Any]] = defaultdict(list)
        start, ends = 0, {}
        for batch in range(len(list(_numbered(self.checkpoint / "offsets")))):
            line = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]
            end = json.loads(line)[self.names.orders]["0"]
            ends = self._table_ends(batch)
            table = table_at(customers, ends)
            changed: dict[str, Any] = {}
            for record in orders[start:end]:
                row = json.loads(record.value or b"")
                if (country := table.get(row["customer"])) is not None:
                    enriched[json.dumps({**row, "country": country}, sort_keys=True)] += 1
                    count, total = changed.get(country) or (sums[country] or [(0, 0)])[-1]
                    changed[country] = (count + 1, total + row["number"])
            for country, state in changed.items():
                sums[country].append(state)
            start = end
        letters = Counter(
            json.dumps([one.partition, one.offset])
            for one in customers
            if one.value == _BAD and one.offset < ends.get(one.partition, 0)
        )
        return enriched, letters, sums

    def _table_ends(self, batch: int) -> dict[int, int]:
        numbers = [one for one in _numbered(self.checkpoint / "ottla" / "manifests") if one <= batch]
        manifest = json.loads((self.checkpoint / "ottla" / "manifests" / str(max(numbers))).read_text())
        return {int(one): end for one, end in manifest["tables"][self.names.customers]["ends"].items()}

    def _records(self, topic: str) -> list[Record]:
        rows = sorted(kafka.consumed(self.servers, topic))
        return [Record(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def table_at(records: list[Record], ends: dict[int, int]) -> dict[str, str]:
    """What a table has: of each key the last good record of each partition, and of these that with the latest time."""
    candidates: dict[tuple[bytes | None, int], Record] = {}
    for one in records:  # in the order of partitions and offsets
        if one.offset < ends.get(one.partition, 0) and one.value != _BAD:
            candidates[one.key, one.partition] = one
    winners: dict[bytes | None, Record] = {}
    for one in candidates.values():
        best = winners.get(one.key)
        if best is None or (one.time_ms, one.partition) > (best.time_ms, best.partition):
            winners[one.key] = one
    rows = [json.loads(one.value) for one in winners.values() if one.value is not None]
    return {row["customer"]: row["country"] for row in rows}


def _numbered(folder: Path) -> list[int]:
    return sorted(int(one.name) for one in folder.iterdir() if one.name.isdigit())


def _origin(headers: Any) -> list[int]:
    found = dict(headers)
    return [int(found["ottla.source.partition"]), int(found["ottla.source.offset"])]
