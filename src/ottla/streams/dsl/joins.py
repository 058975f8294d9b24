"""How joins become nodes: which stores they have, what is brought to the partition of its key first, and what must have
equally many partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams.dsl.checks import refuse_other
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators.old_values import OldValues
from ottla.streams.operators.stateless import PassThrough
from ottla.streams.operators.stream_joins import StreamJoinSide
from ottla.streams.operators.table_joins import StreamTableJoin, TableJoinMerger, TableJoinSide, joined_view
from ottla.streams.operators.tables import StoreChoice, View, store_view
from ottla.streams.serdes import Serde
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.windows import JoinWindows

KeyJoiner = Callable[[Any, Any, Any], Any]
_LOOKED_UP = (StoreKind.TIMESTAMPED, StoreKind.VERSIONED, StoreKind.WINDOW, StoreKind.SESSION)


def join_streams(
    left: KStream,
    right: KStream,
    joiner: KeyJoiner,
    windows: JoinWindows,
    name: str | None,
    *,
    is_left: bool,
    is_right: bool,
) -> KStream:
    graph, topology = left._graph, left._graph.topology
    refuse_other(graph, right._graph)
    base = graph.name("KSTREAM-OUTERJOIN" if is_right else "KSTREAM-LEFTJOIN" if is_left else "KSTREAM-JOIN", name)
    # Of both sides: also where they give no result their times count, which end the wait of others for a partner.
    drops_null_keys = not is_left and not is_right
    left = left._by_key(f"{base}-left", drops_null_keys=drops_null_keys)
    right = right._by_key(f"{base}-right", drops_null_keys=drops_null_keys)
    meet(graph, left._sources, right._sources)
    stores = f"{base}-this-join-store", f"{base}-other-join-store"
    for store, stream in zip(stores, (left, right), strict=True):
        spec = StoreSpec(
            store,
            StoreKind.WINDOW,
            left.key_serde,
            stream.value_serde,
            retention_ms=windows.retention_ms,
            window_size_ms=windows.size_ms,
            keeps_duplicates=True,
        )
        topology.add_store(spec)
    pending = None
    if is_left or is_right:
        pending = f"{base}-shared-join-store"
        spec = StoreSpec(
            pending,
            StoreKind.PENDING_JOINS,
            left.key_serde,
            left.value_serde,
            other_value_serde=right.value_serde,
        )
        topology.add_store(spec)

    def add_side(node: str, parent: str, own: str, other: str, *, is_left_side: bool, is_outer: bool) -> None:
        def make() -> StreamJoinSide:
            return StreamJoinSide(
                windows,
                joiner,
                is_left=is_left_side,
                is_outer=is_outer,
                own_store=own,
                other_store=other,
                pending_store=pending,
            )

        topology.add_operator(node, make, parent, stores=[own, other, *([pending] if pending else [])])

    add_side(f"{base}-this", left._node, *stores, is_left_side=True, is_outer=is_left)
    add_side(f"{base}-other", right._node, *reversed(stores), is_left_side=False, is_outer=is_right)
    merge = f"{base}-merge"
    topology.add_operator(merge, PassThrough, [f"{base}-this", f"{base}-other"])
    value: Any = graph.default_value
    return KStream(graph, merge, left.key_serde, value, left._sources | right._sources)


def join_table(
    stream: KStream,
    table: KTable | GlobalKTable,
    joiner: KeyJoiner,
    key_of: Callable[[Any, Any], Any] | None,
    name: str | None,
    *,
    is_left: bool,
) -> KStream:
    graph, topology = stream._graph, stream._graph.topology
    refuse_other(graph, table._graph)
    value: Any = graph.default_value
    if isinstance(table, GlobalKTable):
        if key_of is None:
            raise OttlaError("a join with a global table needs `key_of(key, value)`: which of its keys is looked up.")
        node = graph.name("KSTREAM-LEFTJOIN" if is_left else "KSTREAM-JOIN", name)
        view = store_view(StoreChoice(table.store))
        topology.add_operator(
            node, lambda: StreamTableJoin(view, joiner, key_of, is_left), stream._node, stores=[table.store]
        )
        return KStream(graph, node, stream.key_serde, value, stream._sources, is_rekeyed=stream._is_rekeyed)
    if key_of is not None:
        raise OttlaError("`key_of` is for global tables: a stream and a table are joined by their keys.")
    node = graph.name("KSTREAM-LEFTJOIN" if is_left else "KSTREAM-JOIN", name)
    stream = stream._by_key(node, drops_null_keys=not is_left)
    meet(graph, stream._sources, table._sources)
    view = table._view()
    topology.add_operator(node, lambda: StreamTableJoin(view, joiner, None, is_left), stream._node)
    connect_table(graph, table, node)
    return KStream(graph, node, stream.key_serde, value, stream._sources | table._sources)


def join_tables(
    left: KTable,
    right: KTable,
    joiner: Callable[[Any, Any], Any],
    value: Serde | None,
    store: str | None,
    name: str | None,
    *,
    needs_left: bool,
    needs_right: bool,
) -> KTable:
    graph, topology = left._graph, left._graph.topology
    refuse_other(graph, right._graph)
    meet(graph, left._sources, right._sources)
    base = graph.name("KTABLE-JOIN", name)
    if not needs_right:
        left._enable_old(True)
    if not needs_left:
        right._enable_old(True)
    left_view, right_view = left._view(), right._view()
    sides_old, merged_old, choice = OldValues(), OldValues(), StoreChoice(store)
    this, other, merge = f"{base}-this", f"{base}-other", f"{base}-merge"

    def make_left() -> TableJoinSide:
        return TableJoinSide(
            right_view, joiner, is_left=True, needs_own=needs_left, needs_other=needs_right, old=sides_old
        )

    def make_right() -> TableJoinSide:
        return TableJoinSide(
            left_view, joiner, is_left=False, needs_own=needs_right, needs_other=needs_left, old=sides_old
        )

    topology.add_operator(this, make_left, left._node)
    topology.add_operator(other, make_right, right._node)
    connect_table(graph, right, this)
    connect_table(graph, left, other)
    topology.add_operator(merge, lambda: TableJoinMerger(choice, merged_old), [this, other])
    serde: Any = value or graph.default_value
    if store is not None:
        topology.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, left.key_serde, serde), merge)

    def enable_old(force: bool) -> bool:
        if store is None:
            left._enable_old(True)
            right._enable_old(True)
            sides_old.are_sent = True
        merged_old.are_sent = True
        return True

    def view() -> View:
        if store is not None:
            return store_view(choice)
        return joined_view(left_view, right_view, joiner, needs_left=needs_left, needs_right=needs_right)

    return KTable(
        graph,
        merge,
        left.key_serde,
        serde,
        left._sources | right._sources,
        old=merged_old,
        enable_old=enable_old,
        view=view,
        close_ms=left._close_ms,
    )


def connect_table(graph: Graph, table: KTable, node: str) -> None:
    """The task of `node` has the stores that the table's values are looked up in: those of all nodes above it."""
    from ottla.streams.topology import ProcessorNode

    topology = graph.topology
    todo, seen = [table._node], set()
    while todo:
        name = todo.pop()
        above = topology.nodes[name]
        if name in seen:
            continue
        seen.add(name)
        if isinstance(above, ProcessorNode):
            for store in above.stores:
                if topology.stores[store].kind in _LOOKED_UP and store not in topology.global_stores:
                    topology.connect_store(node, store)
                    return
        todo += above.parents


def meet(graph: Graph, left: frozenset[str], right: frozenset[str]) -> None:
    graph.topology.copartitioned.append(tuple(sorted(left | right)))
