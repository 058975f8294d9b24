"""`KTable`: the last value of each key. What flows between tables are changes: the value now and the one before.

A table keeps a store where it was named, or where something downstream needs one: a join looks values up, a grouping
needs the values before. Which that is, is known when the topology is complete, so operators are made after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams.dsl.checks import check_function
from ottla.streams.dsl.expressions import predicate_of
from ottla.streams.dsl.kstream import KStream, argument_count
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.suppress import Suppress, Suppressed
from ottla.streams.operators.tables import (
    ChangeSerde,
    StoreChoice,
    TableFilter,
    TableGroup,
    TableMapValues,
    TableSource,
    TableToStream,
    View,
    filtered_view,
    mapped_view,
    store_view,
)
from ottla.streams.serdes import Serde
from ottla.streams.sql.statement import Sql
from ottla.streams.state.specs import StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.streams.dsl.grouped import KGroupedTable

# Makes the table send old values; `force`: also if it needs a store for that. Whether it does.
EnableOld = Callable[[bool], bool]


class KTable:
    def __init__(
        self,
        graph: Graph,
        node: str,
        key: Serde,
        value: Serde,
        sources: frozenset[str],
        *,
        old: OldValues,
        enable_old: EnableOld,
        view: Callable[[], View],
        close_ms: int | None = None,
    ) -> None:
        self._graph = graph
        self._node = node
        self.key_serde = key
        self.value_serde = value
        self._sources = sources
        self._old = old
        self._enable_old = enable_old
        self._view = view
        # How long after its end a window still changes; None where keys are no windows.
        self._close_ms = close_ms

    # --- where tables come from

    @staticmethod
    def of_stream(stream: KStream, store: str | None, node: str | None, *, history_ms: int | None = None) -> KTable:
        """The records of a stream as changes. `history_ms`: the store is a versioned one."""
        graph, topology = stream._graph, stream._graph.topology
        made_name = graph.name(f"{_first_topic(stream)}-STATE-STORE", store)
        node = node or graph.name("KTABLE-SOURCE")
        choice, old = StoreChoice(), OldValues()
        topology.add_operator(node, lambda: TableSource(choice, old), stream._node)

        def materialize() -> None:
            if choice.name is None:
                choice.name = made_name
                kind = StoreKind.TIMESTAMPED if history_ms is None else StoreKind.VERSIONED
                keys, values = stream.key_serde, stream.value_serde
                spec = StoreSpec(made_name, kind, keys, values, retention_ms=history_ms or 0)
                topology.add_store(spec, node)

        def enable_old(force: bool) -> bool:
            if choice.name is None and not force:
                return False
            materialize()
            old.are_sent = True
            return True

        def view() -> View:
            materialize()
            return store_view(choice)

        if store is not None or history_ms is not None:
            materialize()
        return KTable(
            graph,
            node,
            stream.key_serde,
            stream.value_serde,
            stream._sources,
            old=old,
            enable_old=enable_old,
            view=view,
        )

    @staticmethod
    def of_store(
        graph: Graph,
        node: str,
        key: Serde,
        value: Serde,
        sources: frozenset[str],
        store: str,
        old: OldValues,
        close_ms: int | None = None,
    ) -> KTable:
        """An aggregate: it always has a store."""

        def enable_old(force: bool) -> bool:
            old.are_sent = True
            return True

        return KTable(
            graph,
            node,
            key,
            value,
            sources,
            old=old,
            enable_old=enable_old,
            view=lambda: store_view(StoreChoice(store)),
            close_ms=close_ms,
        )

    def _derived(
        self,
        node: str,
        value: Serde,
        choice: StoreChoice,
        old: OldValues,
        view_of_parent: Callable[[View], View],
    ) -> KTable:
        def enable_old(force: bool) -> bool:
            if choice.name is not None or self._enable_old(force):
                old.are_sent = True
            return old.are_sent

        def view() -> View:
            return store_view(choice) if choice.name is not None else view_of_parent(self._view())

        return KTable(
            self._graph,
            node,
            self.key_serde,
            value,
            self._sources,
            old=old,
            enable_old=enable_old,
            view=view,
            close_ms=self._close_ms,
        )

    def _store(self, store: str | None, node: str, value: Serde) -> StoreChoice:
        if store is not None:
            self._graph.topology.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, self.key_serde, value), node)
        return StoreChoice(store)

    # --- tables of tables

    def filter(
        self, predicate: Callable[[Any, Any], bool] | Sql, *, store: str | None = None, name: str | None = None
    ) -> KTable:
        """A key whose value does not pass is deleted below."""
        return self._filter(predicate, True, store, name)

    def filter_not(
        self, predicate: Callable[[Any, Any], bool] | Sql, *, store: str | None = None, name: str | None = None
    ) -> KTable:
        return self._filter(predicate, False, store, name)

    def _filter(
        self, given: Callable[[Any, Any], bool] | Sql, wanted: bool, store: str | None, name: str | None
    ) -> KTable:
        predicate = predicate_of(given, self.key_serde, self.value_serde)
        check_function(predicate, "filter")
        node = self._graph.name("KTABLE-FILTER", name)
        old, choice = OldValues(), StoreChoice(store)
        # Where the table above has a store, keys that never passed need not be deleted.
        old.are_sent = self._enable_old(False)
        self._graph.topology.add_operator(node, lambda: TableFilter(predicate, wanted, choice, old), self._node)
        self._store(store, node, self.value_serde)
        return self._derived(
            node, self.value_serde, choice, old, lambda parent: filtered_view(parent, predicate, wanted)
        )

    def map_values(
        self,
        mapper: Callable[..., Any] | Sql,
        *,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`mapper(value)`, or `mapper(key, value)` if it takes two; or columns of a new row, `sql("a, b + 1 AS b")`.
        Deletions go through without it."""
        node = self._graph.name("KTABLE-MAPVALUES", name)
        full: Callable[[Any, Any], Any]
        if isinstance(mapper, Sql):
            selection = mapper.selection(self.key_serde, self.value_serde)
            full, value = (lambda key, found: selection.row(key, found, 0)), value or selection.serde()
        else:
            check_function(mapper, "map_values")
            function = mapper
            full = function if argument_count(function, 1) == 2 else lambda key, found: function(found)
        old, choice = OldValues(), StoreChoice(store)
        serde: Any = value or self._graph.default_value
        self._graph.topology.add_operator(node, lambda: TableMapValues(full, choice, old), self._node)
        self._store(store, node, serde)
        return self._derived(node, serde, choice, old, lambda parent: mapped_view(parent, full))

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable:
        if suppressed.on_window_close and self._close_ms is None:
            raise OttlaError("until_window_closes is for tables of windows: this one has no windows.")
        node = self._graph.name("KTABLE-SUPPRESS", name)
        store = f"{node}-store" if name is not None else self._graph.name("KTABLE-SUPPRESS-STATE-STORE")
        wait_ms = suppressed.wait_ms if self._close_ms is None or not suppressed.on_window_close else self._close_ms
        self._enable_old(True)
        topology = self._graph.topology
        topology.add_store(StoreSpec(store, StoreKind.HELD_UPDATES, self.key_serde, self.value_serde))
        topology.add_operator(node, lambda: Suppress(store, suppressed, wait_ms, node), self._node, stores=[store])

        def refuse() -> View:
            raise OttlaError("a suppressed table cannot be looked up: join with the table before `suppress`.")

        old = OldValues()
        old.are_sent = True
        return KTable(
            self._graph,
            node,
            self.key_serde,
            self.value_serde,
            self._sources,
            old=old,
            enable_old=lambda force: True,
            view=refuse,
            close_ms=self._close_ms,
        )

    def to_stream(self, key_mapper: Callable[[Any, Any], Any] | None = None, *, name: str | None = None) -> KStream:
        """Its changes as records; a deletion is a record without a value."""
        node = self._graph.name("KTABLE-TOSTREAM", name)
        self._graph.topology.add_operator(node, TableToStream, self._node)
        stream = KStream(self._graph, node, self.key_serde, self.value_serde, self._sources)
        return stream if key_mapper is None else stream.select_key(key_mapper)

    def group_by(
        self,
        selector: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> KGroupedTable:
        """`selector(key, value)` gives (group, value)."""
        from ottla.streams.dsl.grouped import KGroupedTable

        check_function(selector, "group_by")
        node = self._graph.name("KTABLE-SELECT", None)
        self._enable_old(True)
        self._graph.topology.add_operator(node, lambda: TableGroup(selector), self._node)
        key_serde: Any = key or self._graph.default_key
        value_serde: Any = value or self.value_serde
        grouped = KStream(self._graph, node, key_serde, ChangeSerde(value_serde), self._sources, is_rekeyed=True)
        return KGroupedTable(self._graph, grouped, value_serde, name)

    # --- joins

    def join(self, other: KTable, joiner: Callable[[Any, Any], Any], **more: Any) -> KTable:
        """Where both have a value. `value`, `store`, `name` as elsewhere.

        `foreign_key(value)`, or `foreign_key(key, value)`: joined with that key of the other table instead of the own.
        """
        return self._join(other, joiner, needs_left=True, needs_right=True, **more)

    def left_join(self, other: KTable, joiner: Callable[[Any, Any], Any], **more: Any) -> KTable:
        return self._join(other, joiner, needs_left=True, needs_right=False, **more)

    def outer_join(self, other: KTable, joiner: Callable[[Any, Any], Any], **more: Any) -> KTable:
        return self._join(other, joiner, needs_left=False, needs_right=False, **more)

    def _join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        *,
        needs_left: bool,
        needs_right: bool,
        foreign_key: Callable[..., Any] | None = None,
        value: Serde | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        if not isinstance(other, KTable):
            raise OttlaError(f"a table is joined with a table, not {type(other).__name__}.")
        check_function(joiner, "join")
        if foreign_key is not None:
            from ottla.streams.dsl.foreign_keys import join_by_foreign_key

            if not needs_left:
                raise OttlaError("an outer join has no foreign key: a row of the other table alone has no left key.")
            is_left = not needs_right
            return join_by_foreign_key(self, other, foreign_key, joiner, value, store, name, is_left=is_left)
        from ottla.streams.dsl.joins import join_tables

        return join_tables(self, other, joiner, value, store, name, needs_left=needs_left, needs_right=needs_right)


class GlobalKTable:
    def __init__(self, graph: Graph, store: str, key: Serde, value: Serde) -> None:
        self._graph = graph
        self.key_serde = key
        self.value_serde = value
        self.store = store
        self.choice, self.old = StoreChoice(store), OldValues()


def _first_topic(stream: KStream) -> str:
    from ottla.streams.topology import SourceNode

    node = stream._graph.topology.nodes[stream._node]
    return node.topics[0] if isinstance(node, SourceNode) else "KSTREAM-TOTABLE"
