"""`KStream`: records, one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams.dsl import expressions
from ottla.streams.dsl.checks import check_function, refuse_other
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators import stateless
from ottla.streams.operators.batches import BatchFunction, MapBatches
from ottla.streams.processing.processor import ProcessorOperator, check_supplier
from ottla.streams.serdes import Serde
from ottla.streams.sql.statement import Sql
from ottla.streams.sql.steps import NativeStep, has_key
from ottla.streams.topology import InternalTopic, Partitioner
from ottla.streams.windows import JoinWindows

if TYPE_CHECKING:
    from ottla.streams.dsl.grouped import KGroupedStream
    from ottla.streams.dsl.ktable import GlobalKTable, KTable


class KStream:
    def __init__(
        self, graph: Graph, node: str, key: Serde, value: Serde, sources: frozenset[str], *, is_rekeyed: bool = False
    ) -> None:
        self._graph = graph
        self._node = node
        self.key_serde = key
        self.value_serde = value
        # Where its records come from: they must have equally many partitions to be joined with others.
        self._sources = sources
        # Whether records may lie in another partition than that of their key.
        self._is_rekeyed = is_rekeyed

    def _next(
        self,
        kind: str,
        name: str | None,
        make: Callable[[], Any],
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        rekeys: bool = False,
        stores: Sequence[str] = (),
        native: NativeStep | None = None,
    ) -> KStream:
        node = self._graph.name(kind, name)
        self._graph.topology.add_operator(node, make, self._node, stores=stores, native=native)
        return KStream(
            self._graph,
            node,
            key or self.key_serde,
            value or self.value_serde,
            self._sources,
            is_rekeyed=self._is_rekeyed or rekeys,
        )

    @property
    def _key(self) -> Any:
        return self._graph.default_key

    @property
    def _value(self) -> Any:
        return self._graph.default_value

    # --- one record at a time

    def filter(self, predicate: Callable[[Any, Any], bool] | Sql, *, name: str | None = None) -> KStream:
        """`predicate(key, value)`, or `sql("amount > 100")`."""
        return self._filter(predicate, name, wanted=True)

    def filter_not(self, predicate: Callable[[Any, Any], bool] | Sql, *, name: str | None = None) -> KStream:
        """Also what is NULL in SQL passes: it is not true."""
        return self._filter(predicate, name, wanted=False)

    def _filter(self, predicate: Callable[[Any, Any], bool] | Sql, name: str | None, *, wanted: bool) -> KStream:
        if isinstance(predicate, Sql):
            make, step = expressions.sql_filter(predicate, self.key_serde, self.value_serde, wanted=wanted)
            return self._next("KSTREAM-FILTER", name, make, native=step)
        check_function(predicate, "filter")
        return self._next("KSTREAM-FILTER", name, lambda: stateless.Filter(predicate, wanted=wanted))

    def map(self, mapper: Callable[[Any, Any], tuple[Any, Any]], *, name: str | None = None) -> KStream:
        """`mapper(key, value)` gives (key, value)."""
        check_function(mapper, "map")
        make = lambda: stateless.Map(mapper)  # noqa: E731
        return self._next("KSTREAM-MAP", name, make, key=self._key, value=self._value, rekeys=True)

    def map_values(self, mapper: Callable[..., Any] | Sql, *, name: str | None = None) -> KStream:
        """`mapper(value)`, or `mapper(key, value)` if it takes two; or columns of a new row,
        `sql("*, amount * 2 AS twice")`."""
        if isinstance(mapper, Sql):
            make, step = expressions.sql_row(mapper, self.key_serde, self.value_serde)
            return self._next("KSTREAM-MAPVALUES", name, make, value=step.value_serde, native=step)
        return self._next("KSTREAM-MAPVALUES", name, values_operator(mapper), value=self._value)

    def flat_map(self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]], *, name: str | None = None) -> KStream:
        check_function(mapper, "flat_map")
        make = lambda: stateless.FlatMap(mapper)  # noqa: E731
        return self._next("KSTREAM-FLATMAP", name, make, key=self._key, value=self._value, rekeys=True)

    def flat_map_values(self, mapper: Callable[..., Iterable[Any]], *, name: str | None = None) -> KStream:
        """`mapper(value)`, or `mapper(key, value)` if it takes two, gives any number of values."""
        check_function(mapper, "flat_map_values")
        make: Callable[[], Any] = lambda: stateless.FlatMapValues(mapper)  # noqa: E731
        if argument_count(mapper, 1) == 2:
            make = lambda: stateless.FlatMapValuesWithKey(mapper)  # noqa: E731
        return self._next("KSTREAM-FLATMAPVALUES", name, make, value=self._value)

    def select_key(self, selector: Callable[[Any, Any], Any] | Sql, *, name: str | None = None) -> KStream:
        """`selector(key, value)`, or `sql("customer")`."""
        if isinstance(selector, Sql):
            chosen, step = expressions.sql_key(selector, self.key_serde, self.value_serde)
            return self._next("KSTREAM-KEY-SELECT", name, chosen, key=step.key_serde, rekeys=True, native=step)
        check_function(selector, "select_key")
        make = lambda: stateless.SelectKey(selector)  # noqa: E731
        return self._next("KSTREAM-KEY-SELECT", name, make, key=self._key, rekeys=True)

    def map_batches(self, function: BatchFunction, *, size: int = 1_000, name: str | None = None) -> KStream:
        """`function(batch)` gets up to `size` records at once, as columns (`batch.keys values timestamps`), and gives
        as many values, or a `Batch` of any length. `ottla.streams.batches` has forms for Arrow and pandas.

        Records of a task wait until there are enough of them, or for the end of the micro-batch: timers and branches
        beside it do not wait for them. A function that fails ends the micro-batch.
        """
        if size < 1:
            raise OttlaError(f"a batch has at least one record, not {size}.")
        check_function(function, "map_batches")
        make = lambda: MapBatches(function, size)  # noqa: E731
        return self._next("KSTREAM-MAPBATCHES", name, make, key=self._key, value=self._value, rekeys=True)

    def peek(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> KStream:
        check_function(action, "peek")
        return self._next("KSTREAM-PEEK", name, lambda: stateless.Peek(action))

    def foreach(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> None:
        check_function(action, "foreach")
        self._next("KSTREAM-FOREACH", name, lambda: stateless.Peek(action))

    def process(self, supplier: Callable[[], Any], *, stores: Sequence[str] = (), name: str | None = None) -> KStream:
        """`supplier` makes a `Processor`. It may change keys: a grouping or join after it goes through a topic."""
        check_supplier(supplier)
        node = self._graph.name("KSTREAM-PROCESSOR", name)
        make = lambda: ProcessorOperator(supplier, node)  # noqa: E731
        self._graph.topology.add_operator(node, make, self._node, stores=stores, is_processor=True)
        return KStream(self._graph, node, self._key, self._value, self._sources, is_rekeyed=True)

    def process_values(
        self, supplier: Callable[[], Any], *, stores: Sequence[str] = (), name: str | None = None
    ) -> KStream:
        """As `process`, for a `Processor` that leaves keys as they are."""
        check_supplier(supplier)
        node = self._graph.name("KSTREAM-PROCESSVALUES", name)
        make = lambda: ProcessorOperator(supplier, node, keeps_key=True)  # noqa: E731
        self._graph.topology.add_operator(node, make, self._node, stores=stores, is_processor=True)
        return KStream(self._graph, node, self.key_serde, self._value, self._sources, is_rekeyed=self._is_rekeyed)

    def with_serdes(self, *, key: Serde | None = None, value: Serde | None = None) -> KStream:
        """The same stream; what is written of it later is written so."""
        return KStream(
            self._graph,
            self._node,
            key or self.key_serde,
            value or self.value_serde,
            self._sources,
            is_rekeyed=self._is_rekeyed,
        )

    # --- several streams

    def merge(self, other: KStream, *, name: str | None = None) -> KStream:
        """Records of both, in no particular order between them."""
        refuse_other(self._graph, other._graph)
        node = self._graph.name("KSTREAM-MERGE", name)
        self._graph.topology.add_operator(node, stateless.PassThrough, [self._node, other._node])
        return KStream(
            self._graph,
            node,
            self.key_serde,
            self.value_serde,
            self._sources | other._sources,
            is_rekeyed=self._is_rekeyed or other._is_rekeyed,
        )

    def split(self, *, name: str | None = None) -> BranchedKStream:
        return BranchedKStream(self, name)

    # --- through topics

    def to(
        self,
        topic: str | Callable[..., str],
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        partitioner: Partitioner | None = None,
        name: str | None = None,
    ) -> None:
        """To a topic, or to that which `topic(key, value, record_metadata)` names for each record."""
        self._graph.topology.add_sink(
            self._graph.name("KSTREAM-SINK", name),
            topic,
            self._node,
            key=key or self.key_serde,
            value=value or self.value_serde,
            partitioner=partitioner,
        )

    def repartition(
        self,
        *,
        name: str | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
    ) -> KStream:
        """Through a topic of the application, so that each record is in the partition of its key."""
        if partitions is not None and partitions < 1:
            raise OttlaError(f"a topic has at least one partition, not {partitions}.")
        base = self._graph.name("KSTREAM-REPARTITION", name)
        stream = self.with_serdes(key=key, value=value)
        return stream._through(base, drops_null_keys=False, partitions=partitions, partitioner=partitioner)

    def _through(
        self,
        base: str,
        *,
        drops_null_keys: bool = True,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
    ) -> KStream:
        topology, topic, parent = self._graph.topology, f"{base}-repartition", self._node
        key, value = self.key_serde, self.value_serde
        if drops_null_keys:
            step = has_key(key, value)
            topology.add_operator(f"{base}-repartition-filter", stateless.HasKey, parent, native=step)
            parent = f"{base}-repartition-filter"
        topology.internal_topics[topic] = InternalTopic(topic, partitions)
        topology.add_sink(f"{base}-repartition-sink", topic, parent, key=key, value=value, partitioner=partitioner)
        source = f"{base}-repartition-source"
        topology.add_source(source, topic, key=key, value=value)
        return KStream(self._graph, source, key, value, frozenset([source]))

    def _by_key(self, base: str, *, drops_null_keys: bool = True) -> KStream:
        """Each record in the partition of its key. All that need it after one change of the key share a topic.

        Records without a key are of use to left and outer joins only (KIP-962)."""
        if not self._is_rekeyed:
            return self
        graph, place = self._graph, (self._node, id(self.key_serde), id(self.value_serde), drops_null_keys)
        known = graph.repartitioned.get(place)
        if known is not None and graph.merges_repartitions:
            graph.topology.shared_sources.add(known._node)
            return known
        made = graph.repartitioned[place] = self._through(base, drops_null_keys=drops_null_keys)
        return made

    # --- tables, groups and joins

    def to_table(self, *, store: str | None = None, name: str | None = None) -> KTable:
        from ottla.streams.dsl.ktable import KTable

        node = self._graph.name("KSTREAM-TOTABLE", name)
        return KTable.of_stream(self._by_key(node), store, node)

    def group_by_key(
        self, *, key: Serde | None = None, value: Serde | None = None, name: str | None = None
    ) -> KGroupedStream:
        from ottla.streams.dsl.grouped import KGroupedStream

        return KGroupedStream(self._graph, self.with_serdes(key=key, value=value), name)

    def group_by(
        self,
        selector: Callable[[Any, Any], Any] | Sql,
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> KGroupedStream:
        """By what `selector(key, value)` gives, or `sql("customer")`."""
        return self.select_key(selector).group_by_key(key=key, value=value, name=name)

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        *,
        key_of: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> KStream:
        """With a stream (within `windows`), a table, or a global table (by `key_of(key, value)`).

        `joiner(left, right)`, or `joiner(key, left, right)` if it takes three.
        """
        return self._join(other, joiner, windows, key_of, name, is_left_outer=False, is_right_outer=False)

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        *,
        key_of: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> KStream:
        return self._join(other, joiner, windows, key_of, name, is_left_outer=True, is_right_outer=False)

    def outer_join(
        self, other: KStream, joiner: Callable[..., Any], windows: JoinWindows, *, name: str | None = None
    ) -> KStream:
        if not isinstance(other, KStream):
            raise OttlaError("a stream has an outer join with another stream only: a table alone gives no results.")
        return self._join(other, joiner, windows, None, name, is_left_outer=True, is_right_outer=True)

    def _join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        windows: JoinWindows | None,
        key_of: Callable[[Any, Any], Any] | None,
        name: str | None,
        *,
        is_left_outer: bool,
        is_right_outer: bool,
    ) -> KStream:
        from ottla.streams.dsl import joins
        from ottla.streams.dsl.ktable import GlobalKTable, KTable

        if not isinstance(other, KStream | KTable | GlobalKTable):
            raise OttlaError(f"a stream is joined with a stream or a table, not {type(other).__name__}.")
        check_function(joiner, "join")
        if isinstance(other, KStream):
            if windows is None:
                raise OttlaError("a join of two streams needs JoinWindows: how far apart in time two records may be.")
            if not isinstance(windows, JoinWindows):
                raise OttlaError(f"a join of two streams takes JoinWindows, not {type(windows).__name__}.")
            return joins.join_streams(
                self, other, with_key(joiner), windows, name, is_left=is_left_outer, is_right=is_right_outer
            )
        if windows is not None:
            raise OttlaError("a join with a table has no windows: a record meets what the table has at that moment.")
        return joins.join_table(self, other, with_key(joiner), key_of, name, is_left=is_left_outer)


class BranchedKStream:
    """`stream.split().branch(is_large, "large").default_branch("small")`: a dict of streams by name."""

    def __init__(self, stream: KStream, name: str | None) -> None:
        self._stream = stream
        self._name = stream._graph.name("KSTREAM-BRANCH", name)
        self._branches: list[tuple[str, Callable[[Any, Any], bool]]] = []

    def branch(self, predicate: Callable[[Any, Any], bool] | Sql, name: str | None = None) -> BranchedKStream:
        predicate = expressions.predicate_of(predicate, self._stream.key_serde, self._stream.value_serde)
        check_function(predicate, "branch")
        self._branches.append((name or str(len(self._branches) + 1), predicate))
        return self

    def default_branch(self, name: str = "0") -> dict[str, KStream]:
        """What no branch has taken."""
        self._branches.append((name, stateless.always))
        return self._made()

    def no_default_branch(self) -> dict[str, KStream]:
        return self._made()

    def _made(self) -> dict[str, KStream]:
        names = [name for name, _ in self._branches]
        if not names or len(set(names)) != len(names):
            raise OttlaError(
                f"branches need names that differ, and at least one of them: {', '.join(names) or 'none'}."
            )
        stream, predicates = self._stream, [predicate for _, predicate in self._branches]
        topology = stream._graph.topology
        topology.add_operator(self._name, lambda: stateless.Branch(predicates), stream._node)
        made = {}
        for name in names:
            node = f"{self._name}-{name}"
            topology.add_operator(node, stateless.PassThrough, self._name)
            made[name] = KStream(
                stream._graph,
                node,
                stream.key_serde,
                stream.value_serde,
                stream._sources,
                is_rekeyed=stream._is_rekeyed,
            )
        return made


def values_operator(mapper: Callable[..., Any]) -> Callable[[], Any]:
    check_function(mapper, "map_values")
    if argument_count(mapper, 1) == 2:
        return lambda: stateless.MapValuesWithKey(mapper)
    return lambda: stateless.MapValues(mapper)


def with_key(joiner: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
    if argument_count(joiner, 2) == 3:
        return joiner
    return lambda key, left, right: joiner(left, right)


def argument_count(function: Callable[..., Any], usual: int) -> int:
    """How many it must be given; `usual` where it does not say (some built-in functions) or takes any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return usual
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]
    return len(needed) if needed else usual
