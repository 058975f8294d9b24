"""The store of a table's rows: what is found in it, and what happens to its file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.tables import store as stores
from ottla.spark.pipeline.tables.store import Cell, Store, TableGone, look_up


def found(store: Store, *texts: str | None) -> list[list[bytes]]:
    rows: list[list[bytes]] = look_up(str(store.path), pa.array(texts, pa.string())).to_pylist()
    return rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows.sqlite")


def test_the_last_record_of_a_key_is_found_by_what_it_is_joined_on(store: Store) -> None:
    store.put([Cell(b"k", 0, 1, "a", b"first"), Cell(b"k", 0, 1, "b", b"second"), Cell(b"other", 0, 1, "b", b"third")])
    assert found(store, "a", "b", None, "b") == [[], [b"second", b"third"], [], [b"second", b"third"]]
    store.put([Cell(b"k", 0, 1, None, None)])
    assert found(store, "b") == [[b"third"]]


def test_of_several_partitions_the_latest_counts_also_if_it_deletes(store: Store) -> None:
    store.put([Cell(b"k", 0, 5, "a", b"late"), Cell(b"k", 1, 4, "a", b"early"), Cell(b"k", 2, 5, "a", b"as late")])
    assert found(store, "a") == [[b"as late"]]
    store.put([Cell(b"k", 2, 3, "a", b"set back")])
    assert found(store, "a") == [[b"late"]]
    store.put([Cell(b"k", 1, 6, None, None)])
    assert found(store, "a") == [[]]


def test_what_was_put_is_seen_by_those_who_have_looked_before_and_is_gone_when_it_is_cleared(store: Store) -> None:
    assert found(store, "a") == [[]]
    store.put([Cell(b"k", 0, 1, "a", b"new")])
    assert found(store, "a") == [[b"new"]]
    store.clear()
    assert found(store, "a") == [[]]


def test_bytes_that_somebody_calls_a_text_are_in_no_table(store: Store) -> None:
    """`cast(key as string)` of Spark's leaves them as they are, and one such record would end every run."""
    store.put([Cell(b"k", 0, 1, "", b"empty"), Cell(b"l", 0, 1, "\ufffd", b"replaced")])
    buffers = [None, pa.array([0, 2, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
    asked = pa.Array.from_buffers(pa.string(), 2, buffers)
    assert look_up(str(store.path), asked).to_pylist() == [[], [b"empty"]]


def work_of_a_batch(folder: Path, keys: int) -> int:
    """Steps of SQLite's machine for a hundred changes and a thousand looks, in a table of so many keys."""
    store = Store(folder / f"{keys}.sqlite")
    store.put(Cell(b"k%d" % number, number % 3, 1, f"c{number}", b"old") for number in range(keys))
    some = [number * keys // 1_000 for number in range(1_000)]
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    reader = stores._opened(str(store.path))
    for connection in (store._database, reader):
        connection.set_progress_handler(count, 1)
    store.put(Cell(b"k%d" % number, number % 3, 2, f"c{number}", b"new") for number in some[::10])
    values = [value for row in found(store, *(f"c{number}" for number in some)) for value in row]
    store.close()
    assert (values.count(b"new"), values.count(b"old")) == (100, 900)
    return steps


def test_what_changes_and_looks_cost_does_not_depend_on_how_many_keys_there_are(tmp_path: Path) -> None:
    few, many = (work_of_a_batch(tmp_path, keys) for keys in (1_000, 100_000))
    assert few > 1_000, "it is counted"
    assert many <= 1.02 * few


def test_nothing_is_kept_of_cells_of_which_one_cannot_be_read(store: Store) -> None:
    def cells():  # type: ignore[no-untyped-def]
        yield Cell(b"k", 0, 1, "a", b"whole")
        raise OttlaError("the rest cannot be read.")

    with pytest.raises(OttlaError, match="the rest"):
        store.put(cells())
    assert found(store, "a") == [[]]
    store.put([Cell(b"k", 0, 1, "a", b"again")])
    assert found(store, "a") == [[b"again"]]


def test_a_folder_that_was_removed_is_told_as_what_a_new_start_mends(store: Store) -> None:
    shutil.rmtree(store.path.parent)
    with pytest.raises(TableGone, match="cannot be looked up"):
        found(store, "a")


def test_a_folder_that_takes_no_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"the rows of a table cannot be kept in .*missing"):
        Store(tmp_path / "missing" / "rows.sqlite")


def test_more_than_spark_can_take_in_one_piece_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_FOUND_BYTES_MAX", 100)
    store.put([Cell(b"k", 0, 1, "a", bytes(60))])
    assert found(store, "a") == [[bytes(60)]]
    with pytest.raises(OttlaError, match=r"arrow\.maxRecordsPerBatch"):
        found(store, "a", "a")
