"""The metadata store of a single node: one SQLite file beside the logs.

Theory of operation: one table of nodes keyed by path. A multi is one transaction. `journal_mode=WAL` with
`synchronous=FULL` makes a commit exactly one fsync of the write-ahead log (a rollback journal needs three or four),
and what was committed survives kill -9 and a power cut. The exclusive lock keeps a second process out and spares the
shared-memory file. The session of ephemeral nodes is the time the file is open: leftovers go when it is opened.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ottla.common.errors import OttlaError
from ottla.metastore.port import (
    ANY_VERSION,
    Check,
    Conflict,
    Create,
    Delete,
    Node,
    Operation,
    SessionListener,
    Set,
    StoreConflict,
    StoreUnavailable,
    WatchCallback,
    check_operations,
    check_path,
    is_at_or_below,
    parent_of,
)
from ottla.metastore.reserve import Reserve

FILE_NAME = "__ottla_metadata.sqlite"
# Raised when the table's shape changes; an older program refuses a newer file instead of misreading it.
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE node (
    path TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    ephemeral INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX node_parent ON node (parent, path);
"""


class EmbeddedStore:
    """A MetadataStore in one SQLite file; see `ottla.metastore.port` for what the methods promise."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._watches: dict[int, tuple[str, WatchCallback]] = {}
        self._next_watch = 0
        self._connection = self._open(path)
        self._reserve = Reserve(path.parent)

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        try:
            # Keys of users and passwords of listeners are in it. SQLite's own files beside it have its permissions.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise OttlaError(f"cannot open the metadata store {path}: {error.strerror}") from None
        try:
            connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=0)
        except sqlite3.OperationalError as error:
            raise OttlaError(f"cannot open the metadata store {path}: {error}") from None
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA_VERSION:
                raise OttlaError(f"{path} was written by a newer version of Ottla (format {found}); use that version")
            if found == 0:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                connection.execute("INSERT INTO node VALUES ('/', '', x'', 0, 0)")
            connection.execute("DELETE FROM node WHERE ephemeral = 1")
            connection.execute("COMMIT")
            _sync_directory(path.parent)
        except OSError as error:
            connection.close()
            raise OttlaError(f"cannot open the metadata store {path}: {error.strerror}") from None
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" in str(error):
                raise OttlaError(
                    f"{path.parent} is in use by another broker; stop that one or choose another data directory."
                ) from None
            raise OttlaError(f"cannot open the metadata store {path}: {error}") from None
        except sqlite3.DatabaseError as error:
            connection.close()
            raise OttlaError(f"the metadata store {path} is damaged: {error}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def get(self, path: str) -> Node | None:
        check_path(path)
        with self._lock:
            row = self._connection.execute("SELECT data, version FROM node WHERE path = ?", (path,)).fetchone()
        return None if row is None else Node(bytes(row[0]), row[1])

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        with self._lock:
            return [self.get(path) for path in paths]

    def children(self, path: str) -> list[str]:
        check_path(path)
        prefix_length = len(path) + (path != "/")
        with self._lock:
            rows = self._connection.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (path,)).fetchall()
        return [row[0][prefix_length:] for row in rows]

    def multi(self, operations: Sequence[Operation], *, urgent: bool = False) -> list[int]:
        while True:
            try:
                return self._multi(operations)
            except StoreUnavailable as error:
                if not (urgent and error.is_full and self._reserve.release()):
                    raise

    def keep_reserve(self) -> None:
        """Now and then: set room aside for urgent changes, where there is plenty."""
        self._reserve.keep()

    def _multi(self, operations: Sequence[Operation]) -> list[int]:
        check_operations(operations)
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                versions = [self._apply(index, operation) for index, operation in enumerate(operations)]
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                # What Python itself complains of carries no code.
                is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
                raise StoreUnavailable(f"the metadata store {self._path} failed: {error}", is_full=is_full) from error
            except BaseException:
                self._roll_back()
                raise
            watches = list(self._watches.values())
        self._call_watches(watches, (operation.path for operation in operations if not isinstance(operation, Check)))
        return versions

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the disk fails or the store is closed: SQLite undoes it when the file is opened next

    def _apply(self, index: int, operation: Operation) -> int:
        execute, path = self._connection.execute, operation.path
        row = execute("SELECT version, ephemeral FROM node WHERE path = ?", (path,)).fetchone()
        if isinstance(operation, Create):
            if row is not None:
                raise StoreConflict(Conflict.NODE_EXISTS, index, operation)
            parent = parent_of(path)
            above = execute("SELECT ephemeral FROM node WHERE path = ?", (parent,)).fetchone()
            if above is None or above[0]:
                raise StoreConflict(Conflict.NO_NODE, index, operation)
            execute("INSERT INTO node VALUES (?, ?, ?, 0, ?)", (path, parent, operation.data, int(operation.ephemeral)))
            return 0
        if row is None:
            raise StoreConflict(Conflict.NO_NODE, index, operation)
        version: int = row[0]
        if operation.version not in (ANY_VERSION, version):
            raise StoreConflict(Conflict.BAD_VERSION, index, operation)
        if isinstance(operation, Set):
            execute("UPDATE node SET data = ?, version = ? WHERE path = ?", (operation.data, version + 1, path))
            return version + 1
        if isinstance(operation, Delete):
            if execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchone() is not None:
                raise StoreConflict(Conflict.NOT_EMPTY, index, operation)
            execute("DELETE FROM node WHERE path = ?", (path,))
            return -1
        return operation.version

    def sync(self) -> None:
        """There is one file and one process: what is committed is seen."""

    def on_session(self, listener: SessionListener) -> Callable[[], None]:
        """The file is open, or the process is gone: a listener never hears anything."""
        return lambda: None

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        check_path(path)
        with self._lock:
            key = self._next_watch
            self._next_watch += 1
            self._watches[key] = (path, callback)

        def cancel() -> None:
            with self._lock:
                self._watches.pop(key, None)

        return cancel

    @staticmethod
    def _call_watches(watches: list[tuple[str, WatchCallback]], changed: Iterable[str]) -> None:
        for path in changed:
            for watched, callback in watches:
                if is_at_or_below(path, watched):
                    callback(path)

    def close(self) -> None:
        with self._lock:
            self._watches.clear()
            try:
                self._connection.execute("DELETE FROM node WHERE ephemeral = 1")
            except sqlite3.Error:
                pass  # closed already, or a failing disk: they go at the next open anyway
            self._connection.close()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
