"""Which parts of a topology run on columns: what begins at a source and is SQL all the way.

A stage takes the records of one source through its SQL operators. Where it ends, they go on in Python, record by
record; or they are written, if a sink is all that follows; or they are aggregated by key before the state is asked for.
A stage ends where streams part, since each way would be evaluated by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.streams import serdes
from ottla.streams.errors import DEFAULT_HANDLING, ErrorHandling, OnError
from ottla.streams.serdes import Serde
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind
from ottla.streams.sql.statement import primitive
from ottla.streams.sql.steps import Folded, NativeStep
from ottla.streams.topology import ProcessorNode, SinkNode, SourceNode, SubTopology, Topology


@dataclass(frozen=True)
class NativeStage:
    source: str
    # Operators whose work is done when records leave their columns; without an aggregate.
    nodes: tuple[str, ...]
    key_serde: Serde
    value_serde: Serde
    # What ends it, besides Python: one of them, or none.
    sink: str | None = None
    aggregate: str | None = None

    @property
    def all_nodes(self) -> tuple[str, ...]:
        ends = [name for name in (self.sink, self.aggregate) if name is not None]
        return (self.source, *self.nodes, *ends)


def native_stages(
    topology: Topology, handling: ErrorHandling = DEFAULT_HANDLING, *, has_lineage: bool = False
) -> dict[str, NativeStage]:
    """By source. `has_lineage`: what is made of the application's own topics says what those were made of, which
    operators know."""
    found = {}
    for sub in topology.sub_topologies():
        if any(_node(topology, name).is_processor for name in sub.nodes if _is_operator(topology, name)):
            continue  # it may ask for stream time, which counts records that a filter takes out
        for source in sub.sources:
            stage = _stage(topology, sub, source, handling)
            if stage is not None and not (has_lineage and _is_own(topology, source)):
                found[source] = stage
    return found


def _stage(topology: Topology, sub: SubTopology, name: str, handling: ErrorHandling) -> NativeStage | None:
    source = topology.nodes[name]
    assert isinstance(source, SourceNode)
    is_plain = source.timestamp_extractor is None and name not in topology.global_stores.values()
    if not is_plain or not _has_columns(source.value_serde) or not _is_plain_key(source.key_serde):
        return None
    nodes: list[str] = []
    at, key, value, is_worth_it = name, source.key_serde, source.value_serde, False
    while True:
        children = topology.nodes[at].children
        child = topology.nodes[children[0]] if len(children) == 1 else None
        if not isinstance(child, ProcessorNode) or child.native is None or len(child.parents) > 1:
            break
        step = child.native
        if isinstance(step.what, Folded):
            if sub.sources == (name,) and _can_fold(step) and not _needs_records_as_they_came(handling):
                return NativeStage(name, tuple(nodes), key, value, aggregate=child.name)
            break
        nodes.append(child.name)
        at, key, value = child.name, step.key_serde, step.value_serde
        is_worth_it = is_worth_it or bool(step.text)
    if not is_worth_it:
        return None
    sink = child.name if isinstance(child, SinkNode) and _is_plain_sink(child, key, value, handling) else None
    return NativeStage(name, tuple(nodes), key, value, sink=sink)


def _needs_records_as_they_came(handling: ErrorHandling) -> bool:
    """For dead letters of what fails below an aggregate."""
    return OnError.DEAD_LETTER in (handling.processing, handling.production)


def _is_operator(topology: Topology, name: str) -> bool:
    return isinstance(topology.nodes[name], ProcessorNode)


def _node(topology: Topology, name: str) -> ProcessorNode:
    node = topology.nodes[name]
    assert isinstance(node, ProcessorNode)
    return node


def _is_own(topology: Topology, source: str) -> bool:
    node = topology.nodes[source]
    assert isinstance(node, SourceNode)
    return any(topic in topology.internal_topics for topic in node.topics)


def _has_columns(serde: Serde) -> bool:
    return isinstance(serde, RowSerde) or primitive(serde) is not None


def _is_plain_key(serde: Serde) -> bool:
    """Bytes that are not written differently when they were read: JSON may have spaces."""
    return serde is serdes.raw or serde is serdes.string or serde is serdes.integer


def _is_plain_sink(sink: SinkNode, key: Serde, value: Serde, handling: ErrorHandling) -> bool:
    if not isinstance(sink.topic, str) or sink.partitioner is not None or handling.production is not OnError.FAIL:
        return False
    return _is_same(sink.key_serde, key) and _is_same(sink.value_serde, value)


def _is_same(one: Serde, other: Serde) -> bool:
    if isinstance(one, RowSerde) and isinstance(other, RowSerde):
        return one.schema == other.schema
    return one is other


def _can_fold(step: NativeStep) -> bool:
    """Arrow finds the least and the largest of numbers only."""
    assert isinstance(step.what, Folded)
    return all(
        part.function in ("count", "sum") or part.kind in (Kind.BIGINT, Kind.DOUBLE)
        for part in step.what.aggregation.parts
    )
