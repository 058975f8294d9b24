"""Grouped streams and tables: what is aggregated. A group's key is in the partition that it belongs to, through a topic
of the application if it was changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.dsl.checks import check_function, refuse_other
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators.aggregates import Aggregate, Aggregator, Initializer, Reduce, TableAggregate, TableReduce
from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.stateless import PassThrough
from ottla.streams.serdes import Serde
from ottla.streams.sql.statement import Sql
from ottla.streams.sql.steps import Folded, NativeStep
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from ottla.streams.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream


def zero() -> int:
    return 0


def one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


def one_less(key: Any, value: Any, count: int) -> int:
    return count - 1


class KGroupedStream:
    def __init__(self, graph: Graph, stream: KStream, name: str | None) -> None:
        self._graph = graph
        self._stream = stream
        self._name = name
        self._is_ready = False

    def ready(self, store: str) -> KStream:
        """Each record in the partition of its key; one topic for all that is made of the same group."""
        if not self._is_ready:
            self._stream = self._stream._by_key(self._name or store)
            self._is_ready = True
        return self._stream

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        return self._aggregate(zero, one_more, serdes.integer, store, name)

    def aggregate(
        self,
        initializer: Initializer | Sql,
        aggregator: Aggregator | None = None,
        *,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`aggregator(key, value, aggregate)` gives the next aggregate; None deletes. Or instead of both
        `sql("count(*) AS orders, sum(amount) AS total")`: rows of count, sum, min and max."""
        if isinstance(initializer, Sql):
            return self._sql_aggregate(initializer, store, name)
        if aggregator is None:
            raise OttlaError("an aggregate needs an aggregator(key, value, aggregate) beside its first value.")
        check_function(initializer, "aggregate")
        return self._aggregate(initializer, aggregator, value, store, name)

    def _sql_aggregate(self, statement: Sql, store: str | None, name: str | None) -> KTable:
        aggregation = statement.aggregation(self._stream.key_serde, self._stream.value_serde)
        serde = aggregation.serde()
        return self._table(
            "KSTREAM-AGGREGATE",
            serde,
            store,
            name,
            lambda place, old: Aggregate(place, aggregation.initial, aggregation.add, old),
            native=NativeStep(Folded(aggregation), self._stream.key_serde, serde, statement.text),
        )

    def _aggregate(
        self, initializer: Initializer, aggregator: Aggregator, value: Any, store: str | None, name: str | None
    ) -> KTable:
        return self._table(
            "KSTREAM-AGGREGATE",
            value or self._graph.default_value,
            store,
            name,
            lambda place, old: Aggregate(place, initializer, aggregator, old),
        )

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: str | None = None, name: str | None = None
    ) -> KTable:
        """`reducer(aggregate, value)`; the first value of a key is its first aggregate."""
        value = self._stream.value_serde
        return self._table("KSTREAM-REDUCE", value, store, name, lambda place, old: Reduce(place, reducer, old))

    def _table(
        self,
        kind: str,
        value: Serde,
        store: str | None,
        name: str | None,
        make: Callable[[str, OldValues], Any],
        *,
        native: NativeStep | None = None,
    ) -> KTable:
        graph, old = self._graph, OldValues()
        place = graph.name(f"{kind}-STATE-STORE", store)
        node = graph.name(kind, name)
        stream = self.ready(place)
        graph.topology.add_store(StoreSpec(place, StoreKind.TIMESTAMPED, stream.key_serde, value))
        graph.topology.add_operator(node, lambda: make(place, old), stream._node, stores=[place], native=native)
        return KTable.of_store(graph, node, stream.key_serde, value, stream._sources, place, old)

    def windowed_by(self, windows: TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows) -> Any:
        return windowed(self._graph, self, windows)

    def cogroup(self, aggregator: Aggregator) -> CogroupedKStream:
        """The beginning of an aggregate of several streams: `a.cogroup(f).cogroup(b, g).aggregate(...)`."""
        return CogroupedKStream(self._graph, [(self, aggregator)])


