"""One step of a member from the partitions it has towards those it is to have (KIP-848's reconciliation).

    STABLE ──new target──> UNREVOKED ──member no longer reports what it must give up──┐
      ^                        ^                                                      v
      └──all free── UNRELEASED ┴──────────────────────────────────────────────── new epoch

Two rules keep a partition from having two owners. What a member must give up stays booked on it until a heartbeat
lists its partitions without it. What another member still holds is not handed out; the member moves on to the new
epoch without it and gets it later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.groups.consumer_group import Assigned, Member, MemberState, Target

# What a heartbeat says the member has; None if it does not say.
Owned = Sequence[tuple[TopicId, Sequence[int]]] | None


def reconcile(
    member: Member,
    *,
    target_epoch: int,
    target: Target,
    subscribed: Mapping[TopicId, None],
    owner: Callable[[TopicId, int], str | None],
    subscription_changed: bool,
    owned: Owned,
) -> Member:
    """The member after the step, or the same object if there is none to take."""
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return _drop_unsubscribed(member, subscribed, owned) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(owned, member.revoking):
        return _drop_unsubscribed(member, subscribed, owned) if subscription_changed else member
    if member.state is MemberState.UNKNOWN and (owned is None or len(owned) > 0):
        # Written by a newer Kafka; all we can do is to let the member start over.
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH, "The member is in an unknown state and must rejoin without partitions."
        )
    return _next(member, target_epoch, target, subscribed, owner, owned)


def _owns_any(owned: Owned, partitions: Assigned) -> bool:
    """A member that does not report its partitions is taken to still have them."""
    if owned is None:
        return True
    return any(index in partitions.get(topic_id, {}) for topic_id, indexes in owned for index in indexes)


def _drop_unsubscribed(member: Member, subscribed: Mapping[TopicId, None], owned: Owned) -> Member:
    """Topics that the member has just unsubscribed from must go at once, whatever the target says."""
    keep = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in subscribed}
    if len(keep) == len(member.assigned):
        return member
    revoking = {topic_id: dict(held) for topic_id, held in member.revoking.items()}
    for topic_id, held in member.assigned.items():
        if topic_id not in subscribed:
            revoking.setdefault(topic_id, {}).update(held)
    if _owns_any(owned, revoking):
        return _revoke(member, keep, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=keep)


def _revoke(member: Member, keep: Assigned, revoking: Assigned) -> Member:
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=keep,
        revoking=revoking,
    )


def _next(
    member: Member,
    target_epoch: int,
    target: Target,
    subscribed: Mapping[TopicId, None],
    owner: Callable[[TopicId, int], str | None],
    owned: Owned,
) -> Member:
    keep: dict[TopicId, dict[int, int]] = {}
    revoke: dict[TopicId, dict[int, int]] = {}
    gain: dict[TopicId, list[int]] = {}
    is_waiting = False
    for topic_id in {**target, **member.assigned}:
        wanted = dict.fromkeys(target.get(topic_id, ())) if topic_id in subscribed else {}
        for partition, since in member.assigned.get(topic_id, {}).items():
            (keep if partition in wanted else revoke).setdefault(topic_id, {})[partition] = since
        held = keep.get(topic_id, {})
        for partition in wanted:
            if partition in held:
                continue
            # What it is giving up itself is nobody else's, so it may as well stay.
            is_own = partition in member.revoking.get(topic_id, {})
            if owner(topic_id, partition) is None or is_own:
                gain.setdefault(topic_id, []).append(partition)
            else:
                is_waiting = True
    if revoke and _owns_any(owned, revoke):
        return _revoke(member, keep, revoke)
    for topic_id, partitions in gain.items():
        keep.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target_epoch))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=keep,
        revoking={},
    )
