"""Who is in sync, told to the controller (Kafka's AlterPartitionManager): the edge of `ottla.replication.leader`.

Replicas that fall behind are looked for twice in each replica.lag.time.max.ms, those that have caught up when they
fetch. What a leader proposes goes to the controller by AlterPartition, one request at a time for all partitions, and
again until there is an answer, an image that says more, or another leader epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from ottla.replication.leader import IsrState, LeaderState

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger("ottla.broker")

_RETRY_MS = 50
_RETRY_MS_MAX = 1_000
# A replica that the controller does not take is not proposed again at once: it fetches all the time.
_AFTER_REFUSAL_MS = 1_000
_PARTITIONS_PER_REQUEST = 1_000


class IsrChanges:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # With a proposal that is not settled.
        self._proposed: dict[Partition, LeaderState] = {}
        self._refused_until_ms: dict[Partition, int] = {}
        self._sending: asyncio.Task[None] | None = None

    def start(self) -> None:
        broker = self._broker
        broker.timers.every(lambda: max(1, broker.config.replica_lag_time_max_ms / 2), self._check, "in-sync replicas")

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    # --- when

    def consider(self, partition: Partition, replica: int) -> None:
        """A replica that is not in sync has fetched."""
        state, log, now_ms = partition.replication, partition.log, self._broker.clock.monotonic_ms()
        if state is None or not self._is_live(state, replica):
            return
        state.consider_joining(replica, log.log_end_offset, now_ms, self._broker.config.replica_lag_time_max_ms)
        if state.may_join(replica, log.high_watermark) and self._refused_until_ms.get(partition, 0) <= now_ms:
            self._propose(partition, state, state.isr | {replica})

    def _is_live(self, state: LeaderState, replica: int) -> bool:
        """By the registration under which it has fetched. Nobody waits for one that was fenced a moment ago."""
        registered = self._broker.image.brokers.get(replica)
        return registered is not None and registered.epoch == state.followers[replica].broker_epoch

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """A broker that has gone joins nothing; where it only was about to, nothing else tells of it."""
        if old.brokers is new.brokers:
            return
        for partition in self._broker.partitions:
            state = partition.replication
            if state is None or not state.joining:
                continue
            gone = {replica for replica in state.joining if not self._is_live(state, replica)}
            if gone:
                state.give_up(gone)
                partition.advance()

    async def _check(self) -> None:
        await self._broker.turns.queue(self._look_for_stragglers())

    def _look_for_stragglers(self) -> Steps[None]:
        lag_ms_max, now_ms = self._broker.config.replica_lag_time_max_ms, self._broker.clock.monotonic_ms()
        self._refused_until_ms = {
            partition: until_ms for partition, until_ms in self._refused_until_ms.items() if until_ms > now_ms
        }
        for partition in list(self._broker.partitions):
            yield None
            state, end_offset = partition.replication, partition.log.log_end_offset
            if state is None:
                continue
            if state.joining and state.drop_stragglers(end_offset, now_ms, lag_ms_max):
                partition.advance()
            lagging = state.lagging(end_offset, now_ms, lag_ms_max)
            if lagging:
                self._propose(partition, state, state.isr - lagging)

    def _propose(self, partition: Partition, state: LeaderState, isr: Iterable[int]) -> None:
        before = state.isr
        state.propose(isr)
        what = {
            "partition": f"{partition.topic}-{partition.index}",
            "isr": sorted(before),
            "to": sorted(state.proposed),
        }
        logger.info("proposing other in-sync replicas", extra=what)
        self._proposed[partition] = state
        if self._sending is None:
            self._sending = self._broker.loop.create_task(self._send(), name="in-sync replicas")

    # --- the conversation with the controller

    async def _send(self) -> None:
        retry_ms = _RETRY_MS
        try:
            while True:
                await asyncio.sleep(0)  # what is proposed in the same turn goes along
                waiting = self._still_proposed()
                if not waiting:
                    return
                epochs = {partition: self._proposed[partition].partition_epoch for partition in waiting}
                try:
                    answer: AlterPartitionResponse = await self._broker.ask_controller(self._request(waiting))
                    if answer.error_code:
                        raise ApiError(ErrorCode(answer.error_code))
                except (PeerUnavailable, ApiError) as error:
                    logger.info("in-sync replicas could not be changed, will try again", extra={"why": str(error)})
                    await self._broker.timers.sleep(retry_ms)
                    retry_ms = min(2 * retry_ms, _RETRY_MS_MAX)
                    continue
                if self._settle(waiting, epochs, answer):
                    retry_ms = _RETRY_MS
                else:
                    await self._broker.timers.sleep(retry_ms)
                    retry_ms = min(2 * retry_ms, _RETRY_MS_MAX)
        finally:
            self._sending = None

    def _still_proposed(self) -> list[Partition]:
        """Not those that are settled, by an image for instance, nor of an epoch that is over."""
        get = self._broker.partitions.by_id.get
        self._proposed = {
            partition: state
            for partition, state in self._proposed.items()
            if state.state is IsrState.PROPOSED
            and partition.replication is state
            and get(partition.topic_id, partition.index) is partition
        }
        return list(self._proposed)[:_PARTITIONS_PER_REQUEST]

    def _request(self, partitions: list[Partition]) -> AlterPartitionRequest:
        topics: dict[bytes, list[AlterPartitionRequest.PartitionData]] = {}
        for partition in partitions:
            state = self._proposed[partition]
            members = [
                AlterPartitionRequest.BrokerState(
                    broker_id=replica,
                    broker_epoch=self._broker.broker_epoch if replica == self._broker.node_id else epoch,
                )
                for replica, epoch in state.proposal()
            ]
            data = AlterPartitionRequest.PartitionData(
                partition_index=partition.index,
                leader_epoch=state.leader_epoch,
                new_isr_with_epochs=members,
                partition_epoch=state.partition_epoch,
            )
            topics.setdefault(partition.topic_id, []).append(data)
        return AlterPartitionRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self._broker.broker_epoch,
            topics=[
                AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()
            ],
        )

    def _settle(self, waiting: list[Partition], epochs: dict[Partition, int], answer: AlterPartitionResponse) -> bool:
        """Whether any of the proposals is settled. `epochs` are those of the request: an image may have settled it
        meanwhile, and something else may be proposed since."""
        asked: dict[tuple[bytes, int], Partition] = {
            (partition.topic_id, partition.index): partition for partition in waiting
        }
        any_settled = False
        for topic in answer.topics:
            for answered in topic.partitions:
                partition = asked.get((topic.topic_id, answered.partition_index))
                if partition is None:
                    continue
                state = self._proposed[partition]
                if state.partition_epoch != epochs[partition]:
                    any_settled = True
                    continue
                if answered.error_code:
                    state.on_refused(ErrorCode(answered.error_code), epochs[partition])
                    self._note_refusal(partition, ErrorCode(answered.error_code))
                else:
                    state.on_accepted(answered.isr, answered.partition_epoch)
                if state.state is not IsrState.PROPOSED:
                    any_settled = True
                if partition.replication is state:
                    partition.isr_changed()
        return any_settled

    def _note_refusal(self, partition: Partition, code: ErrorCode) -> None:
        self._refused_until_ms[partition] = self._broker.clock.monotonic_ms() + _AFTER_REFUSAL_MS
        what = {"partition": f"{partition.topic}-{partition.index}", "why": code.name}
        logger.info("the controller does not change in-sync replicas", extra=what)
