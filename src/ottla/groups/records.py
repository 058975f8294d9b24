"""Kafka's `__consumer_offsets` records: one builder for each kind, and their bytes.

A key is its record type (int16) and a struct that never changes; a value is its version (int16) and a struct of that
version. The versions written are those a Kafka 4.3 broker writes, so that either can read the other's log.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, Message
from ottla.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
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

if TYPE_CHECKING:
    from ottla.groups.classic_group import ClassicGroup
    from ottla.groups.consumer_group import Assigned, Member, ResolvedRegex, Target
    from ottla.groups.offsets import CommittedOffset


class Record(NamedTuple):
    """One coordinator record. `value` None is a tombstone; `version` is the version the value is written in."""

    key: Message
    value: Message | None
    version: int = 0


_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_COMMIT_HEAD = struct.Struct(">hqih")  # version, offset, leader epoch, length of the metadata
_TYPE_1 = _INT16.pack(1)
# Record type -> names of key and value. Type 0 is how Kafka before 0.8.2 wrote commits; the struct is the same.
_TYPES: dict[int, tuple[str, str]] = {
    0: ("OffsetCommitKey", "OffsetCommitValue"),
    1: ("OffsetCommitKey", "OffsetCommitValue"),
    2: ("GroupMetadataKey", "GroupMetadataValue"),
    3: ("ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue"),
    4: ("ConsumerGroupPartitionMetadataKey", "ConsumerGroupPartitionMetadataValue"),
    5: ("ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue"),
    6: ("ConsumerGroupTargetAssignmentMetadataKey", "ConsumerGroupTargetAssignmentMetadataValue"),
    7: ("ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue"),
    8: ("ConsumerGroupCurrentMemberAssignmentKey", "ConsumerGroupCurrentMemberAssignmentValue"),
    16: ("ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue"),
}
_TYPE_OF_KEY = {names[0]: number for number, names in _TYPES.items()}
# The newest value versions that we can read.
_NEWEST_VALUE = {"OffsetCommitValue": 4, "GroupMetadataValue": 4}

OFFSET_VALUE_WITH_EXPIRY = 1  # the only version that keeps a retention the client asked for (OffsetCommit v2-4)
OFFSET_VALUE = 3
OFFSET_VALUE_WITH_TOPIC_ID = 4
GROUP_METADATA_VALUE = 3


# --- bytes -------------------------------------------------------------------------------------------------------


def serialize(record: Record) -> tuple[bytes, bytes | None]:
    key, value, version = record
    if version == OFFSET_VALUE and isinstance(value, OffsetCommitValue) and isinstance(key, OffsetCommitKey):
        return _serialize_commit(key, value)
    out = bytearray(_INT16.pack(_TYPE_OF_KEY[type(key).__name__]))
    out += codec.encode(key, 0)
    if value is None:
        return bytes(out), None
    return bytes(out), _INT16.pack(version) + bytes(codec.encode(value, version))


def _serialize_commit(key: OffsetCommitKey, value: OffsetCommitValue) -> tuple[bytes, bytes]:
    """The record that is written most often, four times as fast."""
    group, topic, metadata = key.group.encode(), key.topic.encode(), value.metadata.encode()
    key_bytes = b"".join(
        (_TYPE_1, _INT16.pack(len(group)), group, _INT16.pack(len(topic)), topic, _INT32.pack(key.partition))
    )
    head = _COMMIT_HEAD.pack(OFFSET_VALUE, value.offset, value.leader_epoch, len(metadata))
    return key_bytes, b"".join((head, metadata, _INT64.pack(value.commit_timestamp)))


def deserialize(key: bytes, value: bytes | None) -> Record | None:
    """The record, or None for a kind of record that is not ours (share and streams groups). Raises MalformedMessage."""
    if len(key) < 2:
        raise MalformedMessage("a record key without a type")
    names = _TYPES.get(_INT16.unpack_from(key)[0])
    if names is None:
        return None
    key_name, value_name = names
    parsed_key: Message = codec.decode(key_name, 0, key, 2)
    if value is None:
        return Record(parsed_key, None)
    if len(value) < 2:
        raise MalformedMessage("a record value without a version")
    version: int = _INT16.unpack_from(value)[0]
    if not 0 <= version <= _NEWEST_VALUE.get(value_name, 0):
        raise MalformedMessage(f"{value_name} version {version} is not known")
    return Record(parsed_key, codec.decode(value_name, version, value, 2), version)


# --- offsets -----------------------------------------------------------------------------------------------------


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    if committed.expire_timestamp_ms >= 0:
        version = OFFSET_VALUE_WITH_EXPIRY
    else:
        version = OFFSET_VALUE if committed.topic_id == ZERO_TOPIC_ID else OFFSET_VALUE_WITH_TOPIC_ID
    return Record(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        ),
        version,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


# --- classic groups ----------------------------------------------------------------------------------------------


def group_metadata(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Record:
    """The group as a whole, with these assignments in place of those its members hold."""
    return Record(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=-1 if group.state_timestamp_ms is None else group.state_timestamp_ms,
            members=[
                GroupMetadataValue.MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in group.members.values()
            ],
        ),
        GROUP_METADATA_VALUE,
    )


def empty_group_metadata(group_id: str, generation: int) -> Record:
    """A group that exists and has never had a generation of members."""
    return Record(
        GroupMetadataKey(group=group_id),
        GroupMetadataValue(protocol_type="", generation=generation, protocol=None, leader=None, members=()),
        GROUP_METADATA_VALUE,
    )


def group_tombstone(group_id: str) -> Record:
    return Record(GroupMetadataKey(group=group_id), None)


# --- consumer groups ---------------------------------------------------------------------------------------------


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Record(ConsumerGroupMetadataKey(group_id=group_id), value)


def group_epoch_tombstone(group_id: str) -> Record:
    return Record(ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> Record:
    """Kafka before 4.1 kept the topics a group reads in a record; since then a hash in the epoch record does."""
    return Record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_metadata(group_id: str, member: Member) -> Record:
    classic = None
    if member.classic is not None:
        metadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
        protocol = ConsumerGroupMemberMetadataValue.ClassicProtocol
        classic = metadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[protocol(name=name, metadata=data) for name, data in member.classic.protocols],
        )
    return Record(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=member.topics,
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=classic,
        ),
    )


def member_metadata_tombstone(group_id: str, member_id: str) -> Record:
    return Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_epoch_tombstone(group_id: str) -> Record:
    return Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target_assignment(group_id: str, member_id: str, target: Target) -> Record:
    schema = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[schema(topic_id=topic_id, partitions=partitions) for topic_id, partitions in target.items()]
    )
    return Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_assignment_tombstone(group_id: str, member_id: str) -> Record:
    return Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _epoch_partitions(assigned: Assigned) -> list[Any]:
    schema = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return [
        schema(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in assigned.items()
    ]


def current_assignment(group_id: str, member: Member) -> Record:
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_epoch_partitions(member.assigned),
            partitions_pending_revocation=_epoch_partitions(member.revoking),
        ),
    )


def current_assignment_tombstone(group_id: str, member_id: str) -> Record:
    return Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    return Record(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=resolved.topics, version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def regular_expression_tombstone(group_id: str, regex: str) -> Record:
    return Record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def remove_member(group_id: str, member_id: str) -> Sequence[Record]:
    """Everything about a member, in the order in which a reader can let go of it."""
    return (
        current_assignment_tombstone(group_id, member_id),
        target_assignment_tombstone(group_id, member_id),
        member_metadata_tombstone(group_id, member_id),
    )


def read_epoch_partitions(topics: Sequence[Any], member_epoch: int) -> dict[TopicId, dict[int, int]]:
    """A record of Kafka before 4.3 has no epoch for each partition; the member's own stands in."""
    found: dict[TopicId, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or ()
        if len(epochs) == len(topic.partitions):
            found[TopicId(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
        else:
            found[TopicId(topic.topic_id)] = dict.fromkeys(topic.partitions, member_epoch)
    return found
