"""What an application needs in the cluster before it runs: the topics that it reads, and those of its own.

Its own are made once. One that does not fit the topology any more is refused, since keys of its state would lie in
other partitions; only the task topic, in which partitions are chosen by number, grows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.client.address import ClusterAddress
from ottla.client.admin.own_topics import delete_topics, grow_topic
from ottla.client.admin.topic_settings import topic_settings
from ottla.client.admin.topics import ensure_topic
from ottla.client.cluster import ClusterClient
from ottla.client.lookup import EARLIEST, ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.sink.marker import MARKER_TOPIC, read_marker
from ottla.spark.sink.progress import forget
from ottla.streams.engine.identity import Shape, own_topics, shape_of, task_topic
from ottla.streams.engine.outputs import LARGEST
from ottla.streams.engine.partitions import plan_partitions, task_count
from ottla.streams.engine.task_state import TaskState, read_records
from ottla.streams.errors import ErrorHandling
from ottla.streams.state.specs import changelog_topic
from ottla.streams.topology import SinkNode, SourceNode, Topology

_CHANGELOG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.bytes": str(16 * 1024 * 1024)}
# The driver deletes what was processed; time deletes nothing.
_REPARTITION = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": str(50 * 1024 * 1024)}
_BATCH_BYTES = 512 * 1024
_BATCH_OVERHEAD_BYTES = 100


@dataclass(frozen=True)
class Prepared:
    # Of all topics that tasks read, by their names in the cluster.
    partition_counts: dict[str, int]
    repartition: list[str]
    # All that the application has made.
    own: list[str]
    # Another one when its topics were made anew.
    generation: str
    # As large as a batch of several records may be: all topics that are named take it.
    batch_bytes: int


def prepare(topology: Topology, application_id: str, settings: ClientSettings, handling: ErrorHandling) -> Prepared:
    with ClusterReader(settings) as reader:
        return _Preparing(topology, application_id, reader).run(handling)


class _Preparing:
    def __init__(self, topology: Topology, application_id: str, reader: ClusterReader) -> None:
        self._topology = topology
        self._application_id = application_id
        self._reader = reader
        # Asked once for all: a cluster that has just started may deny a topic, so one that is missing is waited for.
        self._there = reader.partitions(own_topics(shape_of(topology, application_id)))

    def run(self, handling: ErrorHandling) -> Prepared:
        topology, reader = self._topology, self._reader
        existing, named = self._existing()
        counts = plan_partitions(topology, existing)
        self._check_outputs(handling)
        self._refuse_state_without_a_marker()
        for topic, name in named.items():
            self._make(name, counts[topic], _REPARTITION)
        tasks, own = 0, list(named.values())
        for sub in topology.sub_topologies():
            if any(source in topology.global_stores.values() for source in sub.sources):
                continue
            tasks = max(tasks, task_count(topology, sub, counts))
            for store in sub.stores:
                own.append(changelog_topic(self._application_id, store))
                self._make(own[-1], task_count(topology, sub, counts), _CHANGELOG)
        own.append(task_topic(self._application_id))
        self._make_task_topic(own[-1], tasks)
        globally = {topic for source in topology.global_stores.values() for topic in _topics(topology, source)}
        whole = sorted(self._real(topic) for topic in globally)
        reader.partitions([*own, *whole])
        ids = [reader.topic_ids.get(topic, b"") for topic in [*own, *whole]]
        digest = hashlib.sha256(b"".join([*ids, reader.settings.bootstrap_servers.encode()])).hexdigest()
        read = {self._real(topic): count for topic, count in counts.items() if topic not in globally}
        generation = f"{self._application_id}@{digest[:32]}"
        return Prepared(read, list(named.values()), own, generation, self._batch_bytes(own, handling))

    def _batch_bytes(self, own: list[str], handling: ErrorHandling) -> int:
        """A batch of many records is put together before anybody knows whether a topic with a small max.message.bytes
        takes it. What it compresses to is not known either, so it counts as it is."""
        topics = [*own, *written_topics(self._topology)]
        if handling.dead_letter_topic is not None:
            topics.append(handling.dead_letter_topic)
        reader = self._reader
        found = reader.retried(lambda: topic_settings(reader, topics, [LARGEST]))
        limits = [int(its[LARGEST].value or 0) for its in found.values() if LARGEST in its]
        return min([_BATCH_BYTES, *(max(1, limit - _BATCH_OVERHEAD_BYTES) for limit in limits if limit > 0)])

    def _real(self, topic: str) -> str:
        return self._topology.real_name(self._application_id, topic)

    def _existing(self) -> tuple[dict[str, int], dict[str, str]]:
        """How many partitions topics have, and the names of the internal ones in the cluster."""
        topology, reader = self._topology, self._reader
        external = {
            topic: self._real(topic) for topic in topology.source_topics() if topic not in topology.internal_topics
        }
        found = reader.partitions(list(external.values()))
        for name in external.values():
            if name not in found:
                raise OttlaError(f"the topic '{name}' does not exist: create it before the application starts.")
        existing = {topic: len(found[name]) for topic, name in external.items()}
        named = {topic: self._real(topic) for topic in topology.internal_topics}
        here = self._there
        return existing | {topic: len(here[name]) for topic, name in named.items() if name in here}, named

    def _check_outputs(self, handling: ErrorHandling) -> None:
        """Those that are named: a record for a topic that is not there would fail its batch again and again."""
        wanted = written_topics(self._topology)
        there = self._reader.partitions(wanted)
        for topic in wanted:
            if topic not in there:
                raise OttlaError(f"the topic '{topic}', which is written to, does not exist: create it first.")
        if handling.dead_letter_topic is not None:
            advice = "create it, or name another one"
            ensure_topic(self._reader, handling.dead_letter_topic, what="the dead-letter topic", advice=advice)

    def _make(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        there = self._there.get(topic)
        if there is None:
            advice = f"create it with {partitions} partitions, or ask for the right to"
            ensure_topic(self._reader, topic, what="the topic", advice=advice, settings=settings, partitions=partitions)
        elif len(there) != partitions:
            raise OttlaError(
                f"the topic '{topic}' of application '{self._application_id}' has {len(there)} partitions, and the "
                f"topology now needs {partitions}: the keys of its state would lie elsewhere. Use another application "
                "id, which starts over, or undo the change."
            )

    def _make_task_topic(self, topic: str, tasks: int) -> None:
        there = self._there.get(topic)
        if there is not None and len(there) < tasks:
            grow_topic(self._reader, topic, tasks)
        elif there is None:
            self._make(topic, tasks, _CHANGELOG)

    def _refuse_state_without_a_marker(self) -> None:
        """The marker is in the transaction of every batch: where state is alone, somebody had it forgotten, or it is of
        another application (`a` with a store `b-c` has the topics of `a-b` with a store `c`)."""
        if not self._there or _marker_is_there(self._reader, self._application_id):
            return
        for topic, numbers in self._there.items():
            if _has_records(self._reader, topic, numbers):
                raise OttlaError(
                    f"the topic '{topic}' has records, but how far application '{self._application_id}' was is not "
                    "known here: it was forgotten, or the topic is of another application. Going on would count its "
                    "input twice: give it another id, or reset it, which deletes this topic."
                )


def written_topics(topology: Topology) -> list[str]:
    """Those that are named in the topology, besides its own, as they are called in the cluster."""
    sinks = [node for node in topology.nodes.values() if isinstance(node, SinkNode)]
    named = {node.topic for node in sinks if isinstance(node.topic, str)} - topology.internal_topics.keys()
    return sorted(topology.real_name("", topic) for topic in named)


def create_topics(topology: Topology, address: ClusterAddress) -> None:
    read = [
        topology.real_name("", topic) for topic in topology.source_topics() if topic not in topology.internal_topics
    ]
    with ClusterClient(address) as cluster:
        for topic in [*read, *written_topics(topology)]:
            ensure_topic(cluster, topic, what="the topic", advice="ask for the right to create it", partitions=-1)


def _topics(topology: Topology, source: str) -> tuple[str, ...]:
    node = topology.nodes[source]
    assert isinstance(node, SourceNode)
    return node.topics


def _has_records(reader: ClusterReader, topic: str, numbers: list[int]) -> bool:
    """Committed ones: a first batch that was never finished leaves only what does not count."""
    partitions = [TopicPartition(topic, number) for number in numbers]
    firsts = reader.offsets(dict.fromkeys(partitions, EARLIEST))
    ends = {partition: end.offset for partition, end in reader.ends(partitions).items()}
    some = {partition: end for partition, end in ends.items() if end > firsts[partition]}
    return bool(some) and any(True for _ in read_records(reader, TaskState({}), some))


def _marker_is_there(reader: ClusterReader, application_id: str) -> bool:
    return bool(reader.partitions([MARKER_TOPIC])) and read_marker(reader, MARKER_TOPIC, application_id) is not None


def reset(shape: Shape, settings: ClientSettings, bootstrap: str, kafka: Mapping[str, str]) -> None:
    """In this order: state that is left without a marker is refused at the next start, the other way round it would
    start over while an old run still writes."""
    application_id: str = shape["application"]
    forget(name=application_id, bootstrap=bootstrap, kafka=kafka)
    with ClusterReader(replace(settings, is_committed_only=True)) as reader:
        delete_topics(reader, own_topics(shape))
