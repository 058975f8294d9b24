"""How a join by foreign key becomes nodes and two topics of the application: subscriptions and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams import serdes
from ottla.streams.dsl.checks import refuse_other
from ottla.streams.dsl.joins import connect_table, meet
from ottla.streams.dsl.kstream import KStream, argument_count
from ottla.streams.dsl.ktable import KTable
from ottla.streams.operators.foreign_keys import (
    AnswerSerde,
    KeepSubscriptions,
    Resolve,
    ResolveInner,
    RightChanged,
    Subscribe,
    SubscriptionSerde,
    to_its_partition,
)
from ottla.streams.operators.stateless import PassThrough
from ottla.streams.serdes import Serde
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.topology import InternalTopic


def join_by_foreign_key(
    left: KTable,
    right: KTable,
    foreign_key: Callable[..., Any],
    joiner: Callable[[Any, Any], Any],
    value: Serde | None,
    store: str | None,
    name: str | None,
    *,
    is_left: bool,
) -> KTable:
    graph, topology = left._graph, left._graph.topology
    refuse_other(graph, right._graph)
    base = graph.name("KTABLE-FK-JOIN", name)
    asked, answered, kept = f"{base}-subscription", f"{base}-answer", f"{base}-subscription-store"
    left._enable_old(True)
    left_view, right_view = left._view(), right._view()
    key_of = foreign_key if argument_count(foreign_key, 1) == 2 else lambda key, found: foreign_key(found)
    # Of rows, wherever they are: the same bytes in all tasks.
    left_key, left_value = serdes.writer(left.key_serde, asked), serdes.writer(left.value_serde, asked)
    right_key, right_value = serdes.writer(right.key_serde, asked), serdes.writer(right.value_serde, answered)
    left_key_of, right_of = serdes.reader(left.key_serde, asked), serdes.reader(right.value_serde, answered)

    topology.add_operator(f"{base}-subscribe", lambda: Subscribe(key_of, left_key, left_value, is_left), left._node)
    topology.internal_topics[asked] = InternalTopic(asked)
    topology.add_sink(f"{asked}-sink", asked, f"{base}-subscribe", key=right.key_serde, value=SubscriptionSerde())
    topology.add_source(f"{asked}-source", asked, key=right.key_serde, value=SubscriptionSerde())
    meet(graph, right._sources, frozenset([f"{asked}-source"]))

    topology.add_store(StoreSpec(kept, StoreKind.KEY_VALUE, serdes.raw, serdes.raw))
    answering = (kept, right_key, right_value, left_key_of)
    keep, changed = f"{base}-keep", f"{base}-changed"
    topology.add_operator(keep, lambda: KeepSubscriptions(right_view, *answering), f"{asked}-source", stores=[kept])
    connect_table(graph, right, keep)
    topology.add_operator(changed, lambda: RightChanged(*answering), right._node, stores=[kept])
    topology.add_operator(f"{base}-merge", PassThrough, [keep, changed])
    topology.internal_topics[answered] = InternalTopic(answered)
    topology.add_sink(
        f"{answered}-sink",
        answered,
        f"{base}-merge",
        key=left.key_serde,
        value=AnswerSerde(),
        partitioner=to_its_partition,
    )
    topology.add_source(f"{answered}-source", answered, key=left.key_serde, value=AnswerSerde())
    meet(graph, left._sources, frozenset([f"{answered}-source"]))

    resolve = f"{base}-resolve"
    resolving = (left_view, joiner, left_value, right_of)
    if is_left:
        topology.add_operator(resolve, lambda: Resolve(*resolving), f"{answered}-source")
    else:
        joined = f"{base}-joined-store"
        topology.add_store(StoreSpec(joined, StoreKind.KEY_VALUE, serdes.raw, serdes.raw))
        topology.add_operator(
            resolve, lambda: ResolveInner(joined, key_of, left_key, *resolving), f"{answered}-source", stores=[joined]
        )
    connect_table(graph, left, resolve)
    serde: Any = value or graph.default_value
    sources = left._sources | {f"{answered}-source"}
    return KTable.of_stream(KStream(graph, resolve, left.key_serde, serde, sources), store, f"{base}-result")
