"""What there is to read: topics, their partitions, and the offsets at their ends or at a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.retrying import Patience
from ottla.client.settings import ClientSettings
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import RETRIABLE, Retriable, refusal
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.messages import ListOffsetsRequest, OffsetForLeaderEpochRequest

T = TypeVar("T")

EARLIEST, LATEST = -2, -1
# The first offset that the leader has on its own disk; what lies before it is in remote storage (KIP-405).
EARLIEST_LOCAL = -4
NO_OFFSET = -1
# A cluster that restarts may deny a topic for a moment: it is asked again this long.
MISSING_TOPIC_TIMEOUT_S = 2.0
_MISSING_TOPIC_PAUSE_S = 0.2


class Passing(Retriable):
    """An error that leader changes and restarts bring and take away again."""


class Absent(Passing):
    """A partition that the cluster does not know: it may just have restarted, or the topic is gone."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"partition {partition} does not exist.")
        self.partition = partition


class LogEnd(NamedTuple):
    offset: int
    # The epoch of the leader that said so; -1 where it does not tell.
    leader_epoch: int


class ClusterReader:
    """Reads what a cluster has. Retries what passes; keeps its connections until `close`."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        timeout_s = settings.request_timeout_ms / 1000
        self.cluster = ClusterClient(settings.address, timeout_s=timeout_s, client_id=settings.client_id)
        self._leaders: dict[TopicPartition, int] = {}
        self._missing: set[str] = set()
        # Of those that were asked for last; brokers before Kafka 2.8 know none.
        self.topic_ids: dict[str, TopicId] = {}
        self._patience = Patience(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._leaders = {}
        self.cluster.close()

    def retried(self, ask: Callable[[], T]) -> T:
        """`ask` until it neither loses its broker nor meets an error that passes. Raises OttlaError."""
        while True:
            try:
                answer = ask()
            except (OSError, Passing, Unreachable) as error:
                self.forget()
                self._patience.wait(error)
            else:
                self._patience.moved()
                return answer

    def forget(self) -> None:
        """After a failure: whom we knew may be somebody else now."""
        self.close()

    # --- topics

    def topic_names(self) -> list[str]:
        """All but internal ones."""
        answer = self.retried(lambda: self.cluster.metadata(None))
        return sorted(topic.name for topic in answer.topics if not topic.is_internal and not topic.error_code)

    def partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """The partitions of each of these topics that is there."""
        deadline = time.monotonic() + MISSING_TOPIC_TIMEOUT_S
        while True:
            found = self.retried(lambda: self._partitions(topics))
            missing = set(topics) - set(found)
            if missing <= self._missing or time.monotonic() > deadline:
                self._missing = missing  # next time they are believed at once
                return found
            time.sleep(_MISSING_TOPIC_PAUSE_S)

    def _partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for topic in self.cluster.metadata(topics).topics if topics else ():
            self.topic_ids.pop(topic.name, None)
            if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                continue
            check(topic.error_code, f"topic {topic.name}")
            if topic.topic_id != ZERO_TOPIC_ID:
                self.topic_ids[topic.name] = TopicId(bytes(topic.topic_id))
            for partition in topic.partitions:
                self._leaders[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
            found[topic.name] = sorted(partition.partition_index for partition in topic.partitions)
        return found

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Raises Passing while one of them has no leader, Absent while one is not there."""
        wanted = list(partitions)
        unknown = {one.topic for one in wanted if self._leaders.get(one, -1) < 0}
        if unknown:
            self._partitions(sorted(unknown))
        grouped: dict[int, list[TopicPartition]] = {}
        for one in wanted:
            if one not in self._leaders:
                raise Absent(one)
            leader = self._leaders[one]
            if leader < 0:
                raise Passing(f"partition {one} has no leader now.")
            grouped.setdefault(leader, []).append(one)
        return grouped

    # --- offsets

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the first offset at or after a time in ms, or EARLIEST, or LATEST: up to where can be
        read, which with committed reads is the last stable offset. NO_OFFSET where nothing is that new."""
        return self.retried(lambda: self.offsets_now(wanted)) if wanted else {}

    def offsets_now(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """As `offsets`, asked once."""
        return {one: found.offset for one, found in self._list_offsets(wanted).items()}

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Up to where each of these can be read now."""
        wanted = dict.fromkeys(partitions, LATEST)
        return self.retried(lambda: self._list_offsets(wanted)) if wanted else {}

    def _list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, LogEnd]:
        found: dict[TopicPartition, LogEnd] = {}
        for leader, partitions in self.by_leader(wanted).items():
            answer = self.cluster.broker(leader).call(self._offsets_request(partitions, wanted))
            for topic in answer.topics:
                for row in topic.partitions:
                    one = TopicPartition(topic.name, row.partition_index)
                    check(row.error_code, f"partition {one}")
                    found[one] = LogEnd(row.offset, row.leader_epoch)
        return found

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the offset at which this leader epoch ended, as far as its leader knows: a log that was
        read further than that in this epoch was cut since (KIP-320)."""
        return self.retried(lambda: self._epoch_ends(epochs)) if epochs else {}

    def _epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for leader, partitions in self.by_leader(epochs).items():
            broker = self.cluster.broker(leader)
            if not broker.knows("OffsetForLeaderEpochRequest"):
                continue
            by_topic: dict[str, list[Any]] = {}
            for one in partitions:
                row = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=one.partition, current_leader_epoch=-1, leader_epoch=epochs[one]
                )
                by_topic.setdefault(one.topic, []).append(row)
            topics = [
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=rows)
                for name, rows in by_topic.items()
            ]
            for topic in broker.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)).topics:
                for row in topic.partitions:
                    one = TopicPartition(topic.topic, row.partition)
                    check(row.error_code, f"partition {one}")
                    if row.end_offset >= 0:
                        found[one] = row.end_offset
        return found

    def _offsets_request(
        self, partitions: Sequence[TopicPartition], wanted: Mapping[TopicPartition, int]
    ) -> ListOffsetsRequest:
        by_topic: dict[str, list[Any]] = {}
        for one in partitions:
            row = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=one.partition, current_leader_epoch=-1, timestamp=wanted[one]
            )
            by_topic.setdefault(one.topic, []).append(row)
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self.settings.is_committed_only),
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=rows) for name, rows in by_topic.items()],
            timeout_ms=self.settings.request_timeout_ms,
        )


def check(code: int, what: str) -> None:
    """Raises Passing for an error that passes, OttlaError for any other."""
    if not code:
        return
    if code in RETRIABLE:
        raise Passing(f"the cluster cannot serve {what} now: {ErrorCode(code).name}.")
    raise OttlaError(refusal(code, what, f"the cluster refused to serve {what}"))
