"""What both coordinators stand on: which partitions of their topic are led here, and a shard for each of them.

A shard is a machine that decides (`ottla.groups`, `ottla.transactions`) and the log of its partition; how it carries
out an operation is the same for both (`coordinator_shard.py`). It is elected together with the partition, reads the
whole log before it answers anybody, and resigns together with the partition.

Why nothing is served that is not committed. A machine replays its records when they are appended, so it may know more
than is committed. But every answer waits until the log is committed to its end, whether or not the request wrote
something. If that cannot be because the partition is led by somebody else now, the shard is gone as well: who leads
under a new epoch has a new `Partition`, and a new shard reads what is in the log then. If the leader stays and replicas
are missing, what was appended stays in the log, here as in Kafka: the client is told to try again, and until the
records are committed nobody is told of them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.broker.coordinators.coordinator_log import CoordinatorLog, Serialize, all_batches, replay_batch
from ottla.broker.coordinators.coordinator_shard import CoordinatorShard
from ottla.broker.coordinators.java_hash import partition_of
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.common.steps import Pauses
from ottla.metadata.image import NO_LEADER, ClusterImage

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

# A partition that cannot be read is tried again, each time after twice as long.
_RETRY_MS, _RETRY_MS_MAX = 1_000, 60_000


S = TypeVar("S", bound=CoordinatorShard[Any])


class CoordinatorRuntime(Generic[S]):
    def __init__(self, broker: Broker, topic: str, log: logging.Logger, make_shard: Callable[[Partition], S]) -> None:
        self._broker = broker
        self._topic = topic
        self._log = log
        self._make_shard = make_shard
        self._topic_id: TopicId = ZERO_TOPIC_ID
        self._count = 0
        # Of the partitions that are led here, by number; and the partition that each shard was elected with.
        self._shards: dict[int, S] = {}
        self._partitions: dict[int, Partition] = {}
        # With how long to wait if it cannot be read.
        self._to_load: deque[tuple[Partition, S, int]] = deque()
        self._loading: asyncio.Task[None] | None = None
        self._is_stopped = False
        # What ages does so by a clock that no one can set: wall time at the start, and what has passed since then.
        self._ahead_ms = broker.clock.now_ms() - broker.clock.monotonic_ms()

    def now_ms(self) -> int:
        return self._broker.clock.monotonic_ms() + self._ahead_ms

    # --- finding the shard of a group or a transactional id

    @property
    def has_topic(self) -> bool:
        return self._count > 0

    async def make_topic(self) -> None:
        """Done when the first client looks for its coordinator. Raises ApiError, as COORDINATOR_NOT_AVAILABLE when the
        controller cannot do it now."""
        try:
            await self._broker.topics.ensure_internal(self._topic)
        except PeerUnavailable as error:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        except ApiError as error:
            if error.code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT):
                raise
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    def partition_of(self, key: str) -> TopicPartition:
        """Raises COORDINATOR_NOT_AVAILABLE while there is no topic."""
        if not self._count:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return TopicPartition(self._topic, partition_of(key, self._count))

    def leader_of(self, key: str) -> int:
        """The broker that coordinates it. Raises COORDINATOR_NOT_AVAILABLE while there is none."""
        where, image = self.partition_of(key), self._broker.image
        topic = image.topics.get(where.topic)
        leader = NO_LEADER if topic is None else topic.partitions[where.partition].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return leader

    def shard(self, key: str) -> S:
        """Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        found = self._shards.get(partition_of(key, self._count)) if self._count else None
        if found is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if found.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return found

    def get(self, index: int) -> S | None:
        return self._shards.get(index)

    def all(self) -> list[S]:
        return list(self._shards.values())

    def loaded(self) -> list[S]:
        return [shard for shard in self._shards.values() if not shard.is_loading]

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards.values())

    # --- taking over partitions, and giving them back

    def follow(self, image: ClusterImage) -> None:
        """Be the coordinator of the partitions that are led here, and of no others."""
        if self._is_stopped:
            return
        topic = image.topics.get(self._topic)
        if topic is None or topic.id != self._topic_id:
            self.resign_all()
        if topic is None:
            return
        self._topic_id, self._count = topic.id, len(topic.partitions)
        led = {partition.index: partition for partition in self._broker.partitions.of_topic(self._topic)}
        # One that is led under another epoch is another object: others may have written to it in between.
        for index in [index for index in self._shards if led.get(index) is not self._partitions[index]]:
            self.resign(index)
        for index, partition in led.items():
            if index not in self._shards:
                self.elect(partition)

    def log_of(
        self, partition: Partition, serialize: Serialize, codec: Callable[[], int] | None = None
    ) -> CoordinatorLog:
        """For the shard of a partition."""
        broker = self._broker
        timeout_ms = broker.config.offsets_commit_timeout_ms if broker.is_clustered else None
        return CoordinatorLog(partition, broker.clock, serialize, codec, timeout_ms)

    def elect(self, partition: Partition) -> None:
        self._partitions[partition.index] = partition
        shard = self._shards[partition.index] = self._make_shard(partition)
        if partition.log.log_start_offset == partition.log.log_end_offset:
            shard.loaded()
            return
        self._load_soon(partition, shard, _RETRY_MS)

    def resign(self, index: int) -> None:
        del self._partitions[index]
        self._shards.pop(index).resign()

    def resign_all(self) -> None:
        for index in list(self._shards):
            self.resign(index)
        self._count, self._topic_id = 0, ZERO_TOPIC_ID
        self._to_load.clear()
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    def stop(self) -> None:
        """The broker stops: whatever the image says from now on, nobody is elected."""
        self._is_stopped = True
        self.resign_all()

    # --- reading their logs

    def _load_soon(self, partition: Partition, shard: S, retry_ms: int) -> None:
        self._to_load.append((partition, shard, retry_ms))
        if self._loading is None:
            self._loading = self._broker.loop.create_task(self._load(), name=f"load {self._topic}")

    def _load_one(self, partition: Partition, shard: S) -> Pauses[int]:
        records = 0
        shard.begin_loading()
        for data, position, header in all_batches(partition.log):
            records += replay_batch(shard, self._log, data, position, header)
            yield None
            if self._shards.get(partition.index) is not shard:
                return records  # it has resigned meanwhile
        shard.loaded()  # in the same turn: what is added from now on comes to the shard itself
        return records

    async def _load(self) -> None:
        began, partitions, records = time.perf_counter(), 0, 0
        while self._to_load:
            partition, shard, retry_ms = self._to_load.popleft()
            if self._shards.get(partition.index) is not shard:
                continue  # it has resigned
            try:
                records += await self._broker.turns.queue(self._load_one(partition, shard))
                partitions += 1
            except Exception:  # of one partition; the others must not suffer for it
                what = {"partition": f"{self._topic}-{partition.index}"}
                self._log.exception("a partition of a coordinator cannot be loaded, will try again", extra=what)
                again = partial(self._load_soon, partition, shard, min(2 * retry_ms, _RETRY_MS_MAX))
                self._broker.call_later(retry_ms, again)
        self._loading = None
        if not partitions:
            return
        took_ms = round((time.perf_counter() - began) * 1000)
        done = {"topic": self._topic, "partitions": partitions, "records": records, "took_ms": took_ms}
        self._log.info("coordinator loaded", extra=done)
