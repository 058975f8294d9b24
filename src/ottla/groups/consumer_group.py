"""A consumer group (KIP-848): what its records say, and what follows from them. Changed by replay alone.

Three epochs drive it. The group epoch grows when members, subscriptions or topics change; the assignment epoch says
for which group epoch the target assignment was computed; a member's epoch says how far it has come. A member reaches
the target epoch when it has given up all that is not its own any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.groups.records import read_epoch_partitions
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
)

# Topic -> partition -> the epoch in which the member got it (KIP-1251: it may commit from then on).
Assigned = Mapping[TopicId, Mapping[int, int]]
# Topic -> partitions in rising order.
Target = Mapping[TopicId, tuple[int, ...]]

LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class MemberState(IntEnum):
    """As written in records."""

    STABLE = 1
    UNREVOKED_PARTITIONS = 2
    UNRELEASED_PARTITIONS = 3
    UNKNOWN = 127


class ResolvedRegex(NamedTuple):
    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol brought along."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    # No longer its own, but not yet given up.
    revoking: Assigned = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def owned_since(self, topic_id: TopicId, partition: int) -> int | None:
        held = self.assigned.get(topic_id, {}).get(partition)
        return held if held is not None else self.revoking.get(topic_id, {}).get(partition)


class ConsumerGroup:
    type_name = "consumer"

    def __init__(self, group_id: str, epoch: int = 0) -> None:
        self.group_id = group_id
        self.epoch = epoch
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata_record = False
        # Derived from the members.
        self.static_ids: dict[str, str] = {}
        self._owners: dict[TopicId, dict[int, str]] = {}
        # Not in the log: the number of the image that its topics and its expressions were last compared with. None at
        # load, because images may have changed while nobody looked.
        self.topics_checked: int | None = None
        self.regexes_checked: int | None = None

    # --- what follows from the state

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def member(self, member_id: str) -> Member:
        found = self.members.get(member_id)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return found

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_ids.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: Member) -> Target:
        """Also for a static member that has just come back under a new id."""
        found = self.targets.get(member.member_id)
        if found is None and member.instance_id is not None:
            found = self.targets.get(self.static_ids.get(member.instance_id, ""))
        return found if found is not None else {}

    def owner(self, topic_id: TopicId, partition: int) -> str | None:
        """Who holds the partition now, be it only until it has given it up."""
        return self._owners.get(topic_id, {}).get(partition)

    def subscribers(self, regex: str) -> int:
        return sum(1 for member in self.members.values() if member.regex == regex)

    def all_classic_without(self, leaving: Iterable[str]) -> bool:
        """Whether only members of the classic protocol stay, and the last of the others is among those who go."""
        gone = dict.fromkeys(leaving)
        staying = [member for member in self.members.values() if member.member_id not in gone]
        return all(member.classic is not None for member in staying) and any(
            self.members[member_id].classic is None for member_id in gone
        )

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        if protocol_type != "consumer":
            return False
        supported = [dict(member.classic.protocols) for member in self.members.values() if member.classic is not None]
        return any(all(name in protocols for protocols in supported) for name in names)

    def preferred_assignor(self, changed: Member | None = None) -> str | None:
        votes: dict[str, int] = {}
        members = dict(self.members)
        if changed is not None:
            members.pop(self.static_ids.get(changed.instance_id or "", ""), None)
            members[changed.member_id] = changed
        for member in members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else None

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in subscribed_topics(self.members.values(), self.regexes)

    def is_waiting_for_release(self, member: Member) -> bool:
        """Whether something that the member is to get is still held by another."""
        for topic_id, partitions in self.targets.get(member.member_id, {}).items():
            held = member.assigned.get(topic_id, {})
            if any(partition not in held and self.owner(topic_id, partition) is not None for partition in partitions):
                return True
        return False

    # --- what the API checks

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> Member | None:
        """The member, if each partition still has to be checked with `check_commit_partition`; None if all is well."""
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < 9:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Members of the consumer protocol commit with OffsetCommit version 9 or above.",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise ApiError(stale_error(member), f"Epoch {epoch} is newer than the member's epoch {member.epoch}.")
        return member

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch != member.epoch:
            raise ApiError(stale_error(member), f"Epoch {epoch} is not the member's epoch {member.epoch}.")

    # --- replay

    def replay_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is None:
            gone = self.members.pop(member_id, None)
            if gone is not None:
                self._release(gone)
                if gone.instance_id is not None and self.static_ids.get(gone.instance_id) == member_id:
                    del self.static_ids[gone.instance_id]
            return
        classic = None
        if value.classic_member_metadata is not None:
            metadata = value.classic_member_metadata
            classic = ClassicMetadata(
                metadata.session_timeout_ms,
                tuple((protocol.name, protocol.metadata) for protocol in metadata.supported_protocols),
            )
        before = self.members.get(member_id) or Member(member_id)
        member = replace(
            before,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member_id

    def replay_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        before = self.members.get(member_id)
        if value is None:
            if before is not None:
                self._release(before)
                self.members[member_id] = replace(
                    before, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={}
                )
            return
        before = before or Member(member_id)
        self._release(before)
        known = value.state in MemberState._value2member_map_
        member = replace(
            before,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=read_epoch_partitions(value.assigned_partitions, value.member_epoch),
            revoking=read_epoch_partitions(value.partitions_pending_revocation, value.member_epoch),
        )
        self.members[member_id] = member
        for held in (member.assigned, member.revoking):
            for topic_id, partitions in held.items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _release(self, member: Member) -> None:
        for held in (member.assigned, member.revoking):
            for topic_id, partitions in held.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)

    def replay_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {
                TopicId(topic.topic_id): tuple(sorted(topic.partitions)) for topic in value.topic_partitions
            }

    def replay_regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = ResolvedRegex(tuple(value.topics), value.version, value.timestamp)


def stale_error(member: Member) -> ErrorCode:
    """An epoch that does not fit, in the words of the protocol that the member speaks."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def check_commit_partition(member: Member, topic_id: TopicId, partition: int, epoch: int) -> None:
    """A commit with an older epoch counts for what the member has held since then (KIP-1251)."""
    since = member.owned_since(topic_id, partition)
    if since is None or epoch < since:
        raise ApiError(stale_error(member))


def topics_of(member: Member, regexes: Mapping[str, ResolvedRegex]) -> dict[str, None]:
    """A regular expression that has not been resolved matches nothing yet."""
    names = dict.fromkeys(member.topics)
    if member.regex and member.regex in regexes:
        names.update(dict.fromkeys(regexes[member.regex].topics))
    return names


def subscribed_topics(members: Iterable[Member], regexes: Mapping[str, ResolvedRegex]) -> dict[str, None]:
    names: dict[str, None] = {}
    seen: dict[str, None] = {}
    for member in members:
        names.update(dict.fromkeys(member.topics))
        if member.regex and member.regex not in seen:
            seen[member.regex] = None
            if member.regex in regexes:
                names.update(dict.fromkeys(regexes[member.regex].topics))
    return names


def metadata_hash(topics: Iterable[str], image: ClusterImage) -> int:
    """Changes when a subscribed topic appears, goes, or gets partitions; 0 when there is none.

    Kafka hashes the same facts with another function. The number is only ever compared with our own; a log that changes
    hands costs one needless rebalance.
    """
    digest = blake2b(digest_size=8)
    is_any = False
    for name in sorted(topics):
        topic = image.topics.get(name)
        if topic is not None:
            is_any = True
            digest.update(topic.id + len(topic.partitions).to_bytes(4, "big") + name.encode())
    return int.from_bytes(digest.digest(), "big", signed=True) if is_any else 0
