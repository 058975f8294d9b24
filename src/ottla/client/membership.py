"""Membership of a group of the classic protocol that is no consumer group: its leader decides, everybody is told.

The registry elects its writer this way (protocol type `sr`), and workers of Connect share connectors (`connect`). What
members tell of themselves and what the leader answers are bytes, which are theirs to know.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.connection import BrokerConnection
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check
from ottla.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

_PAUSE_S = 0.3
# Of requests that name a member; later versions may name static ones or reasons, which nobody needs here.
_JOIN_MAX, _SYNC_MAX, _HEARTBEAT_MAX, _LEAVE_MAX = 5, 3, 3, 2
_AGAIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Timing(NamedTuple):
    session_timeout_ms: int
    heartbeat_ms: int
    rebalance_timeout_ms: int


class Assigned(NamedTuple):
    """What the leader has told this member."""

    assignment: bytes
    generation: int
    member: str
    leader: str

    @property
    def is_leader(self) -> bool:
        return self.member == self.leader


class Protocol(NamedTuple):
    """How a kind of group works. All of it is called in the membership's thread."""

    kind: str
    name: str
    # What this member tells of itself, asked for before each join.
    metadata: Callable[[], bytes]
    # The leader's part: what members told, by their ids -> what each is told.
    assign: Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
    # None: the group cannot be reached, so nothing is known any more.
    on_assigned: Callable[[Assigned | None], None]


class Membership:
    """Runs in a thread of its own."""

    def __init__(
        self, address: ClusterAddress, group: str, protocol: Protocol, timing: Timing, *, client_id: str, what: str
    ) -> None:
        """`what`: how the log calls the group."""
        timeout_s = timing.rebalance_timeout_ms / 1000 + 5
        self._cluster = ClusterClient(address, timeout_s=timeout_s, client_id=client_id)
        self._group = group
        self._protocol = protocol
        self._timing = timing
        self._what = what
        self._log = logging.getLogger(f"{client_id.replace('-', '.')}.membership")
        self._member = ""
        self._is_stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-membership", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self._wake.set()
        self._thread.join()

    def again(self) -> None:
        """What was told is not right any more: join again."""
        self._wake.set()

    # --- the thread

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                with self._cluster.broker(self._cluster.group_coordinator(self._group)) as coordinator:
                    self._take_part(coordinator)
            except (OSError, OttlaError, KeyError, ValueError) as error:
                if not self._is_stopping.is_set():
                    self._log.warning("%s cannot be reached: %s", self._what, error)
            self._cluster.close()
            self._protocol.on_assigned(None)
            self._is_stopping.wait(_PAUSE_S)

    def _take_part(self, coordinator: BrokerConnection) -> None:
        """Until something breaks: joins, and joins again whenever the members change."""
        try:
            while not self._is_stopping.is_set():
                self._wake.clear()
                generation = self._join(coordinator)
                if generation is not None:
                    self._stay(coordinator, generation)
        finally:
            if self._is_stopping.is_set() and self._member:
                coordinator.call(LeaveGroupRequest(group_id=self._group, member_id=self._member), _LEAVE_MAX)

    def _join(self, coordinator: BrokerConnection) -> int | None:
        """The generation that we are part of; None to try again."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=self._protocol.name, metadata=self._protocol.metadata()
        )
        answer = coordinator.call(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._timing.session_timeout_ms,
                rebalance_timeout_ms=self._timing.rebalance_timeout_ms,
                member_id=self._member,
                protocol_type=self._protocol.kind,
                protocols=[protocol],
            ),
            _JOIN_MAX,
        )
        if answer.error_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
            self._member = answer.member_id if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED else ""
            return None
        check(answer.error_code, f"group '{self._group}'")
        self._member = answer.member_id
        assignments = self._assignments(answer) if answer.leader == self._member else []
        synced = coordinator.call(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=answer.generation_id,
                member_id=self._member,
                assignments=assignments,
            ),
            _SYNC_MAX,
        )
        if synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member = ""
        if synced.error_code in _AGAIN:
            return None
        check(synced.error_code, f"group '{self._group}'")
        generation = int(answer.generation_id)
        self._protocol.on_assigned(Assigned(bytes(synced.assignment), generation, self._member, answer.leader))
        return generation

    def _assignments(self, answer: Any) -> list[Any]:
        told = self._protocol.assign({row.member_id: bytes(row.metadata) for row in answer.members})
        schema = SyncGroupRequest.SyncGroupRequestAssignment
        return [schema(member_id=member, assignment=assignment) for member, assignment in told.items()]

    def _stay(self, coordinator: BrokerConnection, generation: int) -> None:
        """Heartbeats, as long as the generation lasts."""
        while True:
            self._wake.wait(self._timing.heartbeat_ms / 1000)
            if self._wake.is_set() or self._is_stopping.is_set():
                return
            began_s = time.monotonic()
            beat = HeartbeatRequest(group_id=self._group, generation_id=generation, member_id=self._member)
            code = coordinator.call(beat, _HEARTBEAT_MAX).error_code
            if time.monotonic() - began_s > self._timing.session_timeout_ms / 1000:
                self._log.warning("a heartbeat took longer than a session")
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member = ""
            if code in _AGAIN:
                return
            check(code, f"group '{self._group}'")
