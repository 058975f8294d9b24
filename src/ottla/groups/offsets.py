"""Committed offsets: the store that replay fills. What is done with it at whose request is in `offset_requests`.

Offsets of an open transaction wait beside the store, under the producer that wrote them, until its marker says whether
they count. A commit outside a transaction that comes later in the log wins over one inside (by record offset), because
compaction may have taken the marker's neighbours away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.protocol.messages import OffsetCommitKey, OffsetCommitValue

NO_PRODUCER = -1
ByTopic = dict[str, dict[int, "CommittedOffset"]]


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    # Only when the client asked for a retention of its own (OffsetCommit v2-4).
    expire_timestamp_ms: int = -1
    topic_id: TopicId = ZERO_TOPIC_ID
    # Where the record stands in the log.
    record_offset: int = -1


class OffsetStore:
    def __init__(self) -> None:
        self.by_group: dict[str, ByTopic] = {}
        self.pending: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        # group -> producers with an open transaction that commits offsets of the group
        self._open: dict[str, dict[int, None]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self.by_group.get(group_id)
        return None if topics is None else topics.get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> ByTopic:
        return self.by_group.get(group_id, {})

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        producers = self._open.get(group_id)
        if not producers:
            return False
        key = (group_id, topic, partition)
        return any(key in self.pending.get(producer, ()) for producer in producers)

    def pending_of_group(self, group_id: str) -> Iterator[tuple[str, int]]:
        for producer in self._open.get(group_id, ()):
            for group, topic, partition in self.pending.get(producer, ()):
                if group == group_id:
                    yield topic, partition

    def each(self) -> Iterator[tuple[str, CommittedOffset]]:
        """Every offset with its topic, committed or waiting for the end of a transaction."""
        for topics in self.by_group.values():
            for topic, partitions in topics.items():
                for committed in partitions.values():
                    yield topic, committed
        for pending in self.pending.values():
            for (_, topic, _), committed in pending.items():
                yield topic, committed

    # --- replay

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, record_offset: int, producer_id: int
    ) -> None:
        if value is None:
            self._remove(key)
            return
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            TopicId(value.topic_id),
            record_offset,
        )
        if producer_id == NO_PRODUCER:
            self._put(key.group, key.topic, key.partition, committed)
        else:
            self.pending.setdefault(producer_id, {})[key.group, key.topic, key.partition] = committed
            self._open.setdefault(key.group, {})[producer_id] = None

    def _put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def _remove(self, key: OffsetCommitKey) -> None:
        topics = self.by_group.get(key.group)
        if topics is not None:
            partitions = topics.get(key.topic)
            if partitions is not None:
                partitions.pop(key.partition, None)
                if not partitions:
                    del topics[key.topic]
            if not topics:
                del self.by_group[key.group]
        for producer in self._open.get(key.group, ()):
            self.pending.get(producer, {}).pop((key.group, key.topic, key.partition), None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The transaction's marker is in the log."""
        offsets = self.pending.pop(producer_id, None)
        for group_id in [group for group, producers in self._open.items() if producer_id in producers]:
            del self._open[group_id][producer_id]
            if not self._open[group_id]:
                del self._open[group_id]
        if offsets is None or not committed:
            return
        for (group_id, topic, partition), offset in offsets.items():
            held = self.get(group_id, topic, partition)
            if held is None or offset.record_offset > held.record_offset:
                self._put(group_id, topic, partition, offset)
