"""Joins with tables: a stream looks keys up, and two tables that change each other's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.tables import Get, StoreChoice, View
from ottla.streams.processing.context import DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import NO_TIMESTAMP, Change, Headers

# left value, right value
Joiner = Callable[[Any, Any], Any]


class StreamTableJoin(Operator):
    """Only records of the stream give results. `key_of` says what is looked up, in a global table something else than
    the record's key."""

    def __init__(
        self,
        view: View,
        joiner: Callable[[Any, Any, Any], Any],
        key_of: Callable[[Any, Any], Any] | None,
        is_left: bool,
    ) -> None:
        self._view = view
        self._joiner = joiner
        self._key_of = key_of
        self._is_left = is_left

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._get = self._view(context)

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        wanted = key if self._key_of is None else self._key_of(key, value)
        if value is None or (wanted is None and not self._is_left):
            self._context.drop(DROPPED_NULL)
            return
        # As of the record's time, where the table knows it.
        found = None if wanted is None else self._get(wanted, timestamp)[0]
        if found is not None or self._is_left:
            self.forward(key, self._joiner(key, value, found), timestamp, headers)


class TableJoinSide(Operator):
    """Changes of one of two tables. `sends_own` and `sends_other`: whether a result needs no partner of that side."""

    def __init__(
        self, other: View, joiner: Joiner, *, is_left: bool, needs_own: bool, needs_other: bool, old: OldValues
    ) -> None:
        self._other = other
        self._joiner = joiner if is_left else lambda own, partner: joiner(partner, own)
        self._needs_own = needs_own
        self._needs_other = needs_other
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._get = self._other(context)

    def _result(self, own: Any, partner: Any) -> Any:
        if (own is None and (self._needs_own or partner is None)) or (partner is None and self._needs_other):
            return None
        return self._joiner(own, partner)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.drop(DROPPED_NULL)
            return
        if not change.is_latest:
            return
        partner, partner_ms = self._get(key)
        if partner is None and (self._needs_other or (change.new is None and change.old is None)):
            return
        old = self._result(change.old, partner) if self._sends_old else None
        time_ms = max(timestamp, partner_ms) if partner is not None else timestamp
        self.forward(key, Change(self._result(change.new, partner), old), time_ms, headers)


class TableJoinMerger(Operator):
    """Where both sides meet; the store of the result, if it has one."""

    def __init__(self, store: StoreChoice, old: OldValues) -> None:
        self._store_name = store.name
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._store = None if self._store_name is None else context.store(self._store_name)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if self._store is None:
            self.forward(key, change, timestamp, headers)
            return
        place = self._store.key_bytes(key)
        old = self._store.at(place)[0] if self._sends_old else None
        self._store.put_at(place, change.new, timestamp)
        self.forward(key, Change(change.new, old), timestamp, headers)


def joined_view(left: View, right: View, joiner: Joiner, *, needs_left: bool, needs_right: bool) -> View:
    def open_view(context: TaskContext) -> Get:
        get_left, get_right = left(context), right(context)

        def joined(key: Any, at: int | None = None) -> tuple[Any, int]:
            one, one_ms = get_left(key)
            other, other_ms = get_right(key)
            is_missing = (one is None and (needs_left or other is None)) or (other is None and needs_right)
            return (None, NO_TIMESTAMP) if is_missing else (joiner(one, other), max(one_ms, other_ms))

        return joined

    return open_view
