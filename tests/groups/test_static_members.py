"""Static membership of classic groups (KIP-345)."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.groups.classic_group import State
from tests.groups.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def static_group(desk: Desk, *instances: str, **options: Any) -> tuple[list[str], int]:
    tickets = [desk.send_join(instance=one, **options) for one in instances]
    desk.wait(0)
    answers = [desk.answer(one) for one in tickets]
    if len({one.generation_id for one in answers}) > 1:  # the first was alone in a generation of its own
        ids = [one.member_id for one in answers]
        tickets = [desk.send_join(one, instance=name, **options) for one, name in zip(ids, instances, strict=True)]
        answers = [desk.answer(one) for one in tickets]
    ids = [one.member_id for one in answers]
    generation = answers[-1].generation_id
    leader = answers[-1].leader
    syncs = [
        desk.send_sync(one, generation, instance=name)
        for one, name in zip(ids, instances, strict=True)
        if one != leader
    ]
    name = instances[ids.index(leader)]
    desk.sync(leader, generation, {one: two.encode() for one, two in zip(ids, instances, strict=True)}, instance=name)
    assert all(one in desk.answers for one in syncs)
    return ids, generation


def test_a_static_member_is_let_in_without_a_second_trip(desk: Desk) -> None:
    answer = desk.answer(desk.send_join(instance="a"))
    assert answer.error_code == 0
    assert answer.member_id.startswith("a-")


def test_a_static_member_comes_back_under_a_new_id_without_a_rebalance(desk: Desk) -> None:
    ids, generation = static_group(desk, "a", "b")
    back = desk.answer(desk.send_join(instance="b"))
    assert back.error_code == 0
    assert back.generation_id == generation
    assert back.member_id != ids[1]
    assert desk.group().state is State.STABLE
    assert desk.sync(back.member_id, generation, instance="b").assignment == b"b"
    assert desk.heartbeat(ids[0], generation, instance="a") == ErrorCode.NONE


def test_the_new_id_is_in_the_log_before_it_is_given_out(desk: Desk) -> None:
    static_group(desk, "a", "b")
    desk.log.slow = True
    ticket = desk.send_join(instance="b")
    assert ticket not in desk.answers
    desk.log.flush()
    answer = desk.answer(ticket)
    desk.restart()
    assert desk.group().static_ids["b"] == answer.member_id


def test_if_the_new_id_cannot_be_stored_the_old_one_stays(desk: Desk) -> None:
    ids, generation = static_group(desk, "a", "b")
    desk.log.broken = True
    assert desk.answer(desk.send_join(instance="b")).error_code == ErrorCode.NOT_COORDINATOR
    assert desk.heartbeat(ids[1], generation, instance="b") == ErrorCode.NONE


def test_the_old_id_is_fenced(desk: Desk) -> None:
    ids, generation = static_group(desk, "a", "b")
    desk.answer(desk.send_join(instance="b"))
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert desk.heartbeat(ids[1], generation, instance="b") == fenced
    assert desk.sync(ids[1], generation, instance="b").error_code == fenced
    assert desk.answer(desk.send_join(ids[1], instance="b")).error_code == fenced
    assert desk.commit(1, member_id=ids[1], epoch=generation, instance="b") == fenced
    assert desk.leave((ids[1], "b")) == [fenced]
    assert desk.heartbeat(ids[1], generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_held_join_of_the_old_id_is_fenced_at_once(desk: Desk) -> None:
    ids, _ = static_group(desk, "a", "b")
    held = desk.send_join(ids[1], instance="b", topics=["other"])
    assert held not in desk.answers
    desk.send_join(instance="b")
    assert desk.answer(held).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_coming_back_while_the_leader_assigns_starts_over(desk: Desk) -> None:
    tickets = [desk.send_join(instance="a"), desk.send_join(instance="b")]
    first = desk.answer(tickets[0])
    held = desk.send_sync(desk.answer(tickets[1]).member_id, first.generation_id, instance="b")
    assert held not in desk.answers
    desk.send_join(instance="b")
    assert desk.answer(held).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert desk.group().state is State.PREPARING


def test_a_returning_leader_is_told_to_skip_the_assignment(desk: Desk) -> None:
    ids, _ = static_group(desk, "a", "b")
    back = desk.answer(desk.send_join(instance="a"))
    assert back.leader == back.member_id != ids[0]
    assert back.skip_assignment
    assert len(back.members) == 2


def test_a_returning_leader_with_an_older_client_is_made_a_follower(desk: Desk) -> None:
    ids, _ = static_group(desk, "a", "b")
    back = desk.answer(desk.send_join(instance="a", version=8))
    assert back.leader == ids[0]
    assert list(back.members) == []


def test_coming_back_with_another_choice_of_protocol_rebalances(desk: Desk) -> None:
    both = [("range", b"\0\0\0\0\0\0\0\0\0\0"), ("sticky", b"\0\0\0\0\0\0\0\0\0\0")]
    static_group(desk, "a", "b", protocols=both)
    held = desk.send_join(instance="a", protocols=both[1:])
    assert held not in desk.answers
    assert desk.group().state is State.PREPARING


def test_static_members_that_are_away_stay_through_a_rebalance(desk: Desk) -> None:
    ids, _ = static_group(desk, "a", "b", session_ms=60_000, rebalance_ms=20_000)
    ticket = desk.send_join(ids[0], instance="a", topics=["other"], session_ms=60_000, rebalance_ms=20_000)
    desk.wait(20_000)
    assert sorted(one.group_instance_id for one in desk.answer(ticket).members) == ["a", "b"]
    desk.wait(40_000)
    assert "b" not in desk.group().static_ids, "until its session ends"


def test_a_group_of_static_members_that_are_all_away_waits_for_their_sessions(desk: Desk) -> None:
    ids, _ = static_group(desk, "a", "b", session_ms=100_000, rebalance_ms=20_000)
    held = desk.send_join(ids[0], instance="a", topics=["other"], session_ms=100_000, rebalance_ms=20_000)
    desk.leave((ids[0], "a"))
    assert desk.answer(held).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    desk.wait(20_000)
    assert desk.group().state is State.PREPARING
    desk.wait(80_000)
    desk.wait(20_000)
    assert desk.group().state is State.EMPTY


def test_an_administrator_removes_a_static_member_by_its_instance(desk: Desk) -> None:
    ids, generation = static_group(desk, "a", "b")
    assert desk.leave(("", "b"), ("", "nobody")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.heartbeat(ids[0], generation, instance="a") == ErrorCode.REBALANCE_IN_PROGRESS
