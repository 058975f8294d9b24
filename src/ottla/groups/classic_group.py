"""A classic group: its members, its generation, and the legal moves between its states. No timers, no log.

    EMPTY ──join──> PREPARING ──all joined or time is up──> COMPLETING ──leader's assignment is stored──> STABLE
      ^                │  ^                                     │                                           │
      └──nobody left───┘  └───────────── a member joins, leaves, expires or changes ────────────────────────┘

A generation is durable from the moment its assignment is in the log. The join phase before it is not: a coordinator
that restarts in the middle comes back with the last stored generation, and members find their way by the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket
from ottla.groups import consumer_protocol
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import GroupMetadataValue, JoinGroupResponse, SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]


class State(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# Target state -> the states it may be entered from.
LEGAL: Mapping[State, tuple[State, ...]] = {
    State.EMPTY: (State.PREPARING,),
    State.PREPARING: (State.EMPTY, State.COMPLETING, State.STABLE),
    State.COMPLETING: (State.PREPARING,),
    State.STABLE: (State.COMPLETING,),
    State.DEAD: tuple(State),
}


def refused_join(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


class ClassicMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_ticket",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        # Of the last generation that is in the log; a cooperative consumer holds on to it through the next rebalance.
        self.assignment = assignment
        # In its first join: it does not know its id, so only the join itself can time out.
        self.is_new = False
        self.join_ticket: Ticket | None = None
        self.sync_ticket: Ticket | None = None

    def metadata(self, protocol: str | None) -> bytes:
        for name, data in self.protocols:
            if name == protocol:
                return data
        return b""

    def vote(self, candidates: Mapping[str, None]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.member_id} supports none of the candidate protocols")

    @property
    def is_kept_alive(self) -> bool:
        """A member whose request we are holding cannot heartbeat; its session does not expire meanwhile."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)


class ClassicGroup:
    type_name = "classic"

    def __init__(self, group_id: str, generation: int = 0) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.generation = generation
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state_timestamp_ms: int | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_ids: dict[str, str] = {}
        # Ids given out with MEMBER_ID_REQUIRED that have not come back yet (dicts, because order must be stable).
        self.pending: dict[str, None] = {}
        # Members of the current generation that have not asked for their assignment yet.
        self.unsynced: dict[str, None] = {}
        self.joined_during_delay = False
        self.awaiting_join = 0
        # None: not known, because the members do not speak the consumer protocol or speak it wrongly.
        self.subscribed_topics: dict[str, None] | None = None
        self._protocol_counts: dict[str, int] = {}

    # --- state

    def move_to(self, state: State, now_ms: int) -> None:
        if self.state not in LEGAL[state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def can_rebalance(self) -> bool:
        return self.state in LEGAL[State.PREPARING]

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == consumer_protocol.PROTOCOL_TYPE

    @property
    def has_all_joined(self) -> bool:
        return self.awaiting_join == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        self._count_protocols(member, 1)
        if member.join_ticket is not None:
            self.awaiting_join += 1

    def remove(self, member_id: str) -> None:
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count_protocols(member, -1)
        if member.join_ticket is not None:
            self.awaiting_join -= 1
        if member.instance_id is not None:
            self.static_ids.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def await_join(self, member: ClassicMember, ticket: Ticket, out: Result) -> None:
        """Hold the member's join. One that is held already belongs to a connection that the client gave up on."""
        if member.join_ticket is None:
            self.awaiting_join += 1
        else:
            out.answer(member.join_ticket, refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.join_ticket = ticket

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse, out: Result) -> bool:
        if member.join_ticket is None:
            return False
        out.answer(member.join_ticket, response)
        member.join_ticket = None
        self.awaiting_join -= 1
        return True

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse, out: Result) -> bool:
        if member.sync_ticket is None:
            return False
        out.answer(member.sync_ticket, response)
        member.sync_ticket = None
        return True

    def replace_static(self, instance_id: str, new_id: str, out: Result) -> ClassicMember:
        """The instance comes back under a new id; whoever used the old one is fenced."""
        old_id = self.static_ids[instance_id]
        member = self.members[old_id]
        self.answer_join(member, refused_join(ErrorCode.FENCED_INSTANCE_ID, old_id), out)
        self.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID), out)
        self.rename(member, new_id)
        return member

    def rename(self, member: ClassicMember, new_id: str) -> None:
        old_id = member.member_id
        member.member_id = new_id
        self.members = {new_id if key == old_id else key: member for key, member in self.members.items()}
        self.unsynced = {new_id if key == old_id else key: None for key in self.unsynced}
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is one of those who have rejoined; False if nobody has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join_ticket is not None:
            return True
        for member in self.members.values():
            if member.join_ticket is not None:
                self.leader = member.member_id
                return True
        return False

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    # --- protocols

    def _count_protocols(self, member: ClassicMember, step: int) -> None:
        for name, _ in member.protocols:
            self._protocol_counts[name] = self._protocol_counts.get(name, 0) + step

    def supports(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether a member with these protocols could be in the group: at least one must be everybody's."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._protocol_counts.get(name, 0) == size for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that everybody supports; most votes win."""
        size = len(self.members)
        candidates = {name: None for name, count in self._protocol_counts.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def start_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.unsynced.clear()
        self.learn_subscribed_topics()
        self.move_to(State.COMPLETING if self.members else State.EMPTY, now_ms)

    def learn_subscribed_topics(self) -> None:
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        topics: dict[str, None] = {}
        try:
            for member in self.members.values():
                topics.update(dict.fromkeys(consumer_protocol.read_topics(member.metadata(self.protocol))))
        except MalformedMessage:
            return
        self.subscribed_topics = topics

    def is_subscribed_to(self, topic: str) -> bool:
        """When we cannot know, a consumer group may be reading anything and any other group nothing."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    # --- what the API checks

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool) -> None:
        if self.state is State.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.is_empty:
            return  # an admin client, or a consumer that manages its partitions itself
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is State.COMPLETING:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    # --- the log

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id, value.generation)
        for stored in value.members:
            rebalance_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
            member = ClassicMember(
                stored.member_id,
                instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=rebalance_ms,
                session_timeout_ms=stored.session_timeout,
                protocols=((value.protocol or "", stored.subscription),),
                assignment=stored.assignment,
            )
            group.add(member, value.protocol_type)
        group.state = State.STABLE if group.members else State.EMPTY
        group.previous_state = group.state
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader = value.leader
        stamp = value.current_state_timestamp
        group.state_timestamp_ms = None if stamp == -1 else stamp  # absent before v2 (KAFKA-8069)
        group.learn_subscribed_topics()
        return group

    def take_assignments(self, value: GroupMetadataValue) -> None:
        """Our own record, now in the log: what it says about assignments holds."""
        for stored in value.members:
            member = self.members.get(stored.member_id)
            if member is not None:
                member.assignment = stored.assignment
