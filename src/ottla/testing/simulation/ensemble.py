"""ZooKeeper's servers as one: a tree of versioned nodes, its past, and the sessions that hold ephemeral nodes.

Clients read from servers that lag behind, so the last states are kept. A session ends when nothing was heard of it for
its time-out; while no server answers, that time does not pass, as with a ZooKeeper that has no quorum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from ottla.metastore.port import (
    ANY_VERSION,
    Check,
    Conflict,
    Create,
    Delete,
    Operation,
    Set,
    StoreConflict,
    check_path,
    parent_of,
)
from ottla.testing.simulation.loop import SimulatedLoop

_STATES_KEPT = 64


@dataclass(frozen=True, slots=True)
class StoredNode:
    data: bytes
    version: int
    # The session that it goes with.
    owner: int | None = None


Tree = dict[str, StoredNode]


@dataclass(slots=True)
class EnsembleSession:
    number: int
    timeout_s: float
    expires_at_s: float
    is_over: bool = False


@dataclass(slots=True)
class Ensemble:
    loop: SimulatedLoop
    is_up: bool = True
    # How many changes there were: ZooKeeper's zxid.
    changes: int = 0
    tree: Tree = field(default_factory=lambda: {"/": StoredNode(b"", 0)})
    # Told of each change: its number, and the paths.
    on_change: list[Callable[[int, list[str]], None]] = field(default_factory=list)
    on_expiry: Callable[[EnsembleSession], None] = lambda session: None
    _states: deque[tuple[int, Tree]] = field(default_factory=lambda: deque(maxlen=_STATES_KEPT))
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _sessions: dict[int, EnsembleSession] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._states.append((0, self.tree))

    # --- sessions

    def begin(self, timeout_s: float) -> EnsembleSession:
        session = EnsembleSession(next(self._numbers), timeout_s, self.loop.time() + timeout_s)
        self._sessions[session.number] = session
        self._watch_over(session)
        return session

    def heard_of(self, session: EnsembleSession) -> None:
        session.expires_at_s = self.loop.time() + session.timeout_s

    def _watch_over(self, session: EnsembleSession) -> None:
        if session.is_over:
            return
        left_s = session.expires_at_s - self.loop.time()
        if left_s <= 0:
            if self.is_up:
                self.on_expiry(session)
                self.end(session)
                return
            left_s = session.timeout_s
        self.loop.call_later(left_s, self._watch_over, session)

    def end(self, session: EnsembleSession) -> None:
        if not session.is_over:
            session.is_over = True
            del self._sessions[session.number]
            for path in [path for path, node in self.tree.items() if node.owner == session.number]:
                self._become({known: node for known, node in self.tree.items() if known != path}, [path])

    def return_to_service(self) -> None:
        """Sessions get their whole time again."""
        self.is_up = True
        for session in self._sessions.values():
            self.heard_of(session)

    @property
    def sessions(self) -> list[EnsembleSession]:
        return list(self._sessions.values())

    # --- nodes

    def as_of(self, change: int) -> tuple[int, Tree]:
        """The state after this change, or the oldest that is kept."""
        for number, tree in self._states:
            if number >= change:
                return number, tree
        return self._states[-1]

    def apply(self, operations: Sequence[Operation], session: EnsembleSession | None) -> list[int]:
        tree = dict(self.tree)
        owner = session.number if session is not None else None
        versions = [_apply(tree, index, operation, owner) for index, operation in enumerate(operations)]
        changed = [operation.path for operation in operations if not isinstance(operation, Check)]
        if changed:
            self._become(tree, changed)
        return versions

    def _become(self, tree: Tree, changed: list[str]) -> None:
        self.tree = tree
        self.changes += 1
        self._states.append((self.changes, tree))
        for callback in self.on_change:
            callback(self.changes, changed)


def _apply(tree: Tree, index: int, operation: Operation, owner: int | None) -> int:
    path = operation.path
    check_path(path)
    node = tree.get(path)
    if isinstance(operation, Create):
        if node is not None:
            raise StoreConflict(Conflict.NODE_EXISTS, index, operation)
        parent = tree.get(parent_of(path))
        if parent is None or parent.owner is not None:
            raise StoreConflict(Conflict.NO_NODE, index, operation)
        tree[path] = StoredNode(operation.data, 0, owner if operation.ephemeral else None)
        return 0
    if node is None:
        raise StoreConflict(Conflict.NO_NODE, index, operation)
    if operation.version not in (ANY_VERSION, node.version):
        raise StoreConflict(Conflict.BAD_VERSION, index, operation)
    if isinstance(operation, Set):
        tree[path] = StoredNode(operation.data, node.version + 1, node.owner)
        return node.version + 1
    if isinstance(operation, Delete):
        if any(True for _ in names_below(tree, path)):
            raise StoreConflict(Conflict.NOT_EMPTY, index, operation)
        del tree[path]
        return -1
    return node.version if operation.version != ANY_VERSION else -1


def names_below(tree: Tree, path: str) -> Iterable[str]:
    prefix = path if path == "/" else path + "/"
    return (
        known[len(prefix) :]
        for known in tree
        if known != "/" and known.startswith(prefix) and "/" not in known[len(prefix) :]
    )
