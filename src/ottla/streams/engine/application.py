"""`StreamsApplication`: a topology on Spark, exactly once.

    application = StreamsApplication(builder.build(), application_id="word-count", bootstrap="127.0.0.1:9092")
    query = application.start(spark, checkpoint="/data/checkpoints/word-count")
    query.awaitTermination()

Before it starts, topics of its own are made (repartition topics, changelogs) and what cannot work is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.settings import parse_named
from ottla.common.errors import OttlaError
from ottla.common.guarantees import EXACTLY_ONCE, check_guarantee
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.spark.sink.progress import published
from ottla.spark.sink.streaming import WriteQuery, write_stream
from ottla.spark.source.ranges import RangeReading
from ottla.streams.engine.housekeeping import Housekeeping
from ottla.streams.engine.identity import check_identity, shape_of
from ottla.streams.engine.outputs import COMPRESSION
from ottla.streams.engine.preparing import Prepared, prepare, reset
from ottla.streams.engine.running import TopologyRun
from ottla.streams.errors import DEFAULT_HANDLING, ErrorHandling
from ottla.streams.native import native_stages
from ottla.streams.state.specs import check_name
from ottla.streams.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As much as a Spark task takes into memory to put records of several topics in order.
BYTES_PER_BATCH = "32m"
_EARLIEST, _LATEST = -2, -1


class StreamsApplication:
    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str,
        bootstrap: str,
        kafka: Mapping[str, str] | None = None,
        handling: ErrorHandling = DEFAULT_HANDLING,
        processing_guarantee: str = EXACTLY_ONCE,
        lineage: bool = False,
    ) -> None:
        """`application_id`: of its consumer group, transactional id and topics. `kafka`: settings of the cluster.
        `processing_guarantee`: "exactly_once_v2", or "at_least_once": results are seen before their batch is done,
        and after a failure some come twice. State is exact either way. `lineage`: every record that is written names in
        a header the one whose processing wrote it, for `ottla trace`."""
        check_name(application_id, "an application")
        self.topology = topology
        self.application_id = application_id
        self._bootstrap = bootstrap
        self._kafka = dict(kafka or {})
        self._settings = parse_named(bootstrap, self._kafka)
        self._handling = handling
        self._guarantee = check_guarantee(processing_guarantee)
        self._lineage = lineage

    def prepare(self) -> Prepared:
        """Checks the topics that are read, makes those of the application. Raises OttlaError for what cannot work."""
        return prepare(self.topology, self.application_id, self._settings, self._handling)

    def reset(self) -> None:
        """Forget how far it was and delete its state: the next start, with an empty checkpoint, begins anew. One that
        still runs is shut out. What it has written to other topics stays."""
        shape = shape_of(self.topology, self.application_id)
        reset(shape, self._settings, self._bootstrap, self._kafka)

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
        place = Checkpoint(spark, checkpoint)
        self._refuse_other_checkpoint(place)
        check_identity(place, shape_of(self.topology, self.application_id))
        prepared = self.prepare()
        stages = native_stages(self.topology, self._handling, has_lineage=self._lineage)
        options = self._source_options(prepared, source_options)
        run = TopologyRun(
            self.topology,
            self.application_id,
            self._settings,
            prepared.partition_counts,
            self._handling,
            prepared.generation,
            frozenset(prepared.own),
            RangeReading.of(options),
            stages,
            self._lineage,
        )
        frame = spark.readStream.format("ottla").options(**options, rangesOnly="true").load()
        return write_stream(
            frame,
            work=run,
            name=self.application_id,
            bootstrap=self._bootstrap,
            kafka=self._kafka,
            checkpoint=checkpoint,
            trigger=trigger,
            tables=Housekeeping(self._settings, prepared.repartition),
            # State is in the log: a batch that was published has changed it, and must not be computed again.
            has_state=False,
            compression=COMPRESSION,
            batch_bytes=prepared.batch_bytes,
            processing_guarantee=self._guarantee,
            transactional_topics=prepared.own,
        )

    def _refuse_other_checkpoint(self, place: Checkpoint) -> None:
        last = published(name=self.application_id, bootstrap=self._bootstrap, kafka=self._kafka)
        query = place.last_query()
        if last is not None and last.query != query:
            raise OttlaError(
                f"application '{self.application_id}' has written to this cluster before, up to batch {last.batch}, "
                f"with another checkpoint than {place.location}: start it with that one, reset it, which deletes its "
                "state, or give this one another id."
            )

    def _source_options(self, prepared: Prepared, options: Mapping[str, Any]) -> dict[str, str]:
        chosen = {"maxBytesPerTrigger": BYTES_PER_BATCH, **options}
        starts = {
            topic: {str(number): self._starts_at(topic) for number in range(count)}
            for topic, count in prepared.partition_counts.items()
        }
        return {
            "kafka.bootstrap.servers": self._bootstrap,
            **{f"kafka.{name.removeprefix('kafka.')}": value for name, value in self._kafka.items()},
            "subscribe": ",".join(starts),
            "startingOffsets": json.dumps(starts),
            "includeHeaders": "true",
            "wholePartitions": "true",
            **{name: str(value) for name, value in chosen.items()},
        }

    def _starts_at(self, topic: str) -> int:
        topology, name = self.topology, self.application_id
        real = {topology.real_name(name, each): node for node in topology.sources() for each in node.topics}
        node = real.get(topic)
        # A later version of an application does all its work again.
        is_latest = node is not None and node.reset == "latest" and not topology.output_suffix
        return _LATEST if is_latest else _EARLIEST

    def run_available(self, spark: SparkSession, *, checkpoint: str, **source_options: Any) -> None:
        """All that is there now, also what the application itself writes to topics that it reads; then stop."""
        while True:
            query = self.start(spark, checkpoint=checkpoint, trigger={"availableNow": True}, **source_options)
            query.awaitTermination()
            if not any(progress["numInputRows"] for progress in query.recentProgress):
                return
