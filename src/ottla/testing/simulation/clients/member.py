"""A member of a classic group. Who leads the group works on the first partition and commits its offsets.

Now and then it falls silent for longer than its session, and then goes on as if nothing had happened: by then the
partition is another's, and what this one commits has to be refused.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.testing.simulation.clients.client import GROUP, TryAgain
from ottla.testing.simulation.clients.committer import Committer

_PROTOCOL_TYPE, _PROTOCOL = "consumer", "one-for-all"
_SESSION_MS = 1_000
_REBALANCE_MS = 1_500
# How many times longer than usual it waits when it falls silent: up to twice its session.
_SILENCE = 10
# The membership is over, or another one begins.
_OVER = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class Membership(NamedTuple):
    member: str
    generation: int
    is_leader: bool


class Member(Committer):
    async def run(self) -> None:
        partition = self.world.partitions[0]
        membership: Membership | None = None
        while not self.is_stopping:
            try:
                if membership is None:
                    membership = await self._join()
                    self.say(f"is in generation {membership.generation}, leads: {membership.is_leader}")
                if self.rng.random() < 0.05:
                    await self.pause(_SILENCE)
                elif self.rng.random() < 0.3:
                    await self._beat(membership)
                if membership.is_leader:
                    await self.commit(partition, membership.generation, membership.member, *_OVER)
                await self.look(partition)
            except TryAgain as error:
                self.forget_coordinator(self.group, GROUP)
                if error.code in _OVER:
                    membership = None
            await self.pause(4)

    async def _join(self) -> Membership:
        """Raises TryAgain."""
        member = ""
        answer = await self._ask_to_join(member)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member = answer.member_id
            answer = await self._ask_to_join(member)
        self.check(answer.error_code, "joining a group", *_OVER)
        asked = m.SyncGroupRequest
        is_leader = answer.leader == answer.member_id
        assignments = [
            asked.SyncGroupRequestAssignment(member_id=one.member_id, assignment=one.member_id.encode())
            for one in answer.members
        ]
        request = asked(
            group_id=self.group,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=assignments if is_leader else [],
        )
        synced: m.SyncGroupResponse = await self.ask(await self.group_coordinator(), request)
        self.check(synced.error_code, "syncing a group", *_OVER)
        # A generation counts from here on: one that nobody has synced is forgotten with its coordinator.
        self.world.promises.synced(self.group, answer.generation_id)
        return Membership(answer.member_id, answer.generation_id, is_leader)

    async def _ask_to_join(self, member: str) -> m.JoinGroupResponse:
        asked = m.JoinGroupRequest
        request = asked(
            group_id=self.group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=member,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[asked.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b"")],
        )
        answer: m.JoinGroupResponse = await self.ask(await self.group_coordinator(), request)
        return answer

    async def _beat(self, membership: Membership) -> None:
        request = m.HeartbeatRequest(
            group_id=self.group, generation_id=membership.generation, member_id=membership.member
        )
        answer: m.HeartbeatResponse = await self.ask(await self.group_coordinator(), request)
        self.check(answer.error_code, "a heartbeat", *_OVER)
