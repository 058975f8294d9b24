"""The template for connectors does what it says: exactly once, without a worker and with one."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.common.ids import TopicPartition
from ottla.connect.api import Column, ConnectorFailure, Outage, Records
from ottla.connect.conversion import source_side
from tests.support.kafka_jars import REPO_ROOT

PLACE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def template() -> Any:
    path = REPO_ROOT / "examples" / "connect" / "template" / "my_connectors.py"
    spec = importlib.util.spec_from_file_location("my_connectors", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_source_goes_on_behind_what_was_published(template: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "a.db")
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE orders (customer TEXT, amount REAL)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(f"c{number}", number) for number in range(2500)])
    source = template.JournalSource({"file": file, "tables": "orders", "topic.prefix": "db-"})
    (partition,) = source.partitions(1)
    pieces = list(source.read(partition, None))
    assert [len(piece.records) for piece in pieces] == [1000, 1000, 500]
    assert sum(len(piece.records) for piece in source.read(partition, pieces[0].offset)) == 1500
    assert list(source.read(partition, pieces[-1].offset)) == []
    config = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    config["key.converter"] = "org.apache.kafka.connect.converters.LongConverter"
    rows = source_side(config).run(pieces[0].records).rows.slice(0, 1).to_pylist()
    assert (rows[0]["topic"], rows[0]["value"]) == ("db-orders", b'{"customer":"c0","amount":0.0}')
    with pytest.raises(ConnectorFailure, match="has no table 'gone'"):
        list(source.read({"table": "gone"}, None))


def records(first: int, count: int) -> Records:
    return Records(
        topics=pa.repeat("t", count),
        partitions=pa.repeat(pa.scalar(0, pa.int32()), count),
        timestamps=pa.repeat(pa.scalar(0, pa.int64()), count),
        keys=Column(None, [None] * count),
        values=Column(None, [{"n": number} for number in range(first, first + count)]),
        offsets=pa.array(range(first, first + count), pa.int64()),
    )


def test_the_sink_keeps_its_position_and_refuses_what_it_has(template: Any, tmp_path: Path) -> None:
    sink = template.JournalSink({"file": str(tmp_path / "b.db")})
    assert sink.positions([PLACE]) == {}
    writer, late = sink.open(PLACE, 0), sink.open(PLACE, 0)
    writer.write(records(0, 3))
    with pytest.raises(Outage, match="another task"):
        late.write(records(0, 5))
    assert sink.positions([PLACE]) == {PLACE: 3}
    writer.write(records(3, 2))
    writer.close()
    late.close()
    with sqlite3.connect(tmp_path / "b.db") as database:
        assert [row[0] for row in database.execute("SELECT number FROM records")] == [0, 1, 2, 3, 4]
    sink.moved({PLACE: None})
    assert sink.positions([PLACE]) == {}
