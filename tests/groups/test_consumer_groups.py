"""KIP-848 groups, one heartbeat at a time."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.groups.config import ConsumerSettings, GroupConfig
from ottla.groups.consumer_group import MemberState
from tests.groups.desk import Desk, partitions_of


@pytest.fixture
def desk() -> Desk:
    return Desk()


def refused(desk: Desk, *arguments: Any, **options: Any) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        desk.beat(*arguments, **options)
    return error.value.code


# --- joining and reconciling


def test_the_first_member_gets_everything(desk: Desk) -> None:
    joined = desk.beat("m1", 0)
    assert joined.member_epoch == 2
    assert joined.heartbeat_interval_ms == 5_000
    assert partitions_of(joined) == {"orders": [0, 1, 2, 3]}
    assert desk.group().state_name == "Stable"


def test_an_old_client_is_given_an_id(desk: Desk) -> None:
    assert desk.beat("", 0, version=0).member_id == "id1"
    assert refused(desk, "", 0, version=1) == ErrorCode.INVALID_REQUEST


def test_a_partition_moves_only_when_its_owner_has_let_go(desk: Desk) -> None:
    desk.beat("m1", 0)
    second = desk.beat("m2", 0)
    assert partitions_of(second) == {}, "everything is still the first one's"
    assert desk.group().members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    told = desk.beat("m1", 2, owned={"orders": [0, 1, 2, 3]})
    assert (told.member_epoch, partitions_of(told)) == (2, {"orders": [0, 1]})
    assert desk.group().members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    assert desk.beat("m2", 3).assignment is None, "not yet"
    done = desk.beat("m1", 2, owned={"orders": [0, 1]})
    assert done.member_epoch == 3
    assert partitions_of(desk.beat("m2", 3)) == {"orders": [2, 3]}
    assert desk.group().state_name == "Stable"


def test_a_heartbeat_without_partitions_does_not_count_as_letting_go(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m2", 0)
    desk.beat("m1", 2)
    desk.beat("m1", 2)
    assert desk.group().members["m1"].state is MemberState.UNREVOKED_PARTITIONS


def test_a_quiet_group_writes_nothing(desk: Desk) -> None:
    desk.beat("m1", 0)
    size = len(desk.log.entries)
    for _ in range(3):
        assert desk.beat("m1", 2).assignment is None
    assert len(desk.log.entries) == size


def test_a_full_request_gets_a_full_answer(desk: Desk) -> None:
    desk.beat("m1", 0)
    again = desk.beat("m1", 2, topics=["orders"], owned={"orders": [0]}, rebalance_ms=60_000)
    assert partitions_of(again) == {"orders": [0, 1, 2, 3]}


def test_members_that_subscribe_to_different_topics_share_fairly() -> None:
    desk = Desk(topics={"a": 4, "b": 2})
    desk.beat("m1", 0, topics=["a"])
    desk.beat("m2", 0, topics=["a", "b"])
    desk.beat("m1", 2, owned={"a": [0, 1, 2, 3]})
    targets = desk.group().targets
    sizes = {member: sum(len(one) for one in target.values()) for member, target in targets.items()}
    assert sizes == {"m1": 3, "m2": 3}


def test_unsubscribing_takes_partitions_away_at_once() -> None:
    desk = Desk(topics={"a": 1, "b": 1})
    desk.beat("m1", 0, topics=["a", "b"])
    told = desk.beat("m1", 2, topics=["a"], owned={"a": [0], "b": [0]})
    assert partitions_of(told) == {"a": [0]}
    assert desk.group().members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    assert desk.beat("m1", 2, owned={"a": [0]}).member_epoch == 3


def test_a_burst_of_joins_makes_one_new_target() -> None:
    desk = Desk(GroupConfig(consumer=ConsumerSettings(assignment_interval_ms=1_000)))
    desk.beat("m1", 0)
    desk.wait(10)
    early = desk.beat("m2", 0)
    assert (early.member_epoch, partitions_of(early)) == (2, {})
    assert desk.group().state_name == "Assigning"
    desk.wait(1_000)
    desk.beat("m1", 2)
    assert desk.group().assignment_epoch == 3


# --- topics that change


def test_new_partitions_are_assigned(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.set_topics({"orders": 6})
    assert partitions_of(desk.beat("m1", 2)) == {"orders": [0, 1, 2, 3, 4, 5]}


def test_a_topic_that_appears_is_assigned_and_one_that_goes_is_revoked(desk: Desk) -> None:
    desk.beat("m1", 0, topics=["orders", "later"])
    desk.set_topics({"orders": 4, "later": 1})
    assert partitions_of(desk.beat("m1", 2)) == {"later": [0], "orders": [0, 1, 2, 3]}
    desk.set_topics({"orders": 4})
    assert partitions_of(desk.beat("m1", 3, owned={"orders": [0, 1, 2, 3]})) == {"orders": [0, 1, 2, 3]}


def test_a_topic_that_nobody_reads_disturbs_nobody(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.set_topics({"orders": 4, "other": 9})
    assert desk.beat("m1", 2).member_epoch == 2


def test_if_the_new_epoch_cannot_be_stored_the_change_is_not_forgotten(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.set_topics({"orders": 6})
    desk.log.broken = True
    assert refused(desk, "m1", 2) == ErrorCode.NOT_COORDINATOR
    desk.log.broken = False
    assert partitions_of(desk.beat("m1", 2)) == {"orders": [0, 1, 2, 3, 4, 5]}


# --- regular expressions


def test_a_regular_expression_follows_the_topics() -> None:
    desk = Desk(topics={"log-a": 1, "log-b": 1, "other": 1})
    assert partitions_of(desk.beat("m1", 0, regex="log-.*")) == {"log-a": [0], "log-b": [0]}
    desk.set_topics({"log-a": 1, "log-b": 1, "log-c": 1, "other": 1})
    desk.clock.advance(1_000)
    assert partitions_of(desk.beat("m1", 2)) == {"log-a": [0], "log-b": [0], "log-c": [0]}


def test_the_whole_name_has_to_match() -> None:
    desk = Desk(topics={"log": 1, "catalog": 1, "logs": 1})
    assert partitions_of(desk.beat("m1", 0, regex="log")) == {"log": [0]}


def test_a_pattern_matches_internal_topics_too() -> None:
    desk = Desk(topics={"log": 1, "__consumer_offsets": 2})
    found = partitions_of(desk.beat("m1", 0, regex=".*"))
    assert list(found.values()) == [[0, 1], [0]]


@pytest.mark.parametrize("regex", ["(", "(a)\\1", "(?=a)"])
def test_what_is_not_an_re2_expression_is_refused(desk: Desk, regex: str) -> None:
    assert refused(desk, "m1", 0, regex=regex) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert desk.state.groups == {}


def test_a_pattern_made_to_hang_does_not() -> None:
    desk = Desk(topics={"a" * 200 + "b": 1})
    assert partitions_of(desk.beat("m1", 0, regex="(a+)+c")) == {}


def test_names_and_expression_add_up() -> None:
    desk = Desk(topics={"a": 1, "b1": 1, "b2": 1})
    assert partitions_of(desk.beat("m1", 0, topics=["a"], regex="b.")) == {"a": [0], "b1": [0], "b2": [0]}


def test_an_expression_goes_with_its_last_subscriber(desk: Desk) -> None:
    desk.beat("m1", 0, regex="ord.*")
    desk.beat("m2", 0, regex="ord.*")
    desk.beat("m1", -1)
    assert list(desk.group().regexes) == ["ord.*"]
    desk.beat("m2", -1)
    assert desk.group().regexes == {}


def test_changing_the_expression_drops_the_old_one(desk: Desk) -> None:
    desk.beat("m1", 0, regex="ord.*")
    desk.beat("m1", 2, regex="none.*", owned={"orders": [0, 1, 2, 3]})
    assert list(desk.group().regexes) == ["none.*"]


# --- assignors


def test_members_vote_for_the_assignor() -> None:
    desk = Desk(topics={"a": 2, "b": 2})
    desk.beat("m1", 0, topics=["a", "b"], assignor="range")
    desk.beat("m2", 0, topics=["a", "b"], assignor="range")
    target = desk.group().targets
    assert [tuple(one.values()) for one in target.values()] == [((0,), (0,)), ((1,), (1,))]


def test_an_unknown_assignor_is_refused(desk: Desk) -> None:
    assert refused(desk, "m1", 0, assignor="mine") == ErrorCode.UNSUPPORTED_ASSIGNOR


# --- fencing


def test_epochs_that_do_not_fit_are_fenced(desk: Desk) -> None:
    desk.beat("m1", 0)
    assert refused(desk, "m1", 3) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(desk, "stranger", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(desk, "m1", 2, group="nowhere") == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(desk, "m1", -3) == ErrorCode.INVALID_REQUEST


def test_the_epoch_before_is_fine_while_the_answer_may_have_been_lost(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.set_topics({"orders": 6})
    assert desk.beat("m1", 2).member_epoch == 3
    again = desk.beat("m1", 2, owned={"orders": [0, 1, 2, 3]})
    assert again.member_epoch == 3
    assert refused(desk, "m1", 2) == ErrorCode.FENCED_MEMBER_EPOCH, "but it must say what it has"


def test_a_member_that_starts_over_keeps_its_place(desk: Desk) -> None:
    desk.beat("m1", 0)
    assert partitions_of(desk.beat("m1", 0)) == {"orders": [0, 1, 2, 3]}
    assert desk.group().epoch == 2


def test_the_group_has_a_largest_size() -> None:
    desk = Desk(GroupConfig(consumer_members_max=1))
    desk.beat("m1", 0)
    assert refused(desk, "m2", 0) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.beat("m1", 0).member_epoch == 2


@pytest.mark.parametrize(
    "options",
    [
        {"rebalance_ms": -1},
        {"owned": {"orders": [0]}},
        {"instance": ""},
        {"group": ""},
    ],
)
def test_a_join_has_to_be_complete(desk: Desk, options: dict[str, Any]) -> None:
    assert refused(desk, "m1", 0, **options) == ErrorCode.INVALID_REQUEST


# --- leaving and time


def test_what_a_member_leaves_behind_goes_to_the_others(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m2", 0)
    assert desk.beat("m1", -1).member_epoch == -1
    assert partitions_of(desk.beat("m2", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_member_that_is_not_heard_of_is_fenced(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.wait(44_999)
    desk.beat("m1", 2)
    desk.wait(44_999)
    assert "m1" in desk.group().members
    desk.wait(1)
    assert refused(desk, "m1", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.group().state_name == "Empty"


def test_if_a_fencing_cannot_be_stored_it_is_tried_again(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.log.broken = True
    desk.wait(45_000)
    assert "m1" in desk.group().members
    desk.log.broken = False
    desk.wait(500)
    assert desk.group().members == {}


def test_a_member_that_does_not_let_go_in_time_is_fenced(desk: Desk) -> None:
    desk.beat("m1", 0, rebalance_ms=10_000)
    desk.beat("m2", 0)
    desk.beat("m1", 2)
    desk.wait(9_999)
    desk.beat("m1", 2)
    desk.wait(1)
    assert refused(desk, "m1", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert partitions_of(desk.beat("m2", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_restart_goes_on_where_it_was(desk: Desk) -> None:
    desk.beat("m1", 0, rebalance_ms=10_000)
    desk.beat("m2", 0)
    desk.beat("m1", 2)
    desk.restart()
    assert desk.beat("m2", 3).assignment is None
    assert desk.beat("m1", 2, owned={"orders": [0, 1]}).member_epoch == 3
    assert partitions_of(desk.beat("m2", 3)) == {"orders": [2, 3]}


def test_after_a_restart_the_timer_for_letting_go_runs_again(desk: Desk) -> None:
    desk.beat("m1", 0, rebalance_ms=10_000)
    desk.beat("m2", 0)
    desk.beat("m1", 2)
    desk.restart()
    desk.wait(10_000)
    assert "m1" not in desk.group().members


# --- static members


def test_a_static_member_that_says_it_will_be_back_keeps_its_partitions(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    desk.beat("m2", 0, instance="b")
    desk.beat("m1", 2, instance="a", owned={"orders": [0, 1]})
    desk.beat("m2", 3, instance="b")
    assert desk.beat("m2", -2, instance="b").member_epoch == -2
    assert desk.beat("m1", 3, instance="a").assignment is None
    back = desk.beat("m3", 0, instance="b")
    assert (back.member_epoch, partitions_of(back)) == (3, {"orders": [2, 3]})
    assert desk.beat("m1", 3, instance="a").member_epoch == 3, "nobody else was disturbed"


def test_a_static_member_that_does_not_come_back_in_time_is_out(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    desk.beat("m1", -2, instance="a")
    desk.wait(45_000)
    assert desk.group().members == {}


def test_a_static_member_comes_back_with_the_subscription_it_brings(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a", topics=["orders"])
    desk.beat("m1", -2, instance="a")
    back = desk.beat("m2", 0, instance="a", regex="none.*")
    assert partitions_of(back) == {}
    assert desk.group().members["m2"].topics == ()
    desk.beat("m2", -2, instance="a")
    desk.beat("m3", 0, instance="a", topics=["orders"])
    assert desk.group().regexes == {}


def test_an_instance_that_is_in_use_cannot_be_taken(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    assert refused(desk, "m2", 0, instance="a") == ErrorCode.UNRELEASED_INSTANCE_ID
    assert desk.beat("m1", 0, instance="a").member_epoch == 2, "but its own process may start over"


def test_the_old_id_of_an_instance_is_fenced(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    desk.beat("m1", -2, instance="a")
    desk.beat("m2", 0, instance="a")
    assert refused(desk, "m1", 2, instance="a") == ErrorCode.FENCED_INSTANCE_ID
    assert refused(desk, "m1", 2, instance="b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(desk, "m1", -2) == ErrorCode.INVALID_REQUEST


# --- commits


def test_commits_carry_the_members_epoch(desk: Desk) -> None:
    desk.beat("m1", 0)
    assert desk.commit(5, member_id="m1", epoch=2) == ErrorCode.NONE
    assert desk.commit(5, member_id="m1", epoch=3) == ErrorCode.STALE_MEMBER_EPOCH
    assert desk.commit(5, member_id="stranger", epoch=2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.commit(5, member_id="m1", epoch=2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert desk.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID, "a group with members takes commits from them alone"


def test_an_older_epoch_may_commit_what_the_member_has_held_since(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.set_topics({"orders": 5})
    assert desk.beat("m1", 2).member_epoch == 3
    assert desk.commit(7, member_id="m1", epoch=2, partition=0) == ErrorCode.NONE
    assert desk.commit(7, member_id="m1", epoch=2, partition=4) == ErrorCode.STALE_MEMBER_EPOCH


def test_an_older_epoch_may_not_commit_what_has_gone_to_another(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m2", 0)
    desk.beat("m1", 2)
    assert desk.commit(7, member_id="m1", epoch=2, partition=3) == ErrorCode.NONE, "it is giving it up right now"
    desk.beat("m1", 2, owned={"orders": [0, 1]})
    assert desk.commit(7, member_id="m1", epoch=2, partition=3) == ErrorCode.STALE_MEMBER_EPOCH
    assert desk.commit(7, member_id="m1", epoch=2, partition=0) == ErrorCode.NONE


def test_anybody_may_commit_for_an_empty_group(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m1", -1)
    assert desk.commit(3) == ErrorCode.NONE
