"""Made-up records at a given rate, for trying things out and for load: the same number gives the same record."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from ottla.connect.api import (
    Column,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Field,
    Importance,
    Offset,
    Partition,
    Read,
    Records,
    Schema,
    SchemaType,
    Source,
    check_numbers,
)
from ottla.connect.definitions import at_least, one_of

_PIECE = 2_000
_TEXT, _WHOLE, _NUMBER = (
    Schema(SchemaType.STRING),
    Schema(SchemaType.INT64),
    Schema(SchemaType.FLOAT64),
)
_CITIES = ("Berlin", "Brno", "Krakow", "Leipzig", "Praha", "Wien")
_PAGES = ("/", "/cart", "/help", "/login", "/search")


def _orders(number: int, chance: random.Random) -> dict[str, Any]:
    return {
        "order_id": number,
        "customer": f"customer-{chance.randrange(1000)}",
        "amount": round(chance.uniform(1, 500), 2),
        "city": chance.choice(_CITIES),
    }


def _clicks(number: int, chance: random.Random) -> dict[str, Any]:
    return {"click_id": number, "user": f"user-{chance.randrange(200)}", "page": chance.choice(_PAGES)}


def _sensors(number: int, chance: random.Random) -> dict[str, Any]:
    return {"reading": number, "sensor": f"sensor-{chance.randrange(50)}", "celsius": round(chance.gauss(20, 5), 3)}


# What is made, its schema, and which field is the key.
_KINDS: Mapping[str, tuple[Callable[[int, random.Random], dict[str, Any]], dict[str, Schema], str]] = {
    "orders": (_orders, {"order_id": _WHOLE, "customer": _TEXT, "amount": _NUMBER, "city": _TEXT}, "customer"),
    "clicks": (_clicks, {"click_id": _WHOLE, "user": _TEXT, "page": _TEXT}, "user"),
    "sensors": (_sensors, {"reading": _WHOLE, "sensor": _TEXT, "celsius": _NUMBER}, "sensor"),
}


class DataGenerator(Source):
    config_def: ClassVar[ConfigDef] = ConfigDef(
        (
            ConfigKey("topic", ConfigType.STRING, "Where records go.", importance=Importance.HIGH),
            ConfigKey(
                "records",
                ConfigType.STRING,
                f"What is made: {', '.join(_KINDS)}.",
                default="orders",
                check=one_of(*_KINDS),
                recommended=tuple(_KINDS),
            ),
            ConfigKey(
                "rate",
                ConfigType.INT,
                "Records in a second, of all tasks together; 0: as fast as it goes.",
                default=10,
                check=at_least(0),
            ),
            ConfigKey("count", ConfigType.LONG, "How many in all; 0: without an end.", default=0, check=at_least(0)),
            ConfigKey("seed", ConfigType.LONG, "Another one gives other records.", default=0),
        )
    )

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"generator": number, "of": most} for number in range(most)]

    def has_more(self, partition: Partition, offset: Offset | None) -> bool:
        return self._due(partition, offset) > _next(offset)

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        began_ms = (offset or {}).get("began_ms", int(time.time() * 1000))
        number, due = _next(offset), self._due(partition, {"next": _next(offset), "began_ms": began_ms})
        if offset is None and self.settings["rate"]:
            due = max(due, 1)
        while number < due:
            last = min(due, number + _PIECE)
            yield Read(self._records(partition, range(number, last)), {"next": last, "began_ms": began_ms})
            number = last

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        return check_numbers(partition, "generator", "of") or check_numbers(offset, "next", "began_ms")

    def _due(self, partition: Partition, offset: Offset | None) -> int:
        """How many of this partition there are to be by now."""
        rate, count = self.settings["rate"], self.settings["count"]
        share = -(-(count - partition["generator"]) // partition["of"]) if count else 1 << 62
        if not rate:
            return int(min(share, _next(offset) + 100 * _PIECE))
        began_ms = (offset or {}).get("began_ms")
        passed_s = 0.0 if began_ms is None else time.time() - began_ms / 1000
        due = int(passed_s * rate / partition["of"]) + (offset is None)
        return int(min(share, due))

    def _records(self, partition: Partition, numbers: range) -> Records:
        make, fields, key = _KINDS[self.settings["records"]]
        schema = Schema(SchemaType.STRUCT, fields=tuple(Field(name, kind) for name, kind in fields.items()))
        rows = []
        for number in numbers:
            whole = number * partition["of"] + partition["generator"]
            rows.append(make(whole, random.Random(f"{self.settings['seed']}-{whole}")))
        count = len(rows)
        return Records(
            topics=pa.repeat(self.settings["topic"], count),
            partitions=pa.nulls(count, pa.int32()),
            timestamps=pa.nulls(count, pa.int64()),
            keys=Column(_TEXT, pa.array([row[key] for row in rows], pa.string())),
            values=Column(schema, pa.array(rows, _arrow(fields))),
        )


def _next(offset: Offset | None) -> int:
    return int((offset or {}).get("next", 0))


def _arrow(fields: Mapping[str, Schema]) -> Any:
    kinds = {SchemaType.STRING: pa.string(), SchemaType.INT64: pa.int64(), SchemaType.FLOAT64: pa.float64()}
    return pa.struct([(name, kinds[schema.type]) for name, schema in fields.items()])
