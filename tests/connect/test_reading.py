"""Rounds of a source, without Spark and without a cluster: whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from ottla.client.settings import parse_named
from ottla.connect.api import Column, ConfigDef, Offset, Partition, Read, Records, Schema, SchemaType, Source
from ottla.connect.rounds.context import ConnectorContext, RoundSettings
from ottla.connect.rounds.source import SourceRounds

TEXT = "org.apache.kafka.connect.storage.StringConverter"


class Endless(Source):
    """Partitions that always have more than a round takes."""

    reads_on_driver: ClassVar[bool] = True
    config_def: ClassVar[ConfigDef] = ConfigDef()
    read_of: ClassVar[list[str]] = []

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"of": "a"}, {"of": "b"}, {"of": "c"}]

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        Endless.read_of.append(partition["of"])
        text, none = Schema(SchemaType.STRING), pa.nulls(1, pa.int64())
        column = Column(text, pa.array(["x"]))
        records = Records(pa.array(["t"]), pa.nulls(1, pa.int32()), none, column, column)
        yield Read(records, {"n": len(Endless.read_of)})


def test_every_partition_has_its_turn_though_the_first_alone_fills_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    worker: Any = SimpleNamespace(
        client=parse_named("localhost:9", {}),
        cluster_group="g",
        creates_topics=False,
        rounds=RoundSettings(bytes_max=1),
        offsets=None,
    )
    config = {"key.converter": TEXT, "value.converter": TEXT}
    rounds = SourceRounds(ConnectorContext(worker, "endless", config, lambda topics: None), Endless)
    rounds._counts, rounds._counted_s = {"t": 1}, time.monotonic() + 1000
    rounds._look()
    monkeypatch.setattr(rounds, "_publish", lambda encoded, moved: None)
    for _ in range(6):
        assert rounds.run()
    assert sorted(Endless.read_of) == ["a", "a", "b", "b", "c", "c"]
