"""Group coordinators as tables, written from Kafka's rules (KIP-345, 848, and what classic groups always did).

A cell is an error or `ok`, or `waits` where the answer comes later; after an arrow the state that the group is in then,
where it is another one; after a semicolon the kinds of records that are written, with a minus for tombstones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup
from ottla.groups.offset_requests import CommitTopic, check_fetch
from ottla.protocol.messages import OffsetCommitRequest, TxnOffsetCommitRequest
from tests.groups.desk import Desk, NotAnswered
from tests.support.tables import Cell, cells

KINDS = {
    "OffsetCommitKey": "offset",
    "GroupMetadataKey": "group",
    "ConsumerGroupMetadataKey": "epoch",
    "ConsumerGroupMemberMetadataKey": "member",
    "ConsumerGroupTargetAssignmentMetadataKey": "target epoch",
    "ConsumerGroupTargetAssignmentMemberKey": "target",
    "ConsumerGroupCurrentMemberAssignmentKey": "current",
    "ConsumerGroupRegularExpressionKey": "regex",
}

# --- classic groups: m1 leads, m2 follows, m3 has asked to join where it is preparing; there the others are silent

CLASSIC = """
request                    | no group            | Empty                             | PreparingRebalance               | CompletingRebalance                | Stable
join, new                  | MEMBER_ID_REQUIRED -> Empty; group | MEMBER_ID_REQUIRED | MEMBER_ID_REQUIRED               | MEMBER_ID_REQUIRED                 | MEMBER_ID_REQUIRED
join, m1 unchanged         | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | waits                            | ok                                 | waits -> PreparingRebalance
join, m2 unchanged         | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | waits                            | ok                                 | ok
join, m2 changed           | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | waits                            | waits -> PreparingRebalance        | waits -> PreparingRebalance
join, other protocol type  | MEMBER_ID_REQUIRED -> Empty; group | MEMBER_ID_REQUIRED | INCONSISTENT_GROUP_PROTOCOL      | INCONSISTENT_GROUP_PROTOCOL        | INCONSISTENT_GROUP_PROTOCOL
join, no common protocol   | MEMBER_ID_REQUIRED -> Empty; group | MEMBER_ID_REQUIRED | INCONSISTENT_GROUP_PROTOCOL      | INCONSISTENT_GROUP_PROTOCOL        | INCONSISTENT_GROUP_PROTOCOL
sync, m1 with assignments  | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | REBALANCE_IN_PROGRESS            | ok -> Stable; group                | ok
sync, m2                   | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | REBALANCE_IN_PROGRESS            | waits                              | ok
sync, of an older one      | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | ILLEGAL_GENERATION               | ILLEGAL_GENERATION                 | ILLEGAL_GENERATION
sync, a stranger           | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
sync, another protocol     | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | INCONSISTENT_GROUP_PROTOCOL      | INCONSISTENT_GROUP_PROTOCOL        | INCONSISTENT_GROUP_PROTOCOL
heartbeat                  | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | REBALANCE_IN_PROGRESS            | ok                                 | ok
heartbeat, of an older one | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | ILLEGAL_GENERATION               | ILLEGAL_GENERATION                 | ILLEGAL_GENERATION
heartbeat, a stranger      | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
leave, m2                  | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | ok                               | ok -> PreparingRebalance           | ok -> PreparingRebalance
leave, a stranger          | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID                 | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
session of m2 ends         | nothing             | nothing                           | nothing -> CompletingRebalance | nothing -> PreparingRebalance      | nothing -> PreparingRebalance
commit, m1                 | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID                 | ok; offset                       | REBALANCE_IN_PROGRESS              | ok; offset
commit, of an older one    | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID                 | ILLEGAL_GENERATION               | ILLEGAL_GENERATION                 | ILLEGAL_GENERATION
commit, a stranger         | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID                 | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
commit, nobody             | ok -> Empty; offset | ok; offset                        | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
commit, too much metadata  | OFFSET_METADATA_TOO_LARGE | OFFSET_METADATA_TOO_LARGE   | UNKNOWN_MEMBER_ID                | UNKNOWN_MEMBER_ID                  | UNKNOWN_MEMBER_ID
delete the group           | GROUP_ID_NOT_FOUND  | ok -> no group; -group            | NON_EMPTY_GROUP                  | NON_EMPTY_GROUP                    | NON_EMPTY_GROUP
"""  # noqa: E501

LEAST = 10_000


class ClassicScene:
    def __init__(self, state: str) -> None:
        self.desk = desk = Desk()
        self.ids, self.generation = ["m1", "m2"], 2
        if state == "no group":
            return
        if state == "CompletingRebalance":
            self.ids = [desk.new_member_id() for _ in range(2)]
            joins = [desk.send_join(one) for one in self.ids]
            desk.wait(0)
            self.generation = max(desk.answers[one].generation_id for one in joins)  # type: ignore[attr-defined]
        else:
            self.ids, self.generation = desk.stable_group("one", "two")
        if state == "Empty":
            desk.leave(*((one, None) for one in self.ids))
            desk.wait(120_000)
        elif state == "PreparingRebalance":
            desk.send_join(desk.new_member_id())
        assert self.state == state

    @property
    def state(self) -> str:
        group = self.desk.state.groups.get("g")
        return "no group" if group is None else group.state_name


def _join(who: int | None = None, **options: Any) -> Callable[[ClassicScene], str]:
    def ask(scene: ClassicScene) -> str:
        ticket = scene.desk.send_join("" if who is None else scene.ids[who], **options)
        scene.desk.shard.fire_timers()
        answer: Any = scene.desk.answers.get(ticket)
        return "waits" if answer is None else _word(answer.error_code)

    return ask


def _sync(who: int | None, *, ago: int = 0, assigns: bool = False, **options: Any) -> Callable[[ClassicScene], str]:
    def ask(scene: ClassicScene) -> str:
        member = "stranger" if who is None else scene.ids[who]
        assignments = dict.fromkeys(scene.ids, b"x") if assigns else None
        ticket = scene.desk.send_sync(member, scene.generation - ago, assignments, **options)
        answer: Any = scene.desk.answers.get(ticket)
        return "waits" if answer is None else _word(answer.error_code)

    return ask


def _beat(who: int | None, ago: int = 0) -> Callable[[ClassicScene], str]:
    def ask(scene: ClassicScene) -> str:
        member = "stranger" if who is None else scene.ids[who]
        return _word(scene.desk.heartbeat(member, scene.generation - ago))

    return ask


def _leave(who: int | None) -> Callable[[ClassicScene], str]:
    return lambda scene: _word(scene.desk.leave(("stranger" if who is None else scene.ids[who], None))[0])


def _commit(who: int | None, *, ago: int = 0, nobody: bool = False, **more: Any) -> Callable[[ClassicScene], str]:
    def ask(scene: ClassicScene) -> str:
        if nobody:
            return _word(scene.desk.commit(7, **more))
        member = "stranger" if who is None else scene.ids[who]
        return _word(scene.desk.commit(7, member_id=member, epoch=scene.generation - ago, **more))

    return ask


def _session_ends(scene: ClassicScene) -> str:
    scene.desk.clock.advance(LEAST - 1)
    if scene.state in ("Stable", "CompletingRebalance"):
        scene.desk.heartbeat(scene.ids[0], scene.generation)
    scene.desk.wait(1)
    return "nothing"


def _delete(scene: Any) -> str:
    return _word(scene.desk.replied(scene.desk.shard.delete_group("g")))


def _word(code: int) -> str:
    return "ok" if not code else ErrorCode(code).name


CLASSIC_REQUESTS: dict[str, Callable[[ClassicScene], str]] = {
    "join, new": _join(),
    "join, m1 unchanged": _join(0),
    "join, m2 unchanged": _join(1),
    "join, m2 changed": _join(1, topics=("orders", "more")),
    "join, other protocol type": _join(protocol_type="connect"),
    "join, no common protocol": _join(protocols=[("other", b"")]),
    "sync, m1 with assignments": _sync(0, assigns=True),
    "sync, m2": _sync(1),
    "sync, of an older one": _sync(1, ago=1),
    "sync, a stranger": _sync(None),
    "sync, another protocol": _sync(1, protocol_name="other"),
    "heartbeat": _beat(0),
    "heartbeat, of an older one": _beat(0, ago=1),
    "heartbeat, a stranger": _beat(None),
    "leave, m2": _leave(1),
    "leave, a stranger": _leave(None),
    "session of m2 ends": _session_ends,
    "commit, m1": _commit(0),
    "commit, of an older one": _commit(0, ago=1),
    "commit, a stranger": _commit(None),
    "commit, nobody": _commit(None, nobody=True),
    "commit, too much metadata": _commit(None, nobody=True, metadata="x" * 5_000),
    "delete the group": _delete,
}


def outcome(scene: Any, ask: Callable[[Any], str]) -> str:
    """In the words of the tables."""
    before, written = scene.state, len(scene.desk.log.entries)
    try:
        word = ask(scene)
    except ApiError as error:
        word = error.code.name
    except NotAnswered:
        word = "waits"
    if scene.state != before:
        word += f" -> {scene.state}"
    kinds = [_kind(key, value) for key, value, _ in scene.desk.log.entries[written:]]
    return f"{word}; {', '.join(kinds)}" if kinds else word


def _kind(key: bytes, value: bytes | None) -> str:
    record = records.deserialize(key, value)
    assert record is not None
    return ("-" if value is None else "") + KINDS[type(record.key).__name__]


@pytest.mark.parametrize("cell", cells(CLASSIC), ids=str)
def test_classic_groups(cell: Cell) -> None:
    assert outcome(ClassicScene(cell.state), CLASSIC_REQUESTS[cell.request]) == cell.expected


# --- consumer groups: m1 reads all four partitions where it is Stable; m2 has just come where m1 is Unrevoked


CONSUMER = """
request                     | no group            | Empty             | m1 Stable                            | m1 Unrevoked
join, m2                    | ok -> Stable; member, epoch, target, target epoch, current | ok -> Stable; member, epoch, target, target epoch, current | ok -> Reconciling; member, epoch, target, target, target epoch, current | ok
heartbeat, m1               | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | ok                                   | ok
m1 has let go               | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | ok                                   | ok; current
m1, with its epoch before   | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | FENCED_MEMBER_EPOCH                  | FENCED_MEMBER_EPOCH
m1, with a later epoch      | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | FENCED_MEMBER_EPOCH                  | FENCED_MEMBER_EPOCH
heartbeat, a stranger       | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
m1 leaves                   | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | ok -> Empty; -current, -target, -member, epoch | ok -> Assigning; -current, -target, -member, epoch
a stranger leaves           | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
commit, m1                  | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | ok; offset                           | ok; offset
commit, m1 at a later epoch | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | STALE_MEMBER_EPOCH                   | STALE_MEMBER_EPOCH
commit, a stranger          | GROUP_ID_NOT_FOUND  | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
commit, nobody              | ok -> Empty; offset | ok; offset        | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
fetch, m1                   | ok                  | UNKNOWN_MEMBER_ID | ok                                   | ok
fetch, m1 at another epoch  | ok                  | UNKNOWN_MEMBER_ID | STALE_MEMBER_EPOCH                   | STALE_MEMBER_EPOCH
fetch, a stranger           | ok                  | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
fetch, nobody               | ok                  | ok                | ok                                   | ok
classic heartbeat, m1       | UNKNOWN_MEMBER_ID   | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID                    | UNKNOWN_MEMBER_ID
session of m1 ends          | nothing             | nothing           | nothing -> Empty; -current, -target, -member, epoch | nothing -> Assigning; -current, -target, -member, epoch
delete the group            | GROUP_ID_NOT_FOUND  | ok -> no group; -target epoch, -epoch | NON_EMPTY_GROUP  | NON_EMPTY_GROUP
"""  # noqa: E501


class ConsumerScene:
    def __init__(self, state: str) -> None:
        self.desk = desk = Desk()
        self.epoch = 3
        if state == "no group":
            return
        self.epoch = desk.beat("m1", 0).member_epoch
        if state == "Empty":
            desk.beat("m1", -1)
        elif state == "m1 Unrevoked":
            desk.beat("m2", 0)
            desk.beat("m1", self.epoch, owned={"orders": [0, 1, 2, 3]})
            desk.clock.advance(1)
            desk.beat("m2", desk.group().members["m2"].epoch)

    @property
    def state(self) -> str:
        group = self.desk.state.groups.get("g")
        return "no group" if group is None else group.state_name


def _modern(
    member: str, *, epoch: int | None = None, later: int = 0, owned: Sequence[int] | None = None
) -> Callable[[ConsumerScene], str]:
    def ask(scene: ConsumerScene) -> str:
        number = scene.epoch + later if epoch is None else epoch
        scene.desk.beat(member, number, owned=None if owned is None else {"orders": owned})
        return "ok"

    return ask


def _modern_commit(member: str, later: int = 0) -> Callable[[ConsumerScene], str]:
    def ask(scene: ConsumerScene) -> str:
        epoch = scene.epoch + later if member else -1
        return _word(scene.desk.commit(7, member_id=member, epoch=epoch))

    return ask


def _modern_fetch(member: str | None, later: int = 0) -> Callable[[ConsumerScene], str]:
    def ask(scene: ConsumerScene) -> str:
        check_fetch(scene.desk.state, "g", member, scene.epoch + later if member is not None else -1)
        return "ok"

    return ask


def _modern_session_ends(scene: ConsumerScene) -> str:
    """Where there is an m2 it has been heard of a millisecond later."""
    has_second = scene.state != "no group" and "m2" in scene.desk.group().members
    scene.desk.wait(scene.desk.config.consumer.session_timeout_ms - has_second)
    return "nothing"


CONSUMER_REQUESTS: dict[str, Callable[[ConsumerScene], str]] = {
    "join, m2": _modern("m2", epoch=0),
    "heartbeat, m1": _modern("m1"),
    "m1 has let go": _modern("m1", owned=[0, 1]),
    "m1, with its epoch before": _modern("m1", later=-1, owned=[0, 1, 2, 3, 4]),
    "m1, with a later epoch": _modern("m1", later=5),
    "heartbeat, a stranger": _modern("stranger"),
    "m1 leaves": _modern("m1", epoch=-1),
    "a stranger leaves": _modern("stranger", epoch=-1),
    "commit, m1": _modern_commit("m1"),
    "commit, m1 at a later epoch": _modern_commit("m1", 5),
    "commit, a stranger": _modern_commit("stranger"),
    "commit, nobody": _modern_commit(""),
    "fetch, m1": _modern_fetch("m1"),
    "fetch, m1 at another epoch": _modern_fetch("m1", 5),
    "fetch, a stranger": _modern_fetch("stranger"),
    "fetch, nobody": _modern_fetch(None),
    "classic heartbeat, m1": lambda scene: _word(scene.desk.heartbeat("m1", scene.epoch)),
    "session of m1 ends": _modern_session_ends,
    "delete the group": _delete,
}


@pytest.mark.parametrize("cell", cells(CONSUMER), ids=str)
def test_consumer_groups(cell: Cell) -> None:
    assert outcome(ConsumerScene(cell.state), CONSUMER_REQUESTS[cell.request]) == cell.expected


# --- offsets in transactions: what each kind of group says to a producer (KIP-447)

TRANSACTIONAL = """
request                    | no group            | Empty      | a classic group    | a consumer group
nobody                     | ok -> Empty; offset | ok; offset | ok; offset         | ok; offset
m1                         | ILLEGAL_GENERATION  | UNKNOWN_MEMBER_ID | ok; offset  | ok; offset
m1, of an older generation | ILLEGAL_GENERATION  | UNKNOWN_MEMBER_ID | ILLEGAL_GENERATION | ILLEGAL_GENERATION
m1, of a later generation  | ILLEGAL_GENERATION  | UNKNOWN_MEMBER_ID | ILLEGAL_GENERATION | ILLEGAL_GENERATION
a stranger                 | ILLEGAL_GENERATION  | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID  | UNKNOWN_MEMBER_ID
"""


def _transactional_scene(state: str) -> Any:
    return (
        ConsumerScene("m1 Stable")
        if state == "a consumer group"
        else ClassicScene("Stable" if state == "a classic group" else state)
    )


def _transactional(scene: Any, request: str) -> str:
    is_modern = isinstance(scene, ConsumerScene)
    generation, member = (scene.epoch, "m1") if is_modern else (scene.generation, scene.ids[0])
    generation += {"m1, of an older generation": -1, "m1, of a later generation": 1}.get(request, 0)
    if request == "a stranger":
        member = "stranger"
    elif request == "nobody":
        member, generation = "", -1
    asked = TxnOffsetCommitRequest(
        group_id="g", producer_id=7, producer_epoch=0, generation_id=generation, member_id=member
    )
    one = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    out = scene.desk.shard.commit_transactional(asked, [CommitTopic("orders", ZERO_TOPIC_ID, [one])])
    return _word(scene.desk.replied(out)[0][0])


@pytest.mark.parametrize("cell", cells(TRANSACTIONAL), ids=str)
def test_offsets_in_transactions(cell: Cell) -> None:
    scene = _transactional_scene(cell.state)
    assert outcome(scene, lambda scene: _transactional(scene, cell.request)) == cell.expected
    if cell.expected.endswith("offset"):
        group = scene.desk.state.groups["g"]
        assert scene.desk.committed() is None, "it waits for the marker"
        assert isinstance(group, ClassicGroup) is not isinstance(scene, ConsumerScene)
        scene.desk.state.end_transaction(7, committed=True)
        assert scene.desk.committed() == 3


@pytest.mark.parametrize(("table", "requests"), [(CLASSIC, CLASSIC_REQUESTS), (CONSUMER, CONSUMER_REQUESTS)])
def test_every_request_is_in_the_table(table: str, requests: dict[str, Any]) -> None:
    assert {one.request for one in cells(table)} == set(requests)
