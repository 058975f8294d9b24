"""What there is to read: topics, their partitions, and the offsets at their ends or at a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ottla.client.cluster import ClusterClient
from ottla.client.retrying import Backoff, Deadline, retried
from ottla.client.settings import ClientSettings
from ottla.common.failures import check
from ottla.common.ids import TopicPartition, by_topic
from ottla.protocol.messages import ListOffsetsRequest, OffsetForLeaderEpochRequest

T = TypeVar("T")

EARLIEST, LATEST = -2, -1
# The first offset that the leader has on its own disk; what lies before it is in remote storage (KIP-405).
EARLIEST_LOCAL = -4
NO_OFFSET = -1
# A cluster that restarts may deny a topic for a moment: it is asked again this long.
MISSING_TOPIC_TIMEOUT_S = 2.0
# Where nobody has ever answered, the address is more likely wrong than the cluster down.
_FIRST_CONTACT_TIMEOUT_S = 10.0


class LogEnd(NamedTuple):
    offset: int
    # The epoch of the leader that said so; -1 where it does not tell.
    leader_epoch: int


class ClusterReader(ClusterClient):
    """Reads what a cluster has. Retries what passes; keeps its connections until `close`."""

    def __init__(self, settings: ClientSettings) -> None:
        timeout_s = settings.request_timeout_ms / 1000
        super().__init__(settings.address, timeout_s=timeout_s, client_id=settings.client_id)
        self.settings = settings
        self._missing: set[str] = set()

    def deadline(self, *, has_met: bool) -> Deadline:
        """`has_met`: the cluster is known to exist, if only to somebody else."""
        limit_s = self.settings.api_timeout_ms / 1000
        if not has_met:
            limit_s = min(limit_s, _FIRST_CONTACT_TIMEOUT_S)
        return Deadline(limit_s, Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms))

    def retried(self, ask: Callable[[], T]) -> T:
        """`ask` until it neither loses its broker nor meets a retriable error. Raises OttlaError."""
        return retried(ask, self.deadline(has_met=bool(self.brokers)), self.forget)

    # --- topics

    def topic_names(self) -> list[str]:
        """All but internal ones."""
        answer = self.retried(lambda: self.metadata(None))
        return sorted(topic.name for topic in answer.topics if not topic.is_internal and not topic.error_code)

    def partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """The partitions of each of these topics that is there."""
        if not topics:
            return {}
        deadline = Deadline(MISSING_TOPIC_TIMEOUT_S)
        while True:
            found = self.retried(lambda: self.refresh(topics))
            missing = set(topics) - set(found)
            if missing <= self._missing or not deadline.pause():
                self._missing = missing  # next time they are believed at once
                return found

    # --- offsets

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the first offset at or after a time in ms, or EARLIEST, or LATEST: up to where can be
        read, which with committed reads is the last stable offset. NO_OFFSET where nothing is that new."""
        return self.retried(lambda: self.offsets_now(wanted)) if wanted else {}

    def offsets_now(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """As `offsets`, asked once."""
        return {partition: found.offset for partition, found in self._list_offsets(wanted).items()}

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Up to where each of these can be read now."""
        wanted = dict.fromkeys(partitions, LATEST)
        return self.retried(lambda: self._list_offsets(wanted)) if wanted else {}

    def _list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, LogEnd]:
        found: dict[TopicPartition, LogEnd] = {}
        for leader, partitions in self.by_leader(wanted).items():
            rows = by_topic((partition, _time_row(partition, wanted[partition])) for partition in partitions)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(self.settings.is_committed_only),
                topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=its) for name, its in rows.items()],
                timeout_ms=self.settings.request_timeout_ms,
            )
            for topic in self.broker(leader).call(request).topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    check(row.error_code, f"partition {partition}")
                    found[partition] = LogEnd(row.offset, row.leader_epoch)
        return found

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the offset at which this leader epoch ended, as far as its leader knows: a log that was
        read further than that in this epoch was cut since (KIP-320)."""
        return self.retried(lambda: self._epoch_ends(epochs)) if epochs else {}

    def _epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for leader, partitions in self.by_leader(epochs).items():
            broker = self.broker(leader)
            if not broker.knows("OffsetForLeaderEpochRequest"):
                continue
            rows = by_topic((partition, _epoch_row(partition, epochs[partition])) for partition in partitions)
            schema = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
            topics = [schema(topic=name, partitions=its) for name, its in rows.items()]
            for topic in broker.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)).topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.topic, row.partition)
                    check(row.error_code, f"partition {partition}")
                    if row.end_offset >= 0:
                        found[partition] = row.end_offset
        return found


def _time_row(partition: TopicPartition, timestamp: int) -> ListOffsetsRequest.ListOffsetsPartition:
    return ListOffsetsRequest.ListOffsetsPartition(
        partition_index=partition.partition, current_leader_epoch=-1, timestamp=timestamp
    )


def _epoch_row(partition: TopicPartition, epoch: int) -> OffsetForLeaderEpochRequest.OffsetForLeaderPartition:
    return OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=partition.partition, current_leader_epoch=-1, leader_epoch=epoch
    )
