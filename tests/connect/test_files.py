"""Files as sources and as targets, without a worker: what is read from where, and that nothing is written twice."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from ottla.common.ids import TopicPartition
from ottla.connect.api import BadRecords, Column, ConnectorFailure, Outage, Records, Schema, SchemaType
from ottla.connect.connectors import file_stream
from ottla.connect.connectors.files import reading
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.connectors.files.source import FilesSource

PLACE = TopicPartition("t", 3)
TEXT = Schema(SchemaType.STRING)


def read_all(source: FilesSource, offset: Any = None) -> list[Any]:
    (partition,) = source.partitions(4)
    if not source.has_more(partition, offset):
        return []
    found = []
    for piece in source.read(partition, offset):
        data = piece.records.values.data
        found += data if isinstance(data, list) else data.to_pylist()
    return found


def test_quoted_lines_types_and_a_resumed_csv_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 64)
    rows = [{"id": number, "text": f'a "quoted"\nline; {number}'} for number in range(50)]
    lines = "".join(
        '{}; "{}"\n'.format(row["id"], str(row["text"]).replace('"', '""')).replace("; ", ";", 1) for row in rows
    )
    (tmp_path / "a.csv").write_text("\ufeffid;text\n" + lines + "99;not whole yet")
    config = {"path": str(tmp_path), "format": "csv", "topic": "t", "csv.delimiter": ";", "columns.types": "id:int32"}
    source = FilesSource(config)
    assert read_all(source) == rows
    # From every piece on, the rest is what comes after it.
    (partition,) = source.partitions(1)
    pieces = list(source.read(partition, None))
    assert len(pieces) > 5
    for index, piece in enumerate(pieces):
        rest = [row for later in pieces[index + 1 :] for row in later.records.values.data.to_pylist()]
        assert read_all(source, piece.offset) == rest
    with (tmp_path / "a.csv").open("a") as file:
        file.write("\n")
    assert read_all(source, pieces[-1].offset) == [{"id": 99, "text": "not whole yet"}]


def test_parquet_and_orc_keep_their_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "price": pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(10, 2)),
            "when": pa.array([0, 1_700_000_000_123_000], pa.timestamp("us")),
            "tags": pa.array([["a"], []], pa.list_(pa.string())),
        }
    )
    for kind, write in (("parquet", parquet.write_table), ("orc", orc.write_table)):
        folder = tmp_path / kind
        folder.mkdir()
        write(table, str(folder / f"a.{kind}"))
        source = FilesSource({"path": str(folder), "format": kind, "topic": "t"})
        first, second = read_all(source)
        assert (first["small"], first["price"], second["tags"]) == (1, Decimal("1.50"), [])
        assert second["when"].timestamp() == 1_700_000_000.123
        (partition,) = source.partitions(1)
        (piece,) = source.read(partition, None)
        assert piece.offset["done"] and not source.has_more(partition, piece.offset)


def test_what_is_hidden_or_not_asked_for_is_left_alone(tmp_path: Path) -> None:
    for name in (".a.json", "_b.json", "c.txt", "d.json"):
        (tmp_path / name).write_text('{"from": "' + name + '"}\n')
    source = FilesSource(
        {"path": str(tmp_path), "format": "json", "topic": "t", "files": "*.json", "key.column": "from"}
    )
    assert read_all(source) == [{"from": "d.json"}]
    assert FilesSource({"path": str(tmp_path / "none"), "format": "json", "topic": "t"}).partitions(1) == []


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        ("json", "{no json}\n", "line 1: cannot be read as json"),
        ("csv", "a,b\n1,2\n1,2,3\n", "cannot be read as csv"),
        ("parquet", "x" * 100, "cannot be read as parquet"),
    ],
)
def test_a_file_of_another_kind_is_told_by_name(tmp_path: Path, kind: str, content: str, sentence: str) -> None:
    (tmp_path / "odd").write_text(content)
    with pytest.raises(ConnectorFailure, match=sentence) as caught:
        read_all(FilesSource({"path": str(tmp_path), "format": kind, "topic": "t"}))
    assert "odd" in str(caught.value)


def read_pieces(source: FilesSource, offset: Any = None) -> tuple[list[Any], list[str], Any]:
    """Rows, what was passed over, and where it goes on."""
    (partition,) = source.partitions(1)
    rows, failures = [], []
    for piece in source.read(partition, offset):
        data = piece.records.values.data
        rows += data if isinstance(data, list) else data.to_pylist()
        failures += piece.failures
        offset = piece.offset
    return rows, failures, offset


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_a_quote_within_a_value_is_a_character_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,5" pipe\n2,"two\nlines"\n3,7\n4,"a ""b"""\n5,end\n')
    source = FilesSource({"path": str(tmp_path), "format": "csv", "topic": "t"})
    assert [row["text"] for row in read_all(source)] == ['5" pipe', "two\nlines", "7", 'a "b"', "end"]


