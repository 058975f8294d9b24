"""A topology: sources, processors and sinks by name, and the stores that processors share. It describes what runs; a
task of it (`processing/task.py`) runs. It is plain data with the user's functions in it and goes to executors as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.state.specs import StoreSpec, check_name

if TYPE_CHECKING:
    from ottla.streams.processing.operator import Operator
    from ottla.streams.serdes import Serde
    from ottla.streams.sql.steps import NativeStep

TimestampExtractor = Callable[..., int]
Partitioner = Callable[[str, Any, Any, int], int]


@dataclass
class Node:
    name: str
    parents: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


@dataclass
class SourceNode(Node):
    topics: tuple[str, ...] = ()
    key_serde: Serde = serdes.raw
    value_serde: Serde = serdes.raw
    timestamp_extractor: TimestampExtractor | None = None
    # earliest or latest, where the application has no offsets yet.
    reset: str = "earliest"


@dataclass
class ProcessorNode(Node):
    make: Callable[[], Operator] = field(default=lambda: _no_operator())
    stores: list[str] = field(default_factory=list)
    # What it does in Spark's words; None: a function of Python.
    native: NativeStep | None = None
    # A `Processor`: it asks for stream time, to which every record counts, also one that a filter lets go.
    is_processor: bool = False


@dataclass
class SinkNode(Node):
    # A name, or a function of (key, value, record metadata).
    topic: str | Callable[..., str] = ""
    key_serde: Serde = serdes.raw
    value_serde: Serde = serdes.raw
    partitioner: Partitioner | None = None


@dataclass(frozen=True)
class InternalTopic:
    """A topic that the application makes itself: one through which records get to the partition of their new key."""

    name: str
    partitions: int | None = None


@dataclass(frozen=True)
class SubTopology:
    """Nodes that hang together without a topic between them: what a task runs, one for each partition."""

    number: int
    nodes: tuple[str, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    stores: tuple[str, ...]


def check_topic(topic: Any) -> None:
    if not isinstance(topic, str) or not topic:
        raise OttlaError(f"the name of a topic is text, not {topic!r}.")


def _no_operator() -> Any:
    raise AssertionError("a processor node without an operator")


class Topology:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.internal_topics: dict[str, InternalTopic] = {}
        # Where records go that come too late for their windows.
        self.late_topics: set[str] = set()
        # After the names of topics that are written, in the cluster.
        self.output_suffix = ""
        # Sources of repartition topics that several operators share.
        self.shared_sources: set[str] = set()
        # Sources that must have equally many partitions, as they meet in a task by key.
        self.copartitioned: list[tuple[str, ...]] = []
        # Names of global tables' stores and the sources that feed them.
        self.global_stores: dict[str, str] = {}

    # --- making one, as with Kafka Streams' Processor API

    def add_source(
        self,
        name: str,
        topics: str | Sequence[str],
        *,
        key: Serde = serdes.raw,
        value: Serde = serdes.raw,
        timestamp_extractor: TimestampExtractor | None = None,
        reset: str = "earliest",
    ) -> Topology:
        names = (topics,) if isinstance(topics, str) else tuple(topics or ())
        for topic in names:
            check_topic(topic)
        if not names:
            raise OttlaError(f"source '{name}' has no topics: give it the name of a topic, or several.")
        if reset not in ("earliest", "latest"):
            raise OttlaError(f"reset of source '{name}' is 'earliest' or 'latest', not {reset!r}.")
        for topic in names:
            taken = next((node.name for node in self.sources() if topic in node.topics), None)
            if taken is not None:
                raise OttlaError(f"topic '{topic}' is read by source '{taken}' already: use what that one gives.")
        node = SourceNode(
            name, topics=names, key_serde=key, value_serde=value, timestamp_extractor=timestamp_extractor, reset=reset
        )
        return self._add(node, [])

    def add_processor(
        self, name: str, supplier: Callable[[], Any], parents: str | Sequence[str], *, stores: Sequence[str] = ()
    ) -> Topology:
        """`supplier` makes a `Processor`, a new one for every task."""
        from ottla.streams.processing.processor import ProcessorOperator, check_supplier

        check_supplier(supplier)
        make = lambda: ProcessorOperator(supplier, name)  # noqa: E731
        return self.add_operator(name, make, parents, stores=stores, is_processor=True)

    def add_operator(
        self,
        name: str,
        make: Callable[[], Operator],
        parents: str | Sequence[str],
        *,
        stores: Sequence[str] = (),
        native: NativeStep | None = None,
        is_processor: bool = False,
    ) -> Topology:
        for store in stores:
            if store not in self.stores:
                raise OttlaError(f"processor '{name}' wants the store '{store}', which was not added.")
        node = ProcessorNode(name, make=make, stores=list(stores), native=native, is_processor=is_processor)
        return self._add(node, parents)

    def add_sink(
        self,
        name: str,
        topic: str | Callable[..., str],
        parents: str | Sequence[str],
        *,
        key: Serde = serdes.raw,
        value: Serde = serdes.raw,
        partitioner: Partitioner | None = None,
    ) -> Topology:
        if not callable(topic):
            check_topic(topic)
        node = SinkNode(name, topic=topic, key_serde=key, value_serde=value, partitioner=partitioner)
        return self._add(node, parents)

    def add_store(self, spec: StoreSpec, *processors: str) -> Topology:
        if self.stores.get(spec.name, spec) is not spec:
            raise OttlaError(f"there is another store '{spec.name}' already: stores need names that differ.")
        self.stores[spec.name] = spec
        for name in processors:
            self.connect_store(name, spec.name)
        return self

    def connect_store(self, processor: str, store: str) -> None:
        node = self.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise OttlaError(f"there is no processor '{processor}' for the store '{store}'.")
        if store not in self.stores:
            raise OttlaError(f"there is no store '{store}' for the processor '{processor}'.")
        if store not in node.stores:
            node.stores.append(store)

    def _add(self, node: Node, parents: str | Sequence[str]) -> Topology:
        check_name(node.name, "a node")
        if node.name in self.nodes:
            raise OttlaError(f"there is a node '{node.name}' already: names are unique in a topology.")
        node.parents = [parents] if isinstance(parents, str) else list(parents)
        for parent in node.parents:
            if parent not in self.nodes:
                raise OttlaError(f"'{node.name}' is to follow '{parent}', which is not there.")
            if isinstance(self.nodes[parent], SinkNode):
                raise OttlaError(f"'{node.name}' cannot follow the sink '{parent}': nothing comes out of it.")
        if not node.parents and not isinstance(node, SourceNode):
            raise OttlaError(f"'{node.name}' has no parents: nothing would come to it.")
        self.nodes[node.name] = node
        for parent in node.parents:
            self.nodes[parent].children.append(node.name)
        return self

    # --- what is in it

    def sources(self) -> list[SourceNode]:
        return [node for node in self.nodes.values() if isinstance(node, SourceNode)]

    def sinks(self) -> list[SinkNode]:
        return [node for node in self.nodes.values() if isinstance(node, SinkNode)]

    def source_topics(self) -> list[str]:
        return [topic for node in self.sources() for topic in node.topics]

    def real_name(self, application_id: str, topic: str) -> str:
        """Of a topic in the cluster: internal ones have the application's name before theirs, as in Kafka Streams;
        those that are written have the suffix of outputs, if there is one."""
        if topic in self.internal_topics:
            return f"{application_id}-{topic}"
        return topic if not self.output_suffix or self._is_only_read(topic) else f"{topic}{self.output_suffix}"

    def _is_only_read(self, topic: str) -> bool:
        return topic in self.source_topics() and all(node.topic != topic for node in self.sinks())

    def with_output_suffix(self, suffix: str) -> Topology:
        """The same, writing to other topics: `name` is `name.v2`, also where the topology reads it again."""
        other = copy(self)
        other.output_suffix = suffix
        return other

    def sub_topologies(self) -> list[SubTopology]:
        """Nodes that are connected, or that share a store. Numbered in the order in which they were added."""
        groups = _Groups()
        by_store: dict[str, str] = {}
        for node in self.nodes.values():
            groups.add(node.name)
            for parent in node.parents:
                groups.join(node.name, parent)
            for store in self._stores_of(node):
                groups.join(node.name, by_store.setdefault(store, node.name))
        for sources in self.copartitioned:
            for other in sources[1:]:
                groups.join(sources[0], other)
        return [self._sub_topology(number, names) for number, names in enumerate(groups.all())]

    def _stores_of(self, node: Node) -> Iterable[str]:
        stores = node.stores if isinstance(node, ProcessorNode) else []
        return [store for store in stores if store not in self.global_stores]

    def _sub_topology(self, number: int, names: list[str]) -> SubTopology:
        nodes = [self.nodes[name] for name in names]
        stores = dict.fromkeys(store for node in nodes for store in self._stores_of(node))
        return SubTopology(
            number,
            tuple(names),
            tuple(node.name for node in nodes if isinstance(node, SourceNode)),
            tuple(node.name for node in nodes if isinstance(node, SinkNode)),
            tuple(stores),
        )

    def describe(self) -> str:
        """As Kafka Streams prints it."""
        from ottla.streams.describing import as_text

        return as_text(self)

    def describe_as_mermaid(self) -> str:
        """A picture for Markdown."""
        from ottla.streams.describing import as_mermaid

        return as_mermaid(self)

    def describe_as_svg(self) -> str:
        """A picture for a browser."""
        from ottla.streams.picture import as_svg

        return as_svg(self)


class _Groups:
    """Names that belong together; groups and their members in the order in which they were added."""

    def __init__(self) -> None:
        self._leaders: dict[str, str] = {}

    def add(self, name: str) -> None:
        self._leaders[name] = name

    def leader(self, name: str) -> str:
        while self._leaders[name] != name:
            name = self._leaders[name]
        return name

    def join(self, one: str, other: str) -> None:
        self._leaders[self.leader(one)] = self.leader(other)

    def all(self) -> list[list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._leaders:
            found.setdefault(self.leader(name), []).append(name)
        return list(found.values())
