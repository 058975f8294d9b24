"""ListGroups, DescribeGroups, ConsumerGroupDescribe and DeleteGroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicId
from ottla.common.result import Result
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, ClassicMember, State
from ottla.groups.consumer_group import ConsumerGroup, Member
from ottla.groups.migration import group_tombstones
from ottla.groups.offset_requests import delete_all_offsets
from ottla.groups.records import Record
from ottla.groups.state import Group, GroupState
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import ConsumerGroupDescribeResponse, DescribeGroupsResponse, ListGroupsResponse

_CONSUMER_MEMBER = 1
_CLASSIC_MEMBER = 0


def list_groups(state: GroupState, states: Sequence[str], types: Sequence[str]) -> list[ListGroupsResponse.ListedGroup]:
    """Filters are case-insensitive; an empty filter lets everything through."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {kind.strip().lower() for kind in types}
    return [
        ListGroupsResponse.ListedGroup(
            group_id=group.group_id,
            protocol_type=(group.protocol_type or "") if isinstance(group, ClassicGroup) else "consumer",
            group_state=group.state_name,
            group_type=group.type_name,
        )
        for group in state.groups.values()
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.type_name in wanted_types)
    ]


# --- classic -----------------------------------------------------------------------------------------------------


def describe_classic(state: GroupState, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        described = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if version >= 6:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = (
                f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
            )
        return described
    is_stable = group.state is State.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[_classic_member(group, member, is_stable) for member in group.members.values()],
    )


def _classic_member(
    group: ClassicGroup, member: ClassicMember, is_stable: bool
) -> DescribeGroupsResponse.DescribedGroupMember:
    """Which of a member's protocols counts is known only in a stable group."""
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol) if is_stable else b"",
        member_assignment=member.assignment,
    )


# --- consumer ----------------------------------------------------------------------------------------------------


def describe_consumer(state: GroupState, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        return ConsumerGroupDescribeResponse.DescribedGroup(
            group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text
        )
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or state.config.consumer_assignors[0],
        members=[_consumer_member(group, member, state.image) for member in group.members.values()],
    )


def _consumer_member(group: ConsumerGroup, member: Member, image: ClusterImage) -> ConsumerGroupDescribeResponse.Member:
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(_held(member), image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), image),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _held(member: Member) -> dict[TopicId, tuple[int, ...]]:
    """All that it has, be it only until it has given it up."""
    return {
        topic_id: (*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ()))
        for topic_id in {**member.assigned, **member.revoking}
    }


def _assignment(
    target: Mapping[TopicId, tuple[int, ...]], image: ClusterImage
) -> ConsumerGroupDescribeResponse.Assignment:
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(partitions)
            )
            for topic_id, partitions in target.items()
            if topic_id in image.topics_by_id
        ]
    )


# --- delete ------------------------------------------------------------------------------------------------------


def delete_group(state: GroupState, group_id: str, out: Result) -> ErrorCode:
    group = state.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    delete_all_offsets(state, group_id, out)
    out.records += tombstones(group)
    return ErrorCode.NONE


def tombstones(group: Group) -> Sequence[Record]:
    if isinstance(group, ConsumerGroup):
        return group_tombstones(group, list(group.members))
    return [records.group_tombstone(group.group_id)]
