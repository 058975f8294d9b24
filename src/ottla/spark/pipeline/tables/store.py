"""The rows of a table by what they are joined on, in a file that every process of the driver's machine can look into.

    driver     Store(path).put(...)         what is new in the topic, before a batch begins
    workers    look_up(path, texts)         the rows that a batch is joined with

A cell is the last good record of a key in a partition: of the cells of a key the one with the latest time counts, and
of those with the same time that in the highest partition (see `winners.py`). Which one that is, is found out when a row
is looked up, so that a new record is one cell, however large the table. Nobody looks while the driver writes: that is
between two batches. What is lost with the driver is read from the topic again, so nothing is synced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable

_TABLES = """
CREATE TABLE cell (key BLOB, partition INTEGER, time INTEGER, joined_on TEXT, value BLOB, UNIQUE (key, partition));
CREATE INDEX by_text ON cell (joined_on) WHERE joined_on IS NOT NULL;
"""
_PUT = """
INSERT INTO cell VALUES (?, ?, ?, ?, ?) ON CONFLICT (key, partition)
DO UPDATE SET time = excluded.time, joined_on = excluded.joined_on, value = excluded.value
"""
_FIND = """
SELECT value FROM cell AS this WHERE joined_on = ? AND NOT EXISTS (
  SELECT 1 FROM cell WHERE key = this.key AND (time, partition) > (this.time, this.partition))
"""
# Spark hands rows on in pieces of 10,000, and Arrow has room for 2 GB in one.
_FOUND_BYTES_MAX = 1024**3


class Cell(NamedTuple):
    key: bytes
    partition: int
    time_us: int
    # None where no join finds it: a part of it is null, or the record deletes its key.
    joined_on: str | None
    value: bytes | None


class TableGone(Retriable):
    """The file of a table is not there any more: whoever starts again has a new one."""


class Store:
    def __init__(self, path: Path) -> None:
        """Raises OttlaError, as all that writes."""
        self.path = path
        with _told(path):
            # It is called from one thread at a time, and not always from the same.
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._database.executescript(
                f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; {_TABLES}"
            )

    def put(self, cells: Iterable[Cell]) -> None:
        """In the order of their offsets."""
        with _told(self.path):
            self._database.execute("BEGIN")
            try:
                self._database.executemany(_PUT, cells)
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def clear(self) -> None:
        with _told(self.path):
            self._database.execute("DELETE FROM cell")

    def close(self) -> None:
        self._database.close()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OttlaError(f"the rows of a table cannot be kept in {path.parent}: {error}; make room there.") from None


def look_up(path: str, texts: Any) -> Any:
    """For each of these texts the values that are joined on it. Raises TableGone, OttlaError."""
    try:
        # Not in a transaction: what the driver has written since is seen.
        find = _opened(path).execute
        known: dict[bytes | None, list[bytes]] = {None: []}
        found: list[list[bytes]] = []
        size = 0
        # Spark's texts are whatever bytes somebody has called a text, as in `cast(key as string)`.
        for text in texts.cast(pa.binary()).to_pylist():
            if text not in known:
                known[text] = [] if _is_no_text(text) else [value for (value,) in find(_FIND, (text.decode(),))]
            found.append(known[text])
            size += sum(map(len, known[text]))
            if size > _FOUND_BYTES_MAX:
                raise OttlaError(
                    f"rows of a table that {len(found):,} rows are joined with take more than 1 GB: set "
                    "spark.sql.execution.arrow.maxRecordsPerBatch to fewer, or leave `by` of the table out."
                )
    except sqlite3.Error as error:
        _opened.cache_clear()
        raise TableGone(f"the rows of a table in {path} cannot be looked up: {error}.") from None
    return pa.array(found, pa.list_(pa.binary()))


def _is_no_text(text: bytes) -> bool:
    """No row of a table has it: its values are JSON, or a registry's, and these are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


@lru_cache(maxsize=16)
def _opened(path: str) -> sqlite3.Connection:
    """Workers are used for many tasks."""
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA mmap_size = 1073741824")
    return connection
