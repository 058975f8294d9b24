"""A topology as text, in the form in which Kafka Streams prints one, and as a Mermaid picture.

What was optimised stands below it, where there is anything: stages of SQL that run on columns, and repartition
topics that operators share.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.streams.native import native_stages
from ottla.streams.topology import Node, ProcessorNode, SinkNode, SourceNode, SubTopology, Topology


def as_text(topology: Topology) -> str:
    lines = ["Topologies:"]
    for sub in topology.sub_topologies():
        lines += _sub_topology(topology, sub)
        lines.append("")
    optimised = list(_optimised(topology))
    if optimised:
        lines += ["   Optimisations:", *optimised, ""]
    return "\n".join(lines)


def _optimised(topology: Topology) -> Iterator[str]:
    for number, stage in enumerate(native_stages(topology).values()):
        yield f"    Native stage: {number} (on columns: {', '.join(stage.all_nodes)})"
        for name in stage.all_nodes:
            if text := native_text(topology, name):
                yield f"      {name}: {text}"
    for name in topology.nodes:
        if name in topology.shared_sources:
            yield f"    Merged repartition: {shared_topic(topology, name)} (for: {_users(topology, name)})"


def native_text(topology: Topology, name: str) -> str:
    """The expression of a node, on one line."""
    node = topology.nodes[name]
    return " ".join(node.native.text.split()) if isinstance(node, ProcessorNode) and node.native is not None else ""


def shared_topic(topology: Topology, source: str) -> str:
    node = topology.nodes[source]
    assert isinstance(node, SourceNode)
    return node.topics[0]


def _users(topology: Topology, source: str) -> str:
    return ", ".join(topology.nodes[source].children)


def _sub_topology(topology: Topology, sub: SubTopology) -> Iterator[str]:
    is_global = any(source in topology.global_stores.values() for source in sub.sources)
    yield f"   Sub-topology: {sub.number}{' for global store (will not generate tasks)' if is_global else ''}"
    for name in sub.nodes:
        node = topology.nodes[name]
        yield _headline(node)
        if not isinstance(node, SinkNode):
            yield f"      --> {', '.join(node.children) or 'none'}"
        if not isinstance(node, SourceNode):
            yield f"      <-- {', '.join(node.parents)}"


def _headline(node: Node) -> str:
    if isinstance(node, SourceNode):
        return f"    Source: {node.name} (topics: [{', '.join(node.topics)}])"
    if isinstance(node, SinkNode):
        if isinstance(node.topic, str):
            return f"    Sink: {node.name} (topic: {node.topic})"
        return f"    Sink: {node.name} (extractor: {getattr(node.topic, '__name__', 'function')})"
    assert isinstance(node, ProcessorNode)
    return f"    Processor: {node.name} (stores: [{', '.join(node.stores)}])"


def as_mermaid(topology: Topology) -> str:
    lines = ["flowchart TD"]
    numbers = {name: f"n{number}" for number, name in enumerate(topology.nodes)}
    stages = list(native_stages(topology).values())
    native = {name for stage in stages for name in stage.all_nodes}
    for sub in topology.sub_topologies():
        lines.append(f"  subgraph s{sub.number}[Sub-topology {sub.number}]")
        lines += [f"    {numbers[name]}[{name}]" for name in sub.nodes if name not in native]
        for number, stage in enumerate(stages):
            if stage.source in sub.sources:
                lines.append(f"    subgraph native{number}[Native stage {number}]")
                lines += [f"      {numbers[name]}[{name}]" for name in stage.all_nodes]
                lines.append("    end")
        lines += [f"    {_store_id(store)}[({store})]" for store in _stores(topology, sub)]
        lines.append("  end")
    for name, node in topology.nodes.items():
        lines += [f"  {numbers[name]} --> {numbers[child]}" for child in node.children]
        if isinstance(node, ProcessorNode):
            lines += [f"  {numbers[name]} --- {_store_id(store)}" for store in node.stores]
        if isinstance(node, SourceNode):
            lines += [f"  {_topic_id(topic)}>{topic}] --> {numbers[name]}" for topic in node.topics]
        if isinstance(node, SinkNode):
            topic = node.topic if isinstance(node.topic, str) else "chosen by record"
            lines.append(f"  {numbers[name]} --> {_topic_id(topic)}>{topic}]")
    shared = [shared_topic(topology, name) for name in topology.nodes if name in topology.shared_sources]
    if shared:
        lines.append("  classDef merged stroke-width:3px")
        lines += [f"  class {_topic_id(topic)} merged" for topic in shared]
    return "\n".join(lines)


def _stores(topology: Topology, sub: SubTopology) -> list[str]:
    """Also that of a global table, which belongs to no task."""
    return [*sub.stores, *(store for store, source in topology.global_stores.items() if source in sub.sources)]


def _store_id(store: str) -> str:
    return f"store_{_plain(store)}"


def _topic_id(topic: str) -> str:
    return f"topic_{_plain(topic)}"


def _plain(name: str) -> str:
    """Different for different names: `a-b`, `a.b` and `a_b` are three topics."""
    return "".join(sign if sign.isalnum() else "_" if sign == "-" else f"_{ord(sign):x}_" for sign in name)
