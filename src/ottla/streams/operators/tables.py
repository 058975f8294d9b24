"""Tables: a topic as a table, filters and maps of tables, and what is between tables and streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.stateless import pair_of
from ottla.streams.processing.context import DROPPED_LATE, DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import NO_TIMESTAMP, Change, Headers
from ottla.streams.state.specs import StoreKind

# Value and time of a key, now or, of a versioned table, at the time that is the second argument.
Get = Callable[..., tuple[Any, int]]
View = Callable[[TaskContext], Get]


class StoreChoice:
    """The store of a table, if it has one: known when the whole topology is."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name


class TableSource(Operator):
    def __init__(self, store: StoreChoice, old: OldValues) -> None:
        self._store_name = store.name
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._store = None if self._store_name is None else context.store(self._store_name)
        self._is_versioned = self._store is not None and self._store.spec.kind is StoreKind.VERSIONED

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.drop(DROPPED_NULL)
            return
        if self._store is None:
            self.forward(key, Change(value, None), timestamp, headers)
            return
        place = self._store.key_bytes(key)
        old = self._store.at(place)[0] if self._sends_old else None
        is_latest = self._store.put_at(place, value, timestamp)
        if not self._is_versioned:
            self.forward(key, Change(value, old), timestamp, headers)
        elif is_latest is None:
            self._context.drop(DROPPED_LATE)
        else:
            self.forward(key, Change(value, old, is_latest), timestamp, headers)


class TableFilter(Operator):
    def __init__(
        self,
        predicate: Callable[[Any, Any], bool],
        wanted: bool,
        store: StoreChoice,
        old: OldValues,
    ) -> None:
        self._predicate = predicate
        self._wanted = wanted
        self._store_name = store.name
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._store = None if self._store_name is None else context.store(self._store_name)

    def _kept(self, key: Any, value: Any) -> Any:
        return value if value is not None and bool(self._predicate(key, value)) is self._wanted else None

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        new, old = self._kept(key, change.new), None
        place = None if self._store is None else self._store.key_bytes(key)
        if self._sends_old:
            old = self._kept(key, change.old) if self._store is None else self._store.at(place)[0]
            if old is None and new is None:
                return
        if self._store is not None:
            self._store.put_at(place, new, timestamp)
        self.forward(key, Change(new, old, change.is_latest), timestamp, headers)


class TableMapValues(Operator):
    def __init__(self, mapper: Callable[[Any, Any], Any], store: StoreChoice, old: OldValues) -> None:
        self._mapper = mapper
        self._store_name = store.name
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._store = None if self._store_name is None else context.store(self._store_name)

    def _mapped(self, key: Any, value: Any) -> Any:
        return None if value is None else self._mapper(key, value)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        new, old = self._mapped(key, change.new), None
        place = None if self._store is None else self._store.key_bytes(key)
        if self._sends_old:
            old = self._mapped(key, change.old) if self._store is None else self._store.at(place)[0]
        if self._store is not None:
            self._store.put_at(place, new, timestamp)
        self.forward(key, Change(new, old, change.is_latest), timestamp, headers)


class TableToStream(Operator):
    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        self.forward(key, change.new, timestamp, headers)


class TableGroup(Operator):
    """Before the repartition topic of a grouped table: out of the old group, into the new one."""

    def __init__(self, selector: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._selector = selector

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = pair_of(self._selector(key, value), "group_by")
        return pair if pair[0] is not None and pair[1] is not None else None

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if not change.is_latest:
            return  # what a group has now is of later values
        new, old = self._pair(key, change.new), self._pair(key, change.old)
        if new is not None and old is not None and new[0] == old[0]:
            self.forward(new[0], Change(new[1], old[1]), timestamp, headers)
            return
        if old is not None:
            self.forward(old[0], Change(None, old[1]), timestamp, headers)
        if new is not None:
            self.forward(new[0], Change(new[1], None), timestamp, headers)


class ChangeSerde:
    """Both values of a change through a repartition topic: a length and a value, twice; -1 is none."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def serialize(self, topic: str, value: Change) -> bytes:
        return b"".join(self._part(topic, each) for each in (value.new, value.old))

    def _part(self, topic: str, value: Any) -> bytes:
        if value is None:
            return (-1).to_bytes(4, "big", signed=True)
        data: bytes = self.inner.serialize(topic, value)
        return len(data).to_bytes(4, "big", signed=True) + data

    def deserialize(self, topic: str, data: bytes) -> Change:
        values = []
        place = 0
        for _ in range(2):
            size = int.from_bytes(data[place : place + 4], "big", signed=True)
            place += 4
            values.append(None if size < 0 else self.inner.deserialize(topic, data[place : place + size]))
            place += max(0, size)
        return Change(values[0], values[1])


# --- what a table has for a key now, for joins


def store_view(store: StoreChoice) -> View:
    def open_view(context: TaskContext) -> Get:
        assert store.name is not None
        opened = context.store(store.name)
        return _LOOK_UPS.get(opened.spec.kind, _look_up_key)(opened)

    return open_view


def _look_up_key(store: Any) -> Get:
    return lambda key, at=None: store.at(store.key_bytes(key))


def _look_up_version(store: Any) -> Get:
    return lambda key, at=None: store.at(store.key_bytes(key), at)


def _look_up_window(store: Any) -> Get:
    return lambda key, at=None: store.at(store.key_bytes(key.key), key.window.start)


def _look_up_session(store: Any) -> Get:
    return lambda key, at=None: (store.fetch_session(key.key, *key.window), key.window.end)


_LOOK_UPS = {
    StoreKind.WINDOW: _look_up_window,
    StoreKind.SESSION: _look_up_session,
    StoreKind.VERSIONED: _look_up_version,
}


def filtered_view(parent: View, predicate: Callable[[Any, Any], bool], wanted: bool) -> View:
    def open_view(context: TaskContext) -> Get:
        get = parent(context)

        def filtered(key: Any, at: int | None = None) -> tuple[Any, int]:
            value, time_ms = get(key, at)
            keeps = value is not None and bool(predicate(key, value)) is wanted
            return (value, time_ms) if keeps else (None, NO_TIMESTAMP)

        return filtered

    return open_view


def mapped_view(parent: View, mapper: Callable[[Any, Any], Any]) -> View:
    def open_view(context: TaskContext) -> Get:
        get = parent(context)

        def mapped(key: Any, at: int | None = None) -> tuple[Any, int]:
            value, time_ms = get(key, at)
            return (None, NO_TIMESTAMP) if value is None else (mapper(key, value), time_ms)

        return mapped

    return open_view
