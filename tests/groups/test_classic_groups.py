from __future__ import annotations

import pytest

from ottla.common.errors import ErrorCode
from ottla.groups.classic_group import State
from ottla.groups.config import GroupConfig
from ottla.protocol import codec
from tests.groups.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- joining


def test_a_new_member_is_told_its_id_and_let_in_with_it(desk: Desk) -> None:
    refused = desk.answer(desk.send_join(client_id="app"))
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert refused.member_id.startswith("app-")
    welcome = desk.join(refused.member_id)
    assert (welcome.error_code, welcome.generation_id, welcome.leader) == (0, 1, refused.member_id)


def test_clients_older_than_join_v4_are_let_in_at_once(desk: Desk) -> None:
    ticket = desk.send_join(version=3)
    assert desk.answer(ticket).generation_id == 1


def test_only_the_leader_gets_the_members(desk: Desk) -> None:
    first, second = desk.new_member_id(), desk.new_member_id()
    tickets = [desk.send_join(first), desk.send_join(second)]
    leader, follower = [desk.answer(one) for one in tickets]
    assert [one.member_id for one in leader.members] == [first, second]
    assert list(follower.members) == []
    assert follower.leader == first


def test_a_new_group_waits_for_more_members_and_longer_if_they_come() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=3_000))
    first = desk.new_member_id()
    ticket = desk.send_join(first)
    desk.wait(2_000)
    second = desk.new_member_id()
    late = desk.send_join(second)
    desk.wait(1_000)
    assert ticket not in desk.answers, "someone came during the delay, so it is extended"
    desk.wait(3_000)
    assert desk.answer(ticket).generation_id == desk.answer(late).generation_id == 1


def test_the_initial_wait_ends_with_the_rebalance_timeout_however_many_come() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=3_000))
    ticket = desk.send_join(desk.new_member_id(), rebalance_ms=7_000)
    for _ in range(6):
        desk.wait(1_500)
        desk.send_join(desk.new_member_id(), rebalance_ms=7_000)
    assert desk.answer(ticket).generation_id == 1


