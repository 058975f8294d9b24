"""Aggregation of streams by key, without windows. The time of a result is the latest of all that went into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.operators.old_values import OldValues
from ottla.streams.processing.context import DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Change, Headers, latest

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]


class Aggregate(Operator):
    def __init__(self, store: str, initializer: Initializer, aggregator: Aggregator, old: OldValues) -> None:
        self._store_name = store
        self._initializer = initializer
        self._aggregator = aggregator
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._context = context
        store = context.store(self._store_name)
        self._key_bytes, self._at, self._put = store.key_bytes, store.at, store.put_at

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._context.drop(DROPPED_NULL)
            return
        place = self._key_bytes(key)
        before, before_ms = self._at(place)
        # Read once more: an aggregator may change the object that it is given.
        old = self._at(place)[0] if self._sends_old else None
        if before is None:
            before = self._initializer()
        elif before_ms > timestamp:
            timestamp = before_ms
        after = self._aggregator(key, value, before)
        self._put(place, after, timestamp)
        self.forward(key, latest(after, old), timestamp, headers)


class Reduce(Operator):
    def __init__(self, store: str, reducer: Callable[[Any, Any], Any], old: OldValues) -> None:
        self._store_name = store
        self._reducer = reducer
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._context = context
        store = context.store(self._store_name)
        self._key_bytes, self._at, self._put = store.key_bytes, store.at, store.put_at

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._context.drop(DROPPED_NULL)
            return
        place = self._key_bytes(key)
        before, before_ms = self._at(place)
        old = self._at(place)[0] if self._sends_old else None
        after = value if before is None else self._reducer(before, value)
        timestamp = max(timestamp, before_ms)
        self._put(place, after, timestamp)
        self.forward(key, Change(after, old), timestamp, headers)


class TableAggregate(Operator):
    """Of a grouped table: what a key had is taken out of its group, what it has now is put into its group."""

    def __init__(
        self, store: str, initializer: Initializer, adder: Aggregator, subtractor: Aggregator, old: OldValues
    ) -> None:
        self._store_name = store
        self._initializer = initializer
        self._adder = adder
        self._subtractor = subtractor
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._store = context.store(self._store_name)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        place = self._store.key_bytes(key)
        before, before_ms = self._store.at(place)
        old = self._store.at(place)[0] if self._sends_old else None
        after, time_ms = before, timestamp
        if change.old is not None and before is not None:
            after = self._subtractor(key, change.old, before)
            time_ms = max(timestamp, before_ms)
        if change.new is not None:
            if after is None:
                after = self._initializer()
            after = self._adder(key, change.new, after)
            time_ms = max(timestamp, before_ms)
        self._store.put_at(place, after, time_ms)
        self.forward(key, Change(after, old), time_ms, headers)


class TableReduce(Operator):
    def __init__(
        self, store: str, adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any], old: OldValues
    ) -> None:
        self._store_name = store
        self._adder = adder
        self._subtractor = subtractor
        self._sends_old = old.are_sent

    def init(self, context: TaskContext) -> None:
        self._store = context.store(self._store_name)

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        place = self._store.key_bytes(key)
        before, before_ms = self._store.at(place)
        old = self._store.at(place)[0] if self._sends_old else None
        after, time_ms = before, timestamp
        if change.old is not None and before is not None:
            after = self._subtractor(before, change.old)
            time_ms = max(timestamp, before_ms)
        if change.new is not None:
            if after is None:
                after = change.new
            else:
                after = self._adder(after, change.new)
                time_ms = max(timestamp, before_ms)
        self._store.put_at(place, after, time_ms)
        self.forward(key, Change(after, old), time_ms, headers)