class CogroupedKStream:
    def __init__(self, graph: Graph, parts: Sequence[tuple[KGroupedStream, Aggregator]]) -> None:
        self._graph = graph
        self.parts = list(parts)

    def cogroup(self, grouped: KGroupedStream, aggregator: Aggregator) -> CogroupedKStream:
        refuse_other(self._graph, grouped._graph)
        return CogroupedKStream(self._graph, [*self.parts, (grouped, aggregator)])

    def aggregate(
        self, initializer: Initializer, *, value: Serde | None = None, store: str | None = None, name: str | None = None
    ) -> KTable:
        check_function(initializer, "aggregate")

        def make(place: str, aggregator: Aggregator, old: OldValues) -> Any:
            return Aggregate(place, initializer, aggregator, old)

        graph = self._graph
        serde: Any = value or graph.default_value
        place = graph.name("COGROUPKSTREAM-AGGREGATE-STATE-STORE", store)
        streams = ready_together(self, place)
        graph.topology.add_store(StoreSpec(place, StoreKind.TIMESTAMPED, streams[0].key_serde, serde))
        node, sources, old = self.merged(streams, place, name, make)
        return KTable.of_store(graph, node, streams[0].key_serde, serde, sources, place, old)

    def merged(
        self,
        streams: Sequence[KStream],
        place: str,
        name: str | None,
        make: Callable[[str, Aggregator, OldValues], Any],
    ) -> tuple[str, frozenset[str], OldValues]:
        """A node for each stream, all with one store, and the node where their results meet."""
        topology, old = self._graph.topology, OldValues()
        nodes = []
        for stream, (_, aggregator) in zip(streams, self.parts, strict=True):
            nodes.append(self._graph.name("COGROUPKSTREAM-AGGREGATE"))
            topology.add_operator(nodes[-1], partial(make, place, aggregator, old), stream._node, stores=[place])
        merge = self._graph.name("COGROUPKSTREAM-MERGE", name)
        topology.add_operator(merge, PassThrough, nodes)
        return merge, frozenset().union(*(stream._sources for stream in streams)), old

    def windowed_by(self, windows: TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows) -> Any:
        return windowed(self._graph, self, windows)


def ready_together(cogrouped: CogroupedKStream, place: str) -> list[KStream]:
    streams = [
        grouped.ready(f"{place}-{number}") if len(cogrouped.parts) > 1 else grouped.ready(place)
        for number, (grouped, _) in enumerate(cogrouped.parts)
    ]
    sources: frozenset[str] = frozenset().union(*(stream._sources for stream in streams))
    cogrouped._graph.topology.copartitioned.append(tuple(sorted(sources)))
    return streams


def windowed(graph: Graph, grouped: Any, windows: Any) -> TimeWindowedKStream | SessionWindowedKStream:
    from ottla.streams.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream

    if not isinstance(windows, TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows):
        raise OttlaError(f"windowed_by takes windows, as TimeWindows.of(1000), not {type(windows).__name__}.")
    cogrouped = grouped if isinstance(grouped, CogroupedKStream) else None
    kind = SessionWindowedKStream if isinstance(windows, SessionWindows) else TimeWindowedKStream
    return kind(graph, None if cogrouped is not None else grouped, cogrouped, windows)


class KGroupedTable:
    def __init__(self, graph: Graph, stream: KStream, value: Serde, name: str | None) -> None:
        self._graph = graph
        self._stream = stream
        self._value = value
        self._name = name

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        return self.aggregate(zero, one_more, one_less, value=serdes.integer, store=store, name=name)

    def aggregate(
        self,
        initializer: Initializer,
        adder: Aggregator,
        subtractor: Aggregator,
        *,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`adder` and `subtractor` get (group, value, aggregate): what a key has now, and what it had."""
        check_function(initializer, "aggregate")
        serde: Any = value or self._graph.default_value
        return self._table(
            serde, store, name, lambda place, old: TableAggregate(place, initializer, adder, subtractor, old)
        )

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        return self._table(self._value, store, name, lambda place, old: TableReduce(place, adder, subtractor, old))

    def _table(
        self, value: Serde, store: str | None, name: str | None, make: Callable[[str, OldValues], Any]
    ) -> KTable:
        graph, old = self._graph, OldValues()
        place = graph.name("KTABLE-AGGREGATE-STATE-STORE", store)
        node = graph.name("KTABLE-AGGREGATE", name)
        stream = self._stream._through(self._name or place, drops_null_keys=False)
        graph.topology.add_store(StoreSpec(place, StoreKind.TIMESTAMPED, stream.key_serde, value))
        graph.topology.add_operator(node, lambda: make(place, old), stream._node, stores=[place])
        return KTable.of_store(graph, node, stream.key_serde, value, stream._sources, place, old)