def test_a_group_id_is_needed(desk: Desk) -> None:
    assert desk.answer(desk.send_join(group="")).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_session_timeouts_have_limits(desk: Desk, session_ms: int) -> None:
    assert desk.answer(desk.send_join(session_ms=session_ms)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_unknown_member_of_an_unknown_group_is_refused(desk: Desk) -> None:
    assert desk.answer(desk.send_join("stranger")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.state.groups == {}


def test_the_protocol_that_everybody_supports_and_most_prefer_is_chosen(desk: Desk) -> None:
    ids = [desk.new_member_id() for _ in range(3)]
    offers = [[("a", b""), ("b", b"")], [("b", b""), ("a", b"")], [("b", b""), ("c", b""), ("a", b"")]]
    tickets = [desk.send_join(one, protocols=offer) for one, offer in zip(ids, offers, strict=True)]
    assert {desk.answer(one).protocol_name for one in tickets} == {"b"}


def test_a_member_without_a_common_protocol_is_refused(desk: Desk) -> None:
    desk.stable_group("x")
    refused = desk.answer(desk.send_join(protocols=[("other", b"")]))
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_any_protocol_type_may_form_a_group_but_types_do_not_mix(desk: Desk) -> None:
    desk.stable_group("x", protocol_type="connect", protocols=[("sessioned", b"\0")])
    assert desk.group().protocol_type == "connect"
    mixed = desk.answer(desk.send_join(protocols=[("sessioned", b"\0")]))
    assert mixed.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_group_has_a_largest_size() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, members_max=2))
    desk.stable_group("x", "y")
    assert desk.answer(desk.send_join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_id_that_is_never_used_expires_with_its_session(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    unused = desk.new_member_id()
    ticket = desk.send_join(ids[0])  # the leader asks for a rebalance, which waits for the id given out
    desk.wait(9_999)
    assert ticket not in desk.answers
    desk.wait(1)
    assert desk.answer(ticket).generation_id == generation + 1
    assert desk.answer(desk.send_join(unused)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_ids_that_are_given_out_are_limited() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, pending_members_max=2))
    desk.new_member_id()
    desk.new_member_id()
    assert desk.answer(desk.send_join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_join_that_is_sent_again_is_answered_once_and_the_first_is_released(desk: Desk) -> None:
    ids, _ = desk.stable_group("x", "y")
    first = desk.send_join(ids[0])
    second = desk.send_join(ids[0])
    assert desk.answer(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    desk.send_join(ids[1])
    assert desk.answer(second).error_code == 0


# --- rejoining


def test_a_leader_that_rejoins_starts_a_rebalance(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    ticket = desk.send_join(ids[0])
    assert desk.heartbeat(ids[1], generation) == ErrorCode.REBALANCE_IN_PROGRESS
    desk.send_join(ids[1])
    assert desk.answer(ticket).generation_id == generation + 1


def test_a_follower_that_rejoins_unchanged_gets_the_same_generation(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    again = desk.answer(desk.send_join(ids[1]))
    assert (again.generation_id, again.leader, list(again.members)) == (generation, ids[0], [])
    assert desk.group().state is State.STABLE


def test_a_follower_with_a_new_subscription_starts_a_rebalance(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.send_join(ids[1], topics=["orders", "returns"])
    assert desk.heartbeat(ids[0], generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_do_not_rejoin_in_time_are_out(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y", session_ms=60_000, rebalance_ms=20_000)
    ticket = desk.send_join(ids[0], session_ms=60_000, rebalance_ms=20_000)
    desk.wait(20_000)
    answer = desk.answer(ticket)
    assert [one.member_id for one in answer.members] == [ids[0]]
    assert desk.heartbeat(ids[1], generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_rejoin_is_replaced(desk: Desk) -> None:
    ids, _ = desk.stable_group("x", "y", session_ms=60_000, rebalance_ms=20_000)
    ticket = desk.send_join(ids[1], topics=["other"], session_ms=60_000, rebalance_ms=20_000)
    desk.wait(20_000)
    assert desk.answer(ticket).leader == ids[1]


def test_joining_again_while_assignments_are_made_gives_the_same_answer(desk: Desk) -> None:
    first = desk.join()
    again = desk.answer(desk.send_join(first.member_id))
    assert again == first


# --- syncing


def test_followers_wait_for_the_leaders_assignment(desk: Desk) -> None:
    ids = [desk.new_member_id(), desk.new_member_id()]
    tickets = [desk.send_join(one) for one in ids]
    generation = desk.answer(tickets[0]).generation_id
    waiting = desk.send_sync(ids[1], generation)
    assert waiting not in desk.answers
    assert desk.sync(ids[0], generation, {ids[0]: b"mine", ids[1]: b"yours"}).assignment == b"mine"
    assert desk.answer(waiting).assignment == b"yours"
    assert desk.sync(ids[1], generation).assignment == b"yours", "and may ask again"


def test_a_sync_that_fails_to_be_stored_makes_everybody_join_again(desk: Desk) -> None:
    ids = [desk.new_member_id(), desk.new_member_id()]
    tickets = [desk.send_join(one) for one in ids]
    generation = desk.answer(tickets[0]).generation_id
    waiting = desk.send_sync(ids[1], generation)
    desk.log.broken = True
    assert desk.sync(ids[0], generation, {}).error_code == ErrorCode.NOT_COORDINATOR
    assert desk.answer(waiting).error_code == ErrorCode.NOT_COORDINATOR
    assert desk.group().state is State.PREPARING


def test_the_assignment_is_given_out_only_when_it_is_durable(desk: Desk) -> None:
    welcome = desk.join()
    desk.log.slow = True
    ticket = desk.send_sync(welcome.member_id, 1, {welcome.member_id: b"x"})
    assert ticket not in desk.answers
    desk.log.flush()
    assert desk.answer(ticket).assignment == b"x"


def test_an_assignment_that_was_overtaken_by_a_join_is_dropped(desk: Desk) -> None:
    welcome = desk.join()
    newcomer = desk.new_member_id()
    desk.log.slow = True
    ticket = desk.send_sync(welcome.member_id, 1, {welcome.member_id: b"x"})
    desk.send_join(newcomer)
    desk.log.flush()
    assert desk.answer(ticket).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.group().state is State.PREPARING


@pytest.mark.parametrize(
    ("member", "generation", "protocol", "expected"),
    [
        ("stranger", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 7, None, ErrorCode.ILLEGAL_GENERATION),
        (None, 1, "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_must_fit_the_generation(
    desk: Desk, member: str | None, generation: int, protocol: str | None, expected: ErrorCode
) -> None:
    ids, _ = desk.stable_group("x")
    assert desk.sync(member or ids[0], generation, protocol_name=protocol).error_code == expected


def test_a_sync_during_a_rebalance_is_sent_back_to_join(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.send_join(ids[0])
    assert desk.sync(ids[1], generation).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_never_sync_are_out_after_the_rebalance_timeout(desk: Desk) -> None:
    options = {"session_ms": 60_000, "rebalance_ms": 20_000}
    ids = [desk.new_member_id(**options), desk.new_member_id(**options)]
    tickets = [desk.send_join(one, **options) for one in ids]
    generation = desk.answer(tickets[0]).generation_id
    desk.sync(ids[0], generation, {})
    desk.wait(20_000)
    assert desk.heartbeat(ids[0], generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.heartbeat(ids[1], generation) == ErrorCode.UNKNOWN_MEMBER_ID


# --- sessions


def test_a_member_that_is_not_heard_of_is_out_and_the_others_rebalance(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.wait(9_000)
    assert desk.heartbeat(ids[0], generation) == ErrorCode.NONE
    desk.wait(1_000)
    assert desk.heartbeat(ids[0], generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.heartbeat(ids[1], generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_keeps_the_session_alive(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    for _ in range(3):
        desk.wait(9_000)
        assert desk.commit(1, member_id=ids[0], epoch=generation) == ErrorCode.NONE
    assert desk.heartbeat(ids[0], generation) == ErrorCode.NONE


def test_a_member_whose_join_is_held_does_not_expire(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y", rebalance_ms=60_000)
    ticket = desk.send_join(ids[0], rebalance_ms=60_000)
    for _ in range(5):
        desk.wait(9_000)
        desk.heartbeat(ids[1], generation)
    assert ticket not in desk.answers
    desk.send_join(ids[1], rebalance_ms=60_000)
    assert desk.answer(ticket).error_code == 0


def test_a_jump_of_the_wall_clock_expires_no_session(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    desk.clock.set_wall(desk.clock.now_ms() + 1_000 * 86_400_000)
    desk.shard.fire_timers()
    assert desk.heartbeat(ids[0], generation) == ErrorCode.NONE


def test_a_heartbeat_from_an_old_generation_is_refused(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    assert desk.heartbeat(ids[0], generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert desk.heartbeat("stranger", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat(ids[0], generation, group="nowhere") == ErrorCode.UNKNOWN_MEMBER_ID


# --- leaving


def test_when_the_last_member_leaves_the_group_is_empty(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    assert desk.leave((ids[0], None)) == [ErrorCode.NONE]
    assert desk.group().state is State.EMPTY
    assert desk.group().generation == generation + 1
    desk.restart()
    assert desk.group().state is State.EMPTY


def test_several_members_leave_at_once_and_each_is_answered(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y", "z")
    assert desk.leave((ids[0], None), ("stranger", None), (ids[1], None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert desk.heartbeat(ids[2], generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_an_unknown_group_is_refused(desk: Desk) -> None:
    assert desk.leave(("x", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_giving_an_unused_id_back_disturbs_nobody(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    assert desk.leave((desk.new_member_id(), None)) == [ErrorCode.NONE]
    assert desk.heartbeat(ids[0], generation) == ErrorCode.NONE


def test_a_member_that_leaves_while_it_joins_gets_its_join_answered(desk: Desk) -> None:
    ids, _ = desk.stable_group("x", "y")
    ticket = desk.send_join(ids[0])
    desk.leave((ids[0], None))
    assert desk.answer(ticket).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- restarts


def test_a_restart_finds_the_last_generation_and_its_members(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.restart()
    assert desk.heartbeat(ids[0], generation) == ErrorCode.NONE
    assert desk.sync(ids[1], generation).assignment == b"y"
    desk.wait(10_000)
    assert desk.heartbeat(ids[0], generation) == ErrorCode.UNKNOWN_MEMBER_ID, "sessions run from the restart on"


def test_a_restart_in_the_middle_of_a_rebalance_goes_back_to_the_generation_before(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.send_join(ids[0])
    desk.restart()
    assert desk.heartbeat(ids[1], generation) == ErrorCode.NONE


def test_a_group_over_a_lowered_limit_rebalances_after_a_restart(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.restart(GroupConfig(initial_rebalance_delay_ms=0, members_max=1))
    assert desk.heartbeat(ids[0], generation) == ErrorCode.REBALANCE_IN_PROGRESS
    first, second = desk.send_join(ids[0]), desk.send_join(ids[1])
    assert desk.answer(second).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.answer(first).error_code == 0


def test_a_coordinator_that_moves_away_tells_those_who_wait(desk: Desk) -> None:
    ids, _ = desk.stable_group("x", "y")
    ticket = desk.send_join(ids[0])
    desk.shard.resign()
    assert desk.answer(ticket).error_code == ErrorCode.NOT_COORDINATOR
    assert desk.heartbeat(ids[1], 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("letter", ["x", "\u017c"])
def test_a_client_id_of_any_length_makes_a_member_id_that_can_be_sent_and_stored(desk: Desk, letter: str) -> None:
    """Or no member of the group could be answered: all are named to the leader."""
    longest = letter * (32_767 // len(letter.encode()))
    ticket = desk.send_join(version=3, client_id=longest)
    answer = desk.answer(ticket)
    assert codec.encode(answer, 3)
    assert answer.member_id.startswith(letter * 1_000)
    desk.sync(answer.member_id, answer.generation_id, {answer.member_id: b"a"})
    desk.restart()
    assert list(desk.group().members) == [answer.member_id]
