"""Windowed aggregates. `emit_on_close()`: one result for each window, when no record can change it any more; without it
every change is sent. `late_to(topic)`: records that no window takes go there."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.dsl.grouped import CogroupedKStream, KGroupedStream, one_more, ready_together, zero
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators.aggregates import Aggregator, Initializer
from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.sessions import Merger, SessionAggregate
from ottla.streams.operators.sliding import SlidingWindowAggregate
from ottla.streams.operators.windowed import LateRecords, TimeWindowAggregate
from ottla.streams.serdes import Serde, WindowedSerde
from ottla.streams.sql.aggregation import Aggregated, Aggregation
from ottla.streams.sql.statement import Sql
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.windows import Duration, SessionWindows, SlidingWindows, UnlimitedWindows, to_ms


class _Windowed:
    def __init__(
        self, graph: Graph, grouped: KGroupedStream | None, cogrouped: CogroupedKStream | None, windows: Any
    ) -> None:
        self._graph = graph
        self._grouped = grouped
        self._cogrouped = cogrouped
        self._windows = windows
        self._emits_on_close = False
        self._late_topic: str | None = None
        self._retention_ms: int = windows.retention_ms

    def emit_on_close(self) -> Self:
        if isinstance(self._windows, UnlimitedWindows):
            raise OttlaError("an unlimited window never closes: it cannot emit on close.")
        other = copy(self)
        other._emits_on_close = True
        return other

    @property
    def _store_retention_ms(self) -> int:
        """What has closed is still there when it is sent, however far time has jumped; the operator forgets it then."""
        return max(self._retention_ms, 2**53) if self._emits_on_close else self._retention_ms

    def late_to(self, topic: str) -> Self:
        """Records that come too late for all their windows go to this topic, as they came."""
        other = copy(self)
        other._late_topic = topic
        return other

    def retain(self, retention: Duration) -> Self:
        """For how long the store keeps windows; at least their size and grace, which is also the default."""
        ms = to_ms(retention, "retention")
        if ms < self._windows.retention_ms:
            raise OttlaError(f"windows are needed for {self._windows.retention_ms} ms: {ms} ms is too short.")
        other = copy(self)
        other._retention_ms = ms
        return other

    def _aggregation(self, statement: Sql) -> Aggregation:
        if self._grouped is None:
            raise OttlaError("cogrouped streams have an aggregator each, which is a function, not SQL.")
        stream = self._grouped._stream
        return statement.aggregation(stream.key_serde, stream.value_serde)

    def _late(self, stream: KStream) -> LateRecords | None:
        if self._late_topic is None:
            return None
        topic = self._late_topic
        self._graph.topology.late_topics.add(topic)
        return LateRecords(topic, serdes.writer(stream.key_serde, topic), serdes.writer(stream.value_serde, topic))

    def _table(
        self,
        value: Any,
        store: str | None,
        name: str | None,
        aggregator: Aggregator | None,
        spec: Callable[[str, Serde], StoreSpec],
        make: Callable[[str, Aggregator, OldValues, LateRecords | None], Any],
        key_serde: Callable[[Serde], WindowedSerde],
        close_ms: int,
    ) -> KTable:
        graph, topology = self._graph, self._graph.topology
        serde = value or graph.default_value
        if self._cogrouped is not None:
            if aggregator is not None:
                raise OttlaError(
                    "each of several cogrouped streams has an aggregator of its own: call `aggregate(initializer)`."
                )
            place = graph.name("COGROUPKSTREAM-AGGREGATE-STATE-STORE", store)
            streams = ready_together(self._cogrouped, place)
            topology.add_store(spec(place, streams[0].key_serde))
            late = self._late(streams[0])
            node, sources, old = self._cogrouped.merged(
                streams, place, name, lambda held, each, olds: make(held, each, olds, late)
            )
            inner = streams[0].key_serde
        else:
            assert self._grouped is not None
            if aggregator is None:
                raise OttlaError("an aggregate needs an aggregator(key, value, aggregate) beside its first value.")
            known = aggregator
            place = graph.name("KSTREAM-AGGREGATE-STATE-STORE", store)
            node, old = graph.name("KSTREAM-AGGREGATE", name), OldValues()
            stream = self._grouped.ready(place)
            late = self._late(stream)
            topology.add_store(spec(place, stream.key_serde))
            topology.add_operator(node, lambda: make(place, known, old, late), stream._node, stores=[place])
            sources, inner = stream._sources, stream.key_serde
        return KTable.of_store(graph, node, key_serde(inner), serde, sources, place, old, close_ms)


class TimeWindowedKStream(_Windowed):
    """Tumbling, hopping, sliding and unlimited windows."""

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        return self._aggregate(zero, one_more, serdes.integer, store, name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: str | None = None, name: str | None = None
    ) -> KTable:
        value = None if self._grouped is None else self._grouped._stream.value_serde
        return self._aggregate(_nothing, lambda key, each, before: _reduced(reducer, before, each), value, store, name)

    def aggregate(
        self,
        initializer: Initializer | Sql,
        aggregator: Aggregator | None = None,
        *,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """Of cogrouped streams without an aggregator: each has its own. Or `sql("count(*) AS orders")`."""
        if isinstance(initializer, Sql):
            found = self._aggregation(initializer)
            return self._aggregate(found.initial, found.add, found.serde(), store, name)
        return self._aggregate(initializer, aggregator, value, store, name)

    def _aggregate(
        self, initializer: Initializer, aggregator: Aggregator | None, value: Any, store: str | None, name: str | None
    ) -> KTable:
        windows, emits, retention_ms = self._windows, self._emits_on_close, self._retention_ms
        kind: Any = SlidingWindowAggregate if isinstance(windows, SlidingWindows) else TimeWindowAggregate

        def make(place: str, each: Aggregator, old: OldValues, late: LateRecords | None) -> Any:
            return kind(windows, place, initializer, each, old, emits, late, retention_ms)

        def spec(place: str, key: Serde) -> StoreSpec:
            return StoreSpec(
                place,
                StoreKind.WINDOW,
                key,
                value or self._graph.default_value,
                retention_ms=self._store_retention_ms,
                window_size_ms=windows.size_ms,
            )

        return self._table(
            value,
            store,
            name,
            aggregator,
            spec,
            make,
            lambda key: WindowedSerde(key, None if isinstance(windows, UnlimitedWindows) else windows.size_ms),
            windows.grace_ms,
        )


class SessionWindowedKStream(_Windowed):
    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        return self._aggregate(zero, one_more, _sum, serdes.integer, store, name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: str | None = None, name: str | None = None
    ) -> KTable:
        value = None if self._grouped is None else self._grouped._stream.value_serde

        def add(key: Any, each: Any, before: Any) -> Any:
            return _reduced(reducer, before, each)

        def merge(key: Any, one: Any, other: Any) -> Any:
            return _reduced(reducer, one, other)

        return self._aggregate(_nothing, add, merge, value, store, name)

    def aggregate(
        self,
        initializer: Initializer | Sql,
        aggregator: Aggregator | None = None,
        merger: Merger | None = None,
        *,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`merger(key, one, other)` makes one aggregate of those of two sessions that become one. Or
        `sql("count(*) AS orders")` instead of all three."""
        if isinstance(initializer, Sql):
            found = self._aggregation(initializer)
            joined: Merger = lambda key, one, other: found.add(key, Aggregated(other), one)  # noqa: E731
            return self._aggregate(found.initial, found.add, joined, found.serde(), store, name)
        if merger is None:
            raise OttlaError("sessions need a `merger(key, one, other)`: two of them may become one.")
        return self._aggregate(initializer, aggregator, merger, value, store, name)

    def _aggregate(
        self,
        initializer: Initializer,
        aggregator: Aggregator | None,
        merger: Merger,
        value: Any,
        store: str | None,
        name: str | None,
    ) -> KTable:
        windows: SessionWindows = self._windows
        emits, retention_ms = self._emits_on_close, self._retention_ms

        def make(place: str, each: Aggregator, old: OldValues, late: LateRecords | None) -> Any:
            return SessionAggregate(windows, place, initializer, each, merger, old, emits, late, retention_ms)

        def spec(place: str, key: Serde) -> StoreSpec:
            serde: Any = value or self._graph.default_value
            return StoreSpec(place, StoreKind.SESSION, key, serde, retention_ms=self._store_retention_ms)

        return self._table(
            value,
            store,
            name,
            aggregator,
            spec,
            make,
            lambda key: WindowedSerde(key, is_session=True),
            windows.gap_ms + windows.grace_ms,
        )


def _nothing() -> None:
    return None


def _sum(key: Any, one: int, other: int) -> int:
    return one + other


def _reduced(reducer: Callable[[Any, Any], Any], before: Any, value: Any) -> Any:
    """As Kafka Streams does it: a reducer of windows also sees records without a value."""
    return value if before is None else reducer(before, value)
