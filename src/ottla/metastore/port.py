"""The metadata store port: a small tree of versioned nodes, changed atomically.

Paths look like `/topics/orders`. A node holds bytes and a version that starts at 0 and grows by one with each set.
All changes go through `multi`: either every operation applies or none does, and an operation sees what the ones
before it did. That is ZooKeeper's model cut down to what a broker needs, so that the embedded store of one node and
a ZooKeeper ensemble can stand behind the same code; `tests/metastore` holds both to the same suite.

Calls block until the change is durable. A broker makes them from a worker thread, never on its event loop, so an
implementation must allow calls from several threads.

Ephemeral nodes live as long as the session that made them. A store that can lose its session says so (`on_session`)
and goes on with a new one; a call belongs to one session and is never made again in the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

# Matches whatever version the node has.
ANY_VERSION = -1
# ZooKeeper refuses larger nodes by default, so the embedded store does too: what works on one node works in a cluster.
NODE_BYTES_MAX = 1_000_000
# What every store takes as one multi, as `operation_bytes` counts it; `in_multis` cuts what need not be one. ZooKeeper
# takes 1,048,575 bytes as one request (jute.maxbuffer), and cuts the connection of a client that sends more: some
# 6,000 small operations. The embedded store has no such limit.
MULTI_BYTES_MAX = 1_040_000
# Beside its path and data an operation takes at most 48 bytes; the rest is room for a chroot before its path.
OPERATION_OVERHEAD_BYTES = 128
CHROOT_BYTES_MAX = 64


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


class SessionState(Enum):
    """What became of the session that holds our ephemeral nodes."""

    # There is a connection (again), with the session we had or with a new one.
    CONNECTED = "connected"
    # The connection is gone. The session may live, and calls wait for it; nobody can tell us that it is over.
    SUSPENDED = "suspended"
    # The session is over: our ephemeral nodes are gone or as good as gone, and what it held must be made anew.
    LOST = "lost"


SessionListener = Callable[[SessionState], None]

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
        """Apply all or none, durably. Returns each node's version after its operation (-1 for a delete, and for the
        check of any version).

        An urgent one may use room that a store keeps in reserve for a full disk. Raises StoreConflict when an operation
        does not fit what is there, and ValueError if a node, or all of it (see MULTI_BYTES_MAX), is too large.
        """

    def sync(self) -> None:
        """After it the next read sees everything that any client had committed before the call, and watches have been
        told of it."""

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        """Call back after every change of the node or anything below it; returns what cancels the watch.

        Callbacks of watches and of sessions run one after the other, on a thread that may call the store.
        """

    def on_session(self, listener: SessionListener) -> Callable[[], None]:
        """Call back when the state of the session changes; returns what cancels it.

        One that is added while the store is not connected is told that first. LOST is told to all before any call
        succeeds in a new session, which the store begins by itself; when CONNECTED follows, the nodes of the old
        session are gone. In between, calls fail at once.
        """

    def close(self) -> None:
        """End the session; its ephemeral nodes go."""


# ZooKeeper has no such characters in its paths.
_NOT_IN_PATHS = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def check_path(path: str) -> None:
    """Raises ValueError for what cannot be a path in every implementation."""
    if not path.startswith("/") or (path.endswith("/") and path != "/"):
        raise ValueError(f"{path!r} is not a path: it must start with a slash and not end with one")
    parts = path.split("/")[1:] if path != "/" else []
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is not a path: empty, '.' and '..' parts are not allowed")
    if _NOT_IN_PATHS.search(path):
        raise ValueError(f"{path!r} is not a path: it has characters that no name may have")


def check_operations(operations: Iterable[Operation]) -> None:
    """Raises ValueError for an operation that cannot be in every implementation."""
    for operation in operations:
        check_path(operation.path)
        if isinstance(operation, (Create, Set)) and len(operation.data) > NODE_BYTES_MAX:
            raise ValueError(f"{operation.path}: {len(operation.data)} bytes are more than one node may hold")


def operation_bytes(operation: Operation) -> int:
    """What an operation takes of MULTI_BYTES_MAX."""
    data = len(operation.data) if isinstance(operation, (Create, Set)) else 0
    return OPERATION_OVERHEAD_BYTES + len(operation.path.encode()) + data


def in_multis(operations: Iterable[Operation], guards: Sequence[Operation] = ()) -> Iterator[list[Operation]]:
    """Operations that need not apply together, in as few multis as any store takes, each with the guards before."""
    room = MULTI_BYTES_MAX - sum(map(operation_bytes, guards))
    multi, taken = [*guards], 0
    for operation in operations:
        size = operation_bytes(operation)
        if taken and taken + size > room:
            yield multi
            multi, taken = [*guards], 0
        multi.append(operation)
        taken += size
    if taken:
        yield multi


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or "/"


def is_at_or_below(path: str, folder: str) -> bool:
    return folder in ("/", path) or path.startswith(folder + "/")
