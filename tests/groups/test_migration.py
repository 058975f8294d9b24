"""Groups that change between the classic and the consumer protocol."""

from __future__ import annotations

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.groups import consumer_protocol
from ottla.groups.classic_group import ClassicGroup, State
from ottla.groups.config import GroupConfig, MigrationPolicy
from ottla.groups.consumer_group import ConsumerGroup, MemberState
from tests.groups.desk import Desk, partitions_of


@pytest.fixture
def desk() -> Desk:
    return Desk()


def classic_member(desk: Desk, *, instance: str | None = None) -> str:
    """A stable classic group of one that owns everything."""
    welcome = desk.join(instance=instance)
    assignment = consumer_protocol.write_assignment({"orders": [0, 1, 2, 3]}, 1)
    desk.sync(welcome.member_id, welcome.generation_id, {welcome.member_id: assignment}, instance=instance)
    member_id: str = welcome.member_id
    return member_id


def assigned(response: object) -> dict[str, list[int]]:
    data = response.assignment  # type: ignore[attr-defined]
    return {one.topic: list(one.partitions) for one in consumer_protocol.read_assignment(data).assigned_partitions}


# --- up


def test_a_consumer_joins_a_classic_group_and_partitions_move_step_by_step(desk: Desk) -> None:
    old = classic_member(desk)
    joined = desk.beat("new", 0)
    assert isinstance(desk.group(), ConsumerGroup)
    assert joined.member_epoch == 2
    assert partitions_of(joined) == {}
    assert desk.heartbeat(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS

    again = desk.answer(desk.send_join(old, owned={"orders": [0, 1, 2, 3]}))
    assert (again.error_code, again.generation_id, again.leader) == (0, 1, "")
    kept = assigned(desk.sync(old, 1))
    assert sum(len(one) for one in kept.values()) == 2
    assert desk.group().members[old].state is MemberState.UNREVOKED_PARTITIONS

    assert desk.heartbeat(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    last = desk.answer(desk.send_join(old, owned=kept))
    assert last.generation_id == 2
    assert assigned(desk.sync(old, 2)) == kept
    assert desk.heartbeat(old, 2) == ErrorCode.NONE
    assert sorted(partitions_of(desk.beat("new", 2))["orders"] + kept["orders"]) == [0, 1, 2, 3]


def test_members_that_wait_for_a_rebalance_are_sent_to_the_new_group(desk: Desk) -> None:
    ids, _ = desk.stable_group("", "")
    held = desk.send_join(ids[0])
    desk.beat("new", 0)
    assert desk.answer(held).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.answer(desk.send_join(ids[0])).error_code == 0


def test_an_upgrade_that_is_refused_leaves_those_who_wait_alone(desk: Desk) -> None:
    ids, _ = desk.stable_group("", "")
    held = desk.send_join(ids[0])
    with pytest.raises(ApiError):
        desk.beat("new", 0, regex="(")
    assert held not in desk.answers
    desk.send_join(ids[1])
    assert desk.answer(held).error_code == 0


def test_a_restart_after_the_upgrade_finds_the_new_group(desk: Desk) -> None:
    old = classic_member(desk)
    desk.beat("new", 0)
    desk.restart()
    assert list(desk.group().members) == [old, "new"]
    assert desk.heartbeat(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_the_policy_can_forbid_the_upgrade(policy: MigrationPolicy) -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, migration_policy=policy))
    classic_member(desk)
    with pytest.raises(ApiError) as refused:
        desk.beat("new", 0)
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_only_groups_of_consumers_can_be_upgraded(desk: Desk) -> None:
    desk.stable_group("x", protocol_type="connect", protocols=[("sessioned", b"\0")])
    with pytest.raises(ApiError, match="does not use the consumer embedded protocol"):
        desk.beat("new", 0)


def test_assignments_that_carry_data_of_an_own_assignor_cannot_be_upgraded(desk: Desk) -> None:
    welcome = desk.join()
    data = consumer_protocol.write_assignment({}, 1)[:-4] + b"\0\0\0\1x"
    desk.sync(welcome.member_id, 1, {welcome.member_id: data})
    with pytest.raises(ApiError, match="whose data would be lost"):
        desk.beat("new", 0)


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets(desk: Desk) -> None:
    ids, _ = desk.stable_group("x")
    desk.leave((ids[0], None))
    desk.commit(5)
    generation = desk.group().generation
    assert desk.beat("new", 0).member_epoch == generation + 1
    assert desk.committed() == 5


def test_a_group_in_name_only_becomes_a_consumer_group(desk: Desk) -> None:
    desk.commit(5)
    desk.beat("new", 0)
    desk.restart()
    assert isinstance(desk.group(), ConsumerGroup)
    assert desk.committed() == 5


def test_a_static_member_changes_its_protocol_and_keeps_its_partitions(desk: Desk) -> None:
    classic_member(desk, instance="a")
    assert partitions_of(desk.beat("new", 0, instance="a")) == {"orders": [0, 1, 2, 3]}
    assert list(desk.group().members) == ["new"]


# --- classic members in a consumer group


def test_a_classic_member_joins_a_consumer_group(desk: Desk) -> None:
    desk.beat("m1", 0)
    required = desk.answer(desk.send_join())
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = desk.answer(desk.send_join(required.member_id))
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 3, "range")
    assert assigned(desk.sync(joined.member_id, 3)) == {}
    desk.beat("m1", 2, owned={"orders": [0, 1, 2, 3]})
    desk.beat("m1", 2, owned={"orders": [0, 1]})
    assert desk.heartbeat(joined.member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS, "its partitions are free now"
    desk.answer(desk.send_join(joined.member_id, owned={}))
    assert sum(len(one) for one in assigned(desk.sync(joined.member_id, 3)).values()) == 2


def test_a_classic_member_that_does_not_rejoin_or_sync_in_time_is_out(desk: Desk) -> None:
    desk.beat("m1", 0)
    member_id = desk.answer(desk.send_join()).member_id
    desk.answer(desk.send_join(member_id, session_ms=60_000, rebalance_ms=10_000))
    desk.wait(10_000)
    assert member_id not in desk.group().members


def test_a_classic_member_of_a_consumer_group_is_checked_like_one(desk: Desk) -> None:
    desk.beat("m1", 0)
    member_id = desk.answer(desk.send_join()).member_id
    generation = desk.answer(desk.send_join(member_id)).generation_id
    assert desk.heartbeat(member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert desk.heartbeat("m1", 1) == ErrorCode.UNKNOWN_MEMBER_ID, "m1 does not speak the classic protocol"
    assert desk.sync(member_id, generation, protocol_name="other").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert desk.commit(1, member_id=member_id, epoch=generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert desk.commit(1, member_id=member_id, epoch=generation, version=7) == ErrorCode.NONE
    other = desk.answer(desk.send_join(protocol_type="connect"))
    assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_that_was_fenced_and_holds_on_to_partitions_must_start_over(desk: Desk) -> None:
    desk.beat("m1", 0)
    refused = desk.answer(desk.send_join("fenced", owned={"orders": [0]}))
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.answer(desk.send_join("new")).error_code == 0


def test_without_migration_classic_members_stay_outside() -> None:
    desk = Desk(GroupConfig(migration_policy=MigrationPolicy.DISABLED))
    desk.beat("m1", 0)
    assert desk.answer(desk.send_join()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# --- down


def test_when_the_last_consumer_leaves_the_group_is_classic_again(desk: Desk) -> None:
    old = classic_member(desk)
    desk.beat("new", 0)
    desk.beat("new", -1)
    group = desk.group()
    assert isinstance(group, ClassicGroup)
    assert group.state is State.PREPARING
    assert desk.heartbeat(old, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = desk.answer(desk.send_join(old))
    assert (answer.generation_id, answer.leader) == (3, old)


def test_the_same_when_its_session_ends(desk: Desk) -> None:
    old = classic_member(desk)
    desk.beat("new", 0)
    for _ in range(5):
        desk.wait(9_000)
        desk.heartbeat(old, 1)
    assert isinstance(desk.group(), ClassicGroup)


def test_a_restart_after_the_downgrade_finds_the_classic_group(desk: Desk) -> None:
    old = classic_member(desk)
    desk.beat("new", 0)
    desk.beat("new", -1)
    desk.restart()
    group = desk.group()
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [old]


def test_a_downgrade_that_cannot_be_stored_leaves_the_group_as_it_was(desk: Desk) -> None:
    classic_member(desk)
    desk.beat("new", 0)
    desk.log.broken = True
    with pytest.raises(ApiError):
        desk.beat("new", -1)
    assert isinstance(desk.group(), ConsumerGroup)
    assert "new" in desk.group().members


def test_the_policy_can_forbid_the_downgrade() -> None:
    config = GroupConfig(initial_rebalance_delay_ms=0, migration_policy=MigrationPolicy.UPGRADE)
    desk = Desk(config)
    classic_member(desk)
    desk.beat("new", 0)
    desk.beat("new", -1)
    assert isinstance(desk.group(), ConsumerGroup)


def test_the_last_consumer_comes_back_as_a_static_classic_member_without_a_rebalance(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    back = desk.answer(desk.send_join(instance="a"))
    group = desk.group()
    assert isinstance(group, ClassicGroup)
    assert group.state is State.STABLE
    assert (back.error_code, back.generation_id) == (0, 2)
    assert assigned(desk.sync(back.member_id, 2, instance="a")) == {"orders": [0, 1, 2, 3]}


def test_the_same_with_another_subscription_rebalances(desk: Desk) -> None:
    desk.beat("m1", 0, instance="a")
    desk.answer(desk.send_join(instance="a", topics=["other"]))
    assert desk.group().state is State.PREPARING


def test_an_empty_consumer_group_becomes_classic_and_its_numbers_go_on(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m1", -1)
    epoch = desk.group().epoch
    welcome = desk.join()
    assert isinstance(desk.group(), ClassicGroup)
    assert welcome.generation_id == epoch + 1
    desk.restart()
    assert isinstance(desk.group(), ClassicGroup)
