"""Groups that change their protocol while their members work on (KIP-848's online migration).

Up: a member of the consumer protocol joins a classic group of consumers. Its generation becomes the group epoch, its
assignment the target, and each classic member goes on under its id with its generation as epoch.
Down: the last member of the consumer protocol leaves and classic ones stay. The group epoch becomes the generation, and
the classic members rebalance among themselves.

Both are a handful of records in one batch, so a crash leaves the group on one side or the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.common.result import Result
from ottla.groups import consumer_protocol, records
from ottla.groups.classic_group import ClassicGroup, ClassicMember, refused_join
from ottla.groups.classic_rebalance import join_key, prepare_rebalance, renew_session, session_key, sync_key
from ottla.groups.consumer_group import ClassicMetadata, ConsumerGroup, Member, MemberState, Target, metadata_hash
from ottla.groups.consumer_protocol import Subscription
from ottla.groups.consumer_update import cancel_timers
from ottla.groups.records import Record
from ottla.groups.state import GroupState
from ottla.groups.timers import MEMBER_SESSION
from ottla.metadata.image import ClusterImage
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import SyncGroupResponse

# --- up ----------------------------------------------------------------------------------------------------------


def upgrade(state: GroupState, group: ClassicGroup, out: Result) -> ConsumerGroup:
    """The records that turn the group over, and the group as they will make it. Raises GROUP_ID_NOT_FOUND."""
    _check_upgrade(state, group)
    made = _consumer_records(group, state.image)
    upgraded = GroupState(state.config, state.new_id, state.image)
    for record in made:
        upgraded.replay(record)
    result = upgraded.groups[group.group_id]
    assert isinstance(result, ConsumerGroup)
    out.records.append(records.group_tombstone(group.group_id))
    out.records += made
    out.cancel(join_key(group))
    out.cancel(sync_key(group))
    for member in group.members.values():
        out.cancel(session_key(group, member.member_id))
        out.schedule((MEMBER_SESSION, group.group_id, member.member_id), member.session_timeout_ms)

    def stored(error: ErrorCode, out: Result) -> None:
        if error is ErrorCode.NONE:
            _send_to_new_group(group, out)

    out.after_commit(stored)
    return result


def _send_to_new_group(group: ClassicGroup, out: Result) -> None:
    """Those who wait for the rebalance of a group that is gone are told to come again."""
    rebalancing = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        group.answer_join(member, refused_join(rebalancing, member.member_id), out)
        group.answer_sync(member, SyncGroupResponse(error_code=rebalancing), out)


def _check_upgrade(state: GroupState, group: ClassicGroup) -> None:
    reason = None
    if not state.config.migration_policy.may_upgrade:
        reason = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > state.config.consumer_members_max:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise _cannot_upgrade(group, reason)


def _cannot_upgrade(group: ClassicGroup, reason: str) -> ApiError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _consumer_records(group: ClassicGroup, image: ClusterImage) -> list[Record]:
    group_id, epoch = group.group_id, group.generation
    members = list(group.members.values())
    # What the last generation gave them; then what cooperative consumers say they still hold from one before.
    booked: dict[tuple[TopicId, int], None] = {}
    subscriptions = [_subscription(group, member) for member in members]
    targets = [_book(_target_of(group, member, image), booked) for member in members]
    held = [_book(dict(owned_ids(subscription.owned, image)), booked) for subscription in subscriptions]
    made = [_consumer_member(group, *parts) for parts in zip(members, subscriptions, targets, held, strict=True)]
    topics = {name: None for subscription in subscriptions for name in subscription.topics}
    result = [records.member_metadata(group_id, member) for member in made]
    result.append(records.group_epoch(group_id, epoch, metadata_hash(topics, image)))
    result += [
        records.target_assignment(group_id, member.member_id, target)
        for member, target in zip(made, targets, strict=True)
    ]
    # Timestamp 0: the member that brought the upgrade about gets a new target at once.
    result.append(records.target_epoch(group_id, epoch, 0))
    result += [records.current_assignment(group_id, member) for member in made]
    return result


def _book(wanted: Mapping[TopicId, Sequence[int]], booked: dict[tuple[TopicId, int], None]) -> Target:
    """What is not booked yet; a leader or a member that is wrong must not give a partition two owners."""
    free: dict[TopicId, tuple[int, ...]] = {}
    for topic_id, indexes in wanted.items():
        mine = tuple(index for index in sorted(dict.fromkeys(indexes)) if (topic_id, index) not in booked)
        booked.update(dict.fromkeys((topic_id, partition) for partition in mine))
        if mine:
            free[topic_id] = mine
    return free


def _subscription(group: ClassicGroup, member: ClassicMember) -> Subscription:
    # Before its first generation a group has not chosen among the protocols; all carry the same subscription.
    metadata = member.metadata(group.protocol) or member.protocols[0][1]
    try:
        return consumer_protocol.read_subscription(metadata)
    except MalformedMessage:
        raise _malformed(group) from None


def _malformed(group: ClassicGroup) -> ApiError:
    return _cannot_upgrade(group, "the embedded consumer protocol is malformed")


def _consumer_member(
    group: ClassicGroup, member: ClassicMember, subscription: Subscription, target: Target, held: Target
) -> Member:
    epoch = group.generation
    return Member(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(dict.fromkeys(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        epoch=epoch,
        previous_epoch=epoch,
        state=MemberState.UNREVOKED_PARTITIONS if held else MemberState.STABLE,
        assigned={topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in target.items()},
        revoking={topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in held.items()},
    )


def _target_of(group: ClassicGroup, member: ClassicMember, image: ClusterImage) -> Target:
    if not member.assignment:
        return {}  # it has joined and has never synced
    try:
        assignment = consumer_protocol.read_assignment(member.assignment)
    except MalformedMessage:
        raise _malformed(group) from None
    if assignment.user_data:
        raise _cannot_upgrade(group, "an assignor of its own is in use, whose data would be lost")
    return {
        image.topics[topic.topic].id: tuple(topic.partitions)
        for topic in assignment.assigned_partitions
        if topic.topic in image.topics
    }


# --- down --------------------------------------------------------------------------------------------------------


def may_downgrade(state: GroupState, group: ConsumerGroup, leaving: Sequence[str], *, joining: int = 0) -> bool:
    staying = len(group.members) - len(leaving) + joining
    return (
        group.all_classic_without(leaving)
        and 0 < staying <= state.config.members_max
        and state.config.migration_policy.may_downgrade
    )


def downgrade(
    state: GroupState,
    group: ConsumerGroup,
    leaving: Sequence[str],
    joining: Member | None,
    out: Result,
    *,
    must_rebalance: bool,
) -> None:
    """`joining` is a classic static member that takes the place of the one who leaves."""
    gone = dict.fromkeys(leaving)
    staying = [member for member in group.members.values() if member.member_id not in gone]
    if joining is not None:
        staying.append(joining)
    classic = _classic_group(group, staying, out.now_ms)
    if must_rebalance:
        # No leader has made this generation: if we crash before the rebalance, the next coordinator starts it.
        classic.leader = None
    # What each has, not what it is to have: that may still be another's, and a rebalance is to come. Without one all
    # have what they are to have, and the one that joins gets what its old self had.
    assignments = {
        stayer.member_id: assignment_bytes(stayer.assigned, stayer.classic, state.image) for stayer in staying
    }
    tombs = [stayer.member_id for stayer in staying] if joining is not None else list(group.members)
    out.records += group_tombstones(group, tombs)
    out.records.append(records.group_metadata(classic, assignments))
    for member_id in group.members:
        cancel_timers(group.group_id, member_id, out)
    group_id = group.group_id

    def come_to_life(out: Result) -> None:
        live = state.classic(group_id)
        assert live is not None
        for member in live.members.values():
            renew_session(live, member, out)
        if must_rebalance:
            prepare_rebalance(state, live, out)

    out.after_replay(come_to_life)


def _classic_group(group: ConsumerGroup, staying: Sequence[Member], now_ms: int) -> ClassicGroup:
    classic = ClassicGroup(group.group_id, group.epoch)
    for stayer in staying:
        assert stayer.classic is not None
        member = ClassicMember(
            stayer.member_id,
            instance_id=stayer.instance_id,
            client_id=stayer.client_id,
            client_host=stayer.client_host,
            rebalance_timeout_ms=stayer.rebalance_timeout_ms,
            session_timeout_ms=stayer.classic.session_timeout_ms,
            protocols=stayer.classic.protocols,
        )
        classic.add(member, consumer_protocol.PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    classic.state_timestamp_ms = now_ms
    return classic


def assignment_bytes(
    partitions: Mapping[TopicId, Iterable[int]], classic: ClassicMetadata | None, image: ClusterImage
) -> bytes:
    """In the version that the member's own subscription is written in."""
    assert classic is not None
    version = min(int.from_bytes(classic.protocols[0][1][:2], "big"), 3)
    by_name = {
        image.topics_by_id[topic_id].name: sorted(indexes)
        for topic_id, indexes in partitions.items()
        if topic_id in image.topics_by_id
    }
    return consumer_protocol.write_assignment(by_name, version)


def group_tombstones(group: ConsumerGroup, member_ids: Sequence[str]) -> list[Record]:
    """Everything about the group, in the order in which a reader can let go of it."""
    group_id = group.group_id
    made = [records.current_assignment_tombstone(group_id, member_id) for member_id in member_ids]
    made += [records.target_assignment_tombstone(group_id, member_id) for member_id in member_ids]
    made.append(records.target_epoch_tombstone(group_id))
    made += [records.member_metadata_tombstone(group_id, member_id) for member_id in member_ids]
    made += [records.regular_expression_tombstone(group_id, regex) for regex in group.regexes]
    if group.has_partition_metadata_record:
        made.append(records.partition_metadata_tombstone(group_id))
    made.append(records.group_epoch_tombstone(group_id))
    return made


def owned_ids(owned: Sequence[tuple[str, Sequence[int]]], image: ClusterImage) -> list[tuple[TopicId, Sequence[int]]]:
    return [(image.topics[topic].id, indexes) for topic, indexes in owned if topic in image.topics]
