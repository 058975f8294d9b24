"""`StreamsApplication`: a topology on Spark, exactly once.

    application = StreamsApplication(builder.build(), application_id="word-count", bootstrap="127.0.0.1:9092")
    query = application.start(spark, checkpoint="/data/checkpoints/word-count")
    query.awaitTermination()

Before it starts, topics of its own are made (repartition topics, changelogs) and what cannot work is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.lookup import ClusterReader
from ottla.client.settings import parse_named
from ottla.client.topics import ensure_topic
from ottla.common.errors import OttlaError
from ottla.spark.sink.streaming import WriteQuery, write_stream
from ottla.streams.engine.partitions import plan_partitions, task_count
from ottla.streams.engine.running import SQL_SCHEMA, TopologyRun
from ottla.streams.engine.task_state import task_topic
from ottla.streams.errors import DEFAULT_HANDLING, ErrorHandling
from ottla.streams.state.specs import changelog_topic, check_name
from ottla.streams.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As much as a Spark task takes into memory to put records of several topics in order.
BYTES_PER_BATCH = "32m"
_CHANGELOG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.bytes": str(16 * 1024 * 1024)}
# Records of repartition topics are gone when nobody needs them; what was read stays until a person deletes it.
_REPARTITION = {"cleanup.policy": "delete", "retention.ms": "-1"}


class StreamsApplication:
    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str,
        bootstrap: str,
        kafka: Mapping[str, str] | None = None,
        handling: ErrorHandling = DEFAULT_HANDLING,
    ) -> None:
        """`application_id`: of its consumer group, transactional id and topics. `kafka`: settings of the cluster."""
        check_name(application_id, "an application")
        _refuse_what_is_not_there(topology)
        self._topology = topology
        self.application_id = application_id
        self._bootstrap = bootstrap
        self._kafka = dict(kafka or {})
        self._settings = parse_named(bootstrap, self._kafka)
        self._handling = handling

    def prepare(self) -> dict[str, int]:
        """Checks the topics that are read, makes those of the application, and says how many partitions each has."""
        topology, real = self._topology, self._real
        with ClusterReader(self._settings) as reader:
            external = [topic for topic in topology.source_topics() if topic not in topology.internal_topics]
            found = reader.partitions(external)
            for topic in external:
                if topic not in found:
                    raise OttlaError(f"the topic '{topic}' does not exist: create it before the application starts.")
            existing = {topic: len(numbers) for topic, numbers in found.items()}
            named = {topic: real(topic) for topic in topology.internal_topics}
            here = reader.partitions(list(named.values())) if named else {}
            existing |= {topic: len(here[name]) for topic, name in named.items() if name in here}
            counts = plan_partitions(topology, existing)
            for topic, name in named.items():
                self._make(reader, name, counts[topic], _REPARTITION)
            tasks = 0
            for sub in topology.sub_topologies():
                tasks = max(tasks, task_count(topology, sub, counts))
                for store in sub.stores:
                    log = changelog_topic(self.application_id, store)
                    self._make(reader, log, task_count(topology, sub, counts), _CHANGELOG)
            self._make(reader, task_topic(self.application_id), tasks, _CHANGELOG)
        return {real(topic): count for topic, count in counts.items()}

    def _make(self, reader: ClusterReader, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        there = reader.partitions([topic]).get(topic)
        if there is None:
            advice = f"create it with {partitions} partitions, or ask for the right to"
            ensure_topic(reader, topic, what="the topic", advice=advice, settings=settings, partitions=partitions)
        elif len(there) != partitions:
            raise OttlaError(
                f"the topic '{topic}' of application '{self.application_id}' has {len(there)} partitions, and the "
                f"topology now needs {partitions}: the keys of its state would lie elsewhere. Use another application "
                "id, which starts over, or undo the change."
            )

    def _real(self, topic: str) -> str:
        return self._topology.real_name(self.application_id, topic)

    def start(
        self,
        spark: SparkSession,
        *,
        checkpoint: str,
        trigger: Mapping[str, Any] | None = None,
        **source_options: Any,
    ) -> WriteQuery:
        """A query that runs until it is stopped. `trigger`: as of Spark's own `trigger`; `source_options`: as
        maxOffsetsPerTrigger=10_000."""
        counts = self.prepare()
        run = TopologyRun(self._topology, self.application_id, self._settings, counts, self._handling)
        options = {"maxBytesPerTrigger": BYTES_PER_BATCH, **source_options}
        frame = (
            spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", self._bootstrap)
            .options(**{f"kafka.{name.removeprefix('kafka.')}": value for name, value in self._kafka.items()})
            .option("subscribe", ",".join(self._real(topic) for topic in self._topology.source_topics()))
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .option("wholePartitions", "true")
            .options(**{name: str(value) for name, value in options.items()})
            .load()
        )
        return write_stream(
            frame.mapInArrow(run.run, SQL_SCHEMA),
            name=self.application_id,
            bootstrap=self._bootstrap,
            kafka=self._kafka,
            checkpoint=checkpoint,
            trigger=trigger,
        )

    def run_available(self, spark: SparkSession, *, checkpoint: str, **source_options: Any) -> None:
        """All that is there now, also what the application itself writes to topics that it reads; then stop."""
        while True:
            query = self.start(spark, checkpoint=checkpoint, trigger={"availableNow": True}, **source_options)
            query.awaitTermination()
            if not any(progress["numInputRows"] for progress in query.recentProgress):
                return


def _refuse_what_is_not_there(topology: Topology) -> None:
    if topology.global_stores:
        raise OttlaError("global tables do not run on Spark yet: use a table with the same partitions as the stream.")
    for source in topology.sources():
        if source.reset != "earliest":
            raise OttlaError(f"source '{source.name}' asks for reset='latest', which does not run on Spark yet.")