def test_a_quote_that_is_never_closed_fails_with_its_file_and_line_once_nobody_writes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,one\n2,"two\n3,three\n')
    config = {"path": str(tmp_path), "format": "csv", "topic": "t"}
    # Its end may still come.
    rows, _, offset = read_pieces(FilesSource(config))
    assert [row["id"] for row in rows] == ["1"]
    with path.open("a") as file:
        file.write('and more"\n')
    assert read_pieces(FilesSource(config), offset)[0] == [{"id": "2", "text": "two\n3,three\nand more"}]
    path.write_text('id,text\n1,one\n2,"two\n3,three\n')
    age(path, 3600)
    with pytest.raises(ConnectorFailure, match=r"a\.csv, line 3: a quoted value begins that does not end"):
        read_pieces(FilesSource(config), offset)
    rows, failures, offset = read_pieces(FilesSource({**config, "errors.tolerance": "all"}))
    assert [row["id"] for row in rows] == ["1", "3"] and offset["position"] == path.stat().st_size
    assert len(failures) == 1 and "a.csv, line 3" in failures[0]


def test_a_quoted_value_without_end_is_given_up_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 64)
    monkeypatch.setattr(reading, "ROW_BYTES_MAX", 256)
    (tmp_path / "a.csv").write_text('id,text\n1,"one\n' + "2,two\n" * 200)
    config = {"path": str(tmp_path), "format": "csv", "topic": "t"}
    with pytest.raises(ConnectorFailure, match=r"a\.csv, line 2: a quoted value begins"):
        read_pieces(FilesSource(config))
    rows, failures, _ = read_pieces(FilesSource({**config, "errors.tolerance": "all"}))
    assert len(rows) == 200 and len(failures) == 1


@pytest.mark.parametrize(
    ("kind", "lines", "sentence"),
    [
        ("csv", ["a,b\n", "1,2\n", '3,"x\n', 'y"\n', "1,2,3\n", "5,6\n"], "line 5"),
        ("csv", ["a,b\n", "1,2\n", "x,2\n", "5,6\n"], "line 3"),
        ("json", ["1\n", "\n", "{no json}\n", "2\n"], "line 3"),
    ],
)
def test_lines_that_cannot_be_read_are_told_by_number_and_passed_over_if_that_is_tolerated(
    tmp_path: Path, kind: str, lines: list[str], sentence: str
) -> None:
    (tmp_path / "odd").write_text("".join(lines))
    config = {"path": str(tmp_path), "format": kind, "topic": "t", "columns.types": "a:int64" if kind == "csv" else ""}
    with pytest.raises(ConnectorFailure, match=f"odd, {sentence}: "):
        read_pieces(FilesSource(config))
    rows, failures, offset = read_pieces(FilesSource({**config, "errors.tolerance": "all"}))
    assert len(rows) >= 2 and [sentence in one for one in failures] == [True]
    assert offset["position"] == sum(map(len, lines))


