"""All groups of one `__consumer_offsets` partition: the registry, and the replay that builds it.

`replay` is the only writer of durable state, whether a record comes from the log at start-up or has just been
appended. It forgives: compaction removes records that once stood in between, so a tombstone may come for something
unknown, and offsets may come before the group they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.groups.classic_group import ClassicGroup
from ottla.groups.config import ConsumerSettings, GroupConfig
from ottla.groups.consumer_group import ConsumerGroup
from ottla.groups.offsets import NO_PRODUCER, OffsetStore
from ottla.groups.records import Record
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

Group = ClassicGroup | ConsumerGroup


class Client(NamedTuple):
    """Who asks: what group state remembers of a request's origin."""

    version: int
    client_id: str = ""
    host: str = ""
    # Which topics it may know of, where an authorizer says so.
    may_describe: Callable[[str], bool] | None = None


class GroupState:
    def __init__(self, config: GroupConfig, new_id: Callable[[], str], image: ClusterImage) -> None:
        self.config = config
        # A fresh UUID as text; the only randomness there is.
        self.new_id = new_id
        self.image = image
        # Settings of single groups, where they have any.
        self.own_settings: Callable[[str], ConsumerSettings | None] = lambda group_id: None
        # Counts images; and the last one that had new topics.
        self.image_number = 0
        self.new_topics_number = 0
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        # The log as far as it is replayed.
        self.next_offset = 0
        # Deleted topics whose offsets are still to be forgotten, and where the log stood when they were deleted.
        self.forgetting: dict[str, int] = {}
        # While the log is read, each record of a classic group replaces the one before. Afterwards the group lives, its
        # members come and go between records, and a record is only our own word coming back.
        self.is_loading = True

    # --- lookups

    def consumer_settings(self, group_id: str) -> ConsumerSettings:
        return self.own_settings(group_id) or self.config.consumer

    def group(self, group_id: str) -> Group:
        found = self.groups.get(group_id)
        if found is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return found

    def classic(self, group_id: str) -> ClassicGroup | None:
        found = self.groups.get(group_id)
        return found if isinstance(found, ClassicGroup) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        found = self.groups.get(group_id)
        return found if isinstance(found, ConsumerGroup) else None

    def on_image(self, image: ClusterImage, *, has_new_topics: bool) -> None:
        """Groups look at their topics again at the next heartbeat."""
        self.image = image
        self.image_number += 1
        if has_new_topics:
            self.new_topics_number = self.image_number

    # --- replay

    def clear(self) -> None:
        """As before the first record. Topics that were deleted meanwhile are still to be forgotten."""
        self.is_loading = True
        self.groups.clear()
        self.offsets = OffsetStore()
        self.next_offset = 0

    def replay(self, record: Record, record_offset: int = -1, producer_id: int = NO_PRODUCER) -> None:
        key, value, _ = record
        self.next_offset = max(self.next_offset, record_offset + 1)
        _REPLAY[type(key).__name__](self, key, value, record_offset, producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed=committed)

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, record_offset: int, producer_id: int
    ) -> None:
        if value is not None and key.group not in self.groups:
            # Someone who commits without being a member: a group in name only.
            self.groups[key.group] = ClassicGroup(key.group)
        self.offsets.replay(key, value, record_offset, producer_id)

    def _replay_classic(self, key: GroupMetadataKey, value: GroupMetadataValue | None, *_: int) -> None:
        group = self.groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self.groups[key.group]
        elif isinstance(group, ClassicGroup) and not self.is_loading:
            group.take_assignments(value)
        else:
            self.groups[key.group] = ClassicGroup.from_record(key.group, value)

    def _consumer_to_write(self, group_id: str, *, create: bool) -> ConsumerGroup | None:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not create:
            return None
        # Offsets that were replayed first may have put a classic group in name only in its place.
        made = ConsumerGroup(group_id)
        self.groups[group_id] = made
        return made

    def _replay_epoch(self, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None, *_: int) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None and value is not None:
            group.epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        elif group is not None:
            del self.groups[key.group_id]

    def _replay_partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None, *_: int
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.has_partition_metadata_record = value is not None

    def _replay_member(
        self, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None, *_: int
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.replay_member(key.member_id, value)

    def _replay_target_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
        *_: int,
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.assignment_epoch = -1 if value is None else value.assignment_epoch
            group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
        *_: int,
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.replay_target(key.member_id, value)

    def _replay_current(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
        *_: int,
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.replay_current(key.member_id, value)

    def _replay_regex(
        self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None, *_: int
    ) -> None:
        group = self._consumer_to_write(key.group_id, create=value is not None)
        if group is not None:
            group.replay_regex(key.regular_expression, value)


_REPLAY: dict[str, Callable[..., None]] = {
    "OffsetCommitKey": GroupState._replay_offset,
    "GroupMetadataKey": GroupState._replay_classic,
    "ConsumerGroupMetadataKey": GroupState._replay_epoch,
    "ConsumerGroupPartitionMetadataKey": GroupState._replay_partition_metadata,
    "ConsumerGroupMemberMetadataKey": GroupState._replay_member,
    "ConsumerGroupTargetAssignmentMetadataKey": GroupState._replay_target_epoch,
    "ConsumerGroupTargetAssignmentMemberKey": GroupState._replay_target,
    "ConsumerGroupCurrentMemberAssignmentKey": GroupState._replay_current,
    "ConsumerGroupRegularExpressionKey": GroupState._replay_regex,
}
