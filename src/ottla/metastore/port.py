"""The metadata store port: a small tree of versioned nodes, changed atomically.

Paths look like `/topics/orders`. A node holds bytes and a version that starts at 0 and grows by one with each set.
All changes go through `multi`: either every operation applies or none does, and an operation sees what the ones
before it did. That is ZooKeeper's model cut down to what a broker needs, so that the embedded store of one node and
a ZooKeeper ensemble can stand behind the same code; `tests/metastore` holds both to the same suite.

Calls block until the change is durable. A broker makes them from a worker thread, never on its event loop, so an
implementation must allow calls from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

# Matches whatever version the node has.
ANY_VERSION = -1
# ZooKeeper refuses larger nodes by default, so the embedded store does too: what works on one node works in a cluster.
NODE_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Node:
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Fails if the node exists or its parent does not. An ephemeral node goes when the session that made it ends."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Fails if the node has children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; fails the whole multi if the node is missing or at another version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | Set | Delete | Check


class Conflict(Enum):
    NODE_EXISTS = "the node exists"
    NO_NODE = "there is no such node"
    BAD_VERSION = "the node has another version"
    NOT_EMPTY = "the node has children"


class StoreConflict(Exception):
    """A multi was refused because of what the store holds; nothing was changed. `index` is the operation at fault."""

    def __init__(self, reason: Conflict, index: int, operation: Operation) -> None:
        super().__init__(f"{operation.path}: {reason.value}")
        self.reason = reason
        self.index = index
        self.operation = operation


class StoreUnavailable(Exception):
    """The store could not be reached or written; whether the change was made is unknown until it is read back.

    `is_full`: there was no room for it, and nothing was changed."""

    def __init__(self, message: str, *, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_full = is_full


# Called with the path of a node that was created, set or deleted. It is a hint to read again: after a lost
# connection an implementation calls it with the watched path itself. Events of one multi come in order.
WatchCallback = Callable[[str], None]


class MetadataStore(Protocol):
    def get(self, path: str) -> Node | None: ...

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """As `get` for each path, in one go where the store can."""

    def children(self, path: str) -> list[str]:
        """Names (not paths) of the nodes directly below, sorted; empty where there is no such node."""

    def multi(self, operations: Sequence[Operation], *, urgent: bool = False) -> list[int]:
        """Apply all or none, durably. Returns each node's version after its operation (-1 for a delete).

        An urgent one may use room that a store keeps in reserve for a full disk. Raises StoreConflict when an operation
        does not fit what is there.
        """

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        """Call back after every change of the node or anything below it; returns what cancels the watch."""

    def close(self) -> None:
        """End the session; its ephemeral nodes go."""


def check_path(path: str) -> None:
    """Raises ValueError for what cannot be a path in every implementation."""
    if not path.startswith("/") or (path.endswith("/") and path != "/"):
        raise ValueError(f"{path!r} is not a path: it must start with a slash and not end with one")
    parts = path.split("/")[1:] if path != "/" else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{path!r} is not a path: empty, '.' and '..' parts are not allowed")


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or "/"