@pytest.mark.parametrize(("kind", "write"), [("parquet", parquet.write_table), ("orc", orc.write_table)])
def test_a_file_that_is_still_being_copied_is_waited_for_and_a_damaged_one_is_told(
    tmp_path: Path, kind: str, write: Any
) -> None:
    path = tmp_path / f"a.{kind}"
    write(pa.table({"a": list(range(1000))}), str(path))
    whole = path.read_bytes()
    config = {"path": str(tmp_path), "format": kind, "topic": "t"}
    for size in (2, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert read_pieces(FilesSource(config)) == ([], [], None)
    path.write_bytes(whole)
    assert len(read_pieces(FilesSource(config))[0]) == 1000
    path.write_bytes(whole[: len(whole) // 2])
    age(path, 3600)
    with pytest.raises(ConnectorFailure, match=rf"a\.{kind} is damaged"):
        read_pieces(FilesSource(config))
    rows, failures, offset = read_pieces(FilesSource({**config, "errors.tolerance": "all"}))
    assert rows == [] and len(failures) == 1 and offset["done"]


def records(first: int, values: list[Any], schema: Schema | None = None) -> Records:
    count = len(values)
    return Records(
        topics=pa.repeat("t", count),
        partitions=pa.repeat(pa.scalar(3, pa.int32()), count),
        timestamps=pa.repeat(pa.scalar(5, pa.int64()), count),
        keys=Column(None, [None] * count),
        values=Column(schema, values if schema is None else pa.array(values)),
        offsets=pa.array(range(first, first + count), pa.int64()),
    )


def test_a_task_that_comes_back_late_writes_nothing_twice(tmp_path: Path) -> None:
    sink = FilesSink({"path": str(tmp_path), "format": "json"})
    assert sink.positions([PLACE]) == {}
    early, late = sink.open(PLACE, 0), sink.open(PLACE, 0)
    early.write(records(0, [1, 2, 3]))
    for values in ([1, 2, 3], [1, 2], [1, 2, 3, 4]):
        with pytest.raises(Outage, match="another task has written it"):
            late.write(records(0, values))
    early.write(records(3, [4]))
    assert sink.positions([PLACE, TopicPartition("t", 4)]) == {PLACE: 4}
    lines = [path.read_text().split() for path in sorted(tmp_path.rglob("t+3*.json"))]
    assert lines == [["1", "2", "3"], ["4"]]
    assert not list(tmp_path.rglob(".t+*")), "nothing is left of what was refused"


def test_a_position_moves_forwards_and_back_and_each_record_is_shown_once(tmp_path: Path) -> None:
    sink = FilesSink({"path": str(tmp_path), "format": "text"})

    def shown() -> list[str]:
        paths = [path for path in sorted(tmp_path.rglob("*.txt")) if not path.name.startswith(".")]
        return [line for path in paths for line in path.read_text().split()]

    for first, values in ((0, ["a", "b"]), (2, ["c"]), (5, ["f", "g"])):
        sink.open(PLACE, first).write(records(first, values, TEXT))
    sink.moved({PLACE: 10})
    assert sink.positions([PLACE]) == {PLACE: 10}
    # Behind `c` is a gap: it goes on exactly where it was told to.
    stale = sink.open(PLACE, 10)
    sink.moved({PLACE: 4})
    assert sink.positions([PLACE]) == {PLACE: 4} and shown() == ["a", "b", "c"]
    # A task from before would leave out what has to be written again.
    with pytest.raises(Outage, match="begins anew"):
        stale.write(records(10, ["k"], TEXT))
    sink.open(PLACE, 4).write(records(5, ["F", "G"], TEXT))
    assert shown() == ["a", "b", "c", "F", "G"]
    sink.moved({PLACE: None})
    assert sink.positions([PLACE]) == {} and shown() == []
    sink.open(PLACE, 0).write(records(0, ["A"], TEXT))
    assert shown() == ["A"]
    # What was replaced is still there for whoever misses it.
    kept = sorted(path.read_text().split() for path in tmp_path.rglob(".replaced+*"))
    assert kept == sorted([["a", "b"], ["c"], ["f", "g"], ["F", "G"]])


def test_positions_that_are_refused_are_not_moved_in_part(tmp_path: Path) -> None:
    sink, other = FilesSink({"path": str(tmp_path), "format": "text"}), TopicPartition("t", 4)
    for place in (PLACE, other):
        sink.open(place, 0).write(records(0, ["a", "b"], TEXT))
    with pytest.raises(ConnectorFailure, match=r"holds offsets 0 to 1.*: set the offset to 0, or to 2"):
        sink.moved({PLACE: 0, other: 1})
    assert sink.positions([PLACE, other]) == {PLACE: 2, other: 2}


def test_records_that_a_format_cannot_hold_are_bad_and_others_are_not(tmp_path: Path) -> None:
    sink = FilesSink({"path": str(tmp_path), "format": "parquet", "include.metadata": "true"})
    writer = sink.open(PLACE, 0)
    with pytest.raises(BadRecords, match="do not fit into a file of parquet"):
        writer.write(records(0, [{"a": 1}, {"a": "text"}]))
    writer.write(records(0, [{"a": 1}, {"b": "more"}]))
    (path,) = tmp_path.rglob("t+3*.parquet")
    rows = parquet.read_table(path, partitioning=None).to_pylist()
    assert [(row["a"], row["b"], row["_offset"], row["_partition"]) for row in rows] == [
        (1, None, 0, 3),
        (None, "more", 1, 3),
    ]


def test_what_killed_tasks_have_left_goes_after_a_day(tmp_path: Path) -> None:
    sink = FilesSink({"path": str(tmp_path), "format": "json"})
    old, new = (tmp_path / f".t+3+{number}+9.json.{'0' * 32}" for number in (0, 1))
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 100_000,) * 2)
    sink.begin(["t"])
    assert (old.exists(), new.exists()) == (False, True)


def test_lines_of_a_growing_file_are_whole_whatever_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_stream, "_PIECE_BYTES", 7)
    path = tmp_path / "a.txt"
    lines = ["", "short", "a line that is longer than a piece", "ends like in DOS\r", "ä", "x" * 50]
    path.write_bytes("\n".join(lines).encode() + b"\nnot yet")
    source = file_stream.FileStreamSource({"file": str(path), "topic": "t"})
    (partition,) = source.partitions(1)
    pieces = list(source.read(partition, None))
    wanted = [line.removesuffix("\r") for line in lines]
    assert [line for piece in pieces for line in piece.records.values.data.to_pylist()] == wanted
    for index, piece in enumerate(pieces):
        rest = [
            line for later in source.read(partition, piece.offset) for line in later.records.values.data.to_pylist()
        ]
        assert rest == [line for later in pieces[index + 1 :] for line in later.records.values.data.to_pylist()]
    path.write_bytes(b"")
    with pytest.raises(ConnectorFailure, match="is shorter than the"):
        list(source.read(partition, pieces[-1].offset))


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (pa.array(["x", "a", None, "", "\u00fc", "y"]).slice(1, 4), "a\nnull\n\n\u00fc\n"),
        (pa.array([], pa.string()), ""),
        (pa.array([1, None]), "1\nnull\n"),
        (pa.array([b"raw", None]), "raw\nnull\n"),
        (["a", None, {"b": 1}], "a\nnull\n{'b': 1}\n"),
    ],
)
def test_a_file_stream_has_a_line_for_each_value(tmp_path: Path, data: Any, wanted: str) -> None:
    writer = file_stream.FileStreamSink({"file": str(tmp_path / "out")}).open(PLACE, 0)
    given = records(0, [None] * len(data))
    writer.write(replace(given, values=Column(None, data)))
    writer.close()
    assert (tmp_path / "out").read_text() == wanted
