"""Which instance writes: the members of a group of protocol type `sr` agree on one, as Confluent's do.

The group's leader names the writer in everybody's assignment: the one of before if it is still there, else the first
by its address. A member that does not hear from the coordinator for a session's length takes no writer for known.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
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

_PROTOCOL_TYPE, _PROTOCOL = "sr", "v0"
_VERSION = 1
_PAUSE_S = 0.3
# Of requests that name a member; later versions may name static ones or reasons, which nobody needs here.
_JOIN_MAX, _SYNC_MAX, _HEARTBEAT_MAX, _LEAVE_MAX = 5, 3, 3, 2
_LOG = logging.getLogger("ottla.registry.election")


class Identity(NamedTuple):
    """Where an instance is reached by the others."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def encode(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
        }

    @staticmethod
    def decode(tree: dict[str, Any]) -> Identity:
        is_eligible = bool(tree.get("master_eligibility", tree.get("leader_eligibility", True)))
        return Identity(str(tree["host"]), int(tree["port"]), str(tree.get("scheme", "http")), is_eligible)


# None: nobody is known to write.
OnWriter = Callable[[Identity | None], None]


def choose(members: dict[str, Identity], last: Identity | None) -> str | None:
    """The member that writes."""
    eligible = {member: identity for member, identity in members.items() if identity.is_eligible}
    for member, identity in eligible.items():
        if identity == last:
            return member
    return min(eligible, key=lambda member: (eligible[member].url, member), default=None)


class Election:
    """Runs in a thread of its own, in which `on_writer` is called."""

    def __init__(
        self,
        address: ClusterAddress,
        group: str,
        identity: Identity,
        on_writer: OnWriter,
        *,
        session_timeout_ms: int,
        heartbeat_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        timeout_s = rebalance_timeout_ms / 1000 + 5
        self._cluster = ClusterClient(address, timeout_s=timeout_s, client_id="ottla-registry")
        self._group = group
        self._identity = identity
        self._on_writer = on_writer
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_s = heartbeat_ms / 1000
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._member = ""
        self._last: Identity | None = None
        self._is_stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-registry-election", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self._wake.set()
        self._thread.join()

    def again(self) -> None:
        """Somebody else writes, though we thought that we do: ask the group."""
        self._wake.set()

    # --- the thread

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                with self._cluster.broker(self._cluster.group_coordinator(self._group)) as coordinator:
                    self._take_part(coordinator)
            except (OSError, OttlaError, KeyError, ValueError) as error:
                if not self._is_stopping.is_set():
                    _LOG.warning("the group of registries cannot be reached: %s", error)
            self._cluster.close()
            self._on_writer(None)
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
            name=_PROTOCOL, metadata=json.dumps(self._identity.encode()).encode()
        )
        answer = coordinator.call(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                member_id=self._member,
                protocol_type=_PROTOCOL_TYPE,
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
        if synced.error_code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
        ):
            return None
        check(synced.error_code, f"group '{self._group}'")
        self._learn(bytes(synced.assignment))
        return int(answer.generation_id)

    def _assignments(self, answer: Any) -> list[Any]:
        members = {row.member_id: Identity.decode(json.loads(bytes(row.metadata))) for row in answer.members}
        writer = choose(members, self._last)
        tree = {
            "version": _VERSION,
            "error": 0,
            "master": writer,
            "master_identity": members[writer].encode() if writer is not None else None,
        }
        schema = SyncGroupRequest.SyncGroupRequestAssignment
        return [schema(member_id=member, assignment=json.dumps(tree).encode()) for member in members]

    def _learn(self, assignment: bytes) -> None:
        tree = json.loads(assignment) if assignment else {}
        writer = tree.get("master_identity") or tree.get("leader_identity")
        self._last = Identity.decode(writer) if writer else None
        self._on_writer(self._last)

    def _stay(self, coordinator: BrokerConnection, generation: int) -> None:
        """Heartbeats, as long as the generation lasts."""
        while True:
            self._wake.wait(self._heartbeat_s)
            if self._wake.is_set() or self._is_stopping.is_set():
                return
            began_s = time.monotonic()
            beat = HeartbeatRequest(group_id=self._group, generation_id=generation, member_id=self._member)
            code = coordinator.call(beat, _HEARTBEAT_MAX).error_code
            if time.monotonic() - began_s > self._session_timeout_ms / 1000:
                _LOG.warning("a heartbeat took longer than a session")
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member = ""
            if code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.ILLEGAL_GENERATION,
            ):
                return
            check(code, f"group '{self._group}'")
