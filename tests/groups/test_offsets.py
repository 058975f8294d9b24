"""Commits, fetches, deletion and expiry of offsets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.groups.config import ConsumerSettings, GroupConfig
from ottla.groups.describe import describe_classic, describe_consumer, list_groups
from ottla.groups.offset_requests import CommitTopic, FetchTopic, check_fetch, fetch_offset
from ottla.protocol.messages import OffsetCommitRequest, TxnOffsetCommitRequest
from tests.groups.desk import Desk, topic_id

DAY = 86_400_000


@pytest.fixture
def desk() -> Desk:
    return Desk(
        GroupConfig(
            initial_rebalance_delay_ms=0, consumer=ConsumerSettings(assignment_interval_ms=0), offsets_retention_ms=DAY
        )
    )


def expire(desk: Desk, group: str = "g") -> None:
    desk.shard.expire(group, desk.clock.now_ms())


def delete(desk: Desk, topic: str, partitions: Sequence[int], group: str = "g") -> list[ErrorCode]:
    errors: list[ErrorCode] = desk.shard.delete_offsets(group, [(topic, partitions)]).reply[0]
    return errors


# --- commit and fetch


def test_anyone_may_commit_for_a_group_without_members(desk: Desk) -> None:
    assert desk.commit(5) == ErrorCode.NONE
    assert desk.committed() == 5
    desk.restart()
    assert desk.committed() == 5
    assert [(one.group_state, one.protocol_type, one.group_type) for one in list_groups(desk.state, [], [])] == [
        ("Empty", "", "classic")
    ]


def test_only_members_commit_for_a_group_that_has_some(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    assert desk.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.commit(5, member_id="stranger", epoch=generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.commit(5, member_id=ids[0], epoch=generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert desk.commit(5, member_id=ids[0], epoch=generation) == ErrorCode.NONE


def test_members_may_commit_while_others_rejoin_but_not_while_assignments_are_made(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    first = desk.send_join(ids[0])
    assert desk.commit(5, member_id=ids[1], epoch=generation) == ErrorCode.NONE
    desk.send_join(ids[1])
    now = desk.answer(first).generation_id
    assert desk.commit(6, member_id=ids[1], epoch=now) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_generation_for_an_unknown_group_is_refused(desk: Desk) -> None:
    assert desk.commit(5, member_id="m", epoch=1, version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.commit(5, member_id="m", epoch=1, version=8) == ErrorCode.ILLEGAL_GENERATION


def test_metadata_is_kept_and_limited(desk: Desk) -> None:
    assert desk.commit(5, metadata="x" * 4_096) == ErrorCode.NONE
    assert desk.commit(6, metadata="x" * 4_097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    desk.restart()
    found = desk.state.offsets.get("g", "orders", 0)
    assert found is not None
    assert (found.offset, found.metadata, found.leader_epoch) == (5, "x" * 4_096, 0)


def test_a_commit_that_cannot_be_stored_is_refused_and_leaves_no_trace(desk: Desk) -> None:
    desk.commit(5)
    desk.log.broken = True
    assert desk.commit(6) == ErrorCode.NOT_COORDINATOR
    assert desk.committed() == 5


def test_offsets_of_a_topic_that_was_made_anew_are_not_found_by_its_id(desk: Desk) -> None:
    desk.commit(5, with_topic_id=True)
    desk.restart()

    def fetch(asked: bytes) -> object:
        return fetch_offset(desk.state, "g", FetchTopic("orders", asked, [0]), 0, require_stable=False)  # type: ignore[arg-type]

    assert fetch(topic_id("orders")) is not None
    assert fetch(b"another topic id") is None
    assert fetch(ZERO_TOPIC_ID) is not None


def test_fetches_of_a_consumer_group_carry_the_members_epoch(desk: Desk) -> None:
    desk.beat("m1", 0)
    check_fetch(desk.state, "g", None, -1)
    check_fetch(desk.state, "g", "m1", 2)
    check_fetch(desk.state, "nowhere", "m1", 1)
    for member, epoch, expected in (
        ("m1", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("stranger", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(ApiError) as refused:
            check_fetch(desk.state, "g", member, epoch)
        assert refused.value.code == expected


# --- transactions


def commit_in_transaction(desk: Desk, offset: int, producer: int = 7) -> None:
    request = TxnOffsetCommitRequest(group_id="g", producer_id=producer, producer_epoch=0)
    one = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    desk.shard.commit_transactional(request, [CommitTopic("orders", ZERO_TOPIC_ID, [one])])


def test_offsets_of_a_transaction_count_when_it_is_committed(desk: Desk) -> None:
    commit_in_transaction(desk, 9)
    assert desk.committed() is None
    topic = FetchTopic("orders", ZERO_TOPIC_ID, [0])
    unstable = fetch_offset(desk.state, "g", topic, 0, require_stable=True)
    assert unstable is ErrorCode.UNSTABLE_OFFSET_COMMIT
    desk.restart()
    desk.state.end_transaction(7, committed=True)
    assert desk.committed() == 9


def test_offsets_of_an_aborted_transaction_are_forgotten(desk: Desk) -> None:
    desk.commit(5)
    commit_in_transaction(desk, 9)
    desk.state.end_transaction(7, committed=False)
    assert desk.committed() == 5


def test_a_later_commit_wins_over_a_transaction(desk: Desk) -> None:
    commit_in_transaction(desk, 9)
    desk.commit(11)
    desk.state.end_transaction(7, committed=True)
    assert desk.committed() == 11


def test_offsets_with_an_open_transaction_do_not_expire(desk: Desk) -> None:
    desk.commit(5)
    commit_in_transaction(desk, 9)
    desk.clock.advance(2 * DAY)
    expire(desk)
    assert desk.committed() == 5


# --- deletion


def test_offsets_of_topics_that_are_not_read_can_be_deleted(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", topics=["orders"])
    desk.commit(5, member_id=ids[0], epoch=generation)
    desk.commit(5, member_id=ids[0], epoch=generation, topic="old")
    assert delete(desk, "orders", [0]) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete(desk, "old", [0, 1]) == [ErrorCode.NONE, ErrorCode.NONE]
    assert desk.committed() == 5
    assert desk.committed(topic="old") is None


def test_offsets_of_a_live_group_of_another_kind_cannot_be_deleted(desk: Desk) -> None:
    desk.stable_group("x", protocol_type="connect", protocols=[("sessioned", b"\0")])
    with pytest.raises(ApiError) as refused:
        delete(desk, "orders", [0])
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_deleting_offsets_of_an_unknown_group_is_refused(desk: Desk) -> None:
    with pytest.raises(ApiError) as refused:
        delete(desk, "orders", [0])
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_go_with_their_topic(desk: Desk) -> None:
    desk.commit(5)
    desk.commit(6, topic="other")
    desk.shard.forget_topics(["orders"])
    assert desk.committed() is None
    assert desk.committed(topic="other") == 6


def test_a_group_is_deleted_with_its_offsets_if_it_has_no_members(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    desk.commit(5, member_id=ids[0], epoch=generation)
    assert desk.shard.delete_group("g").reply == ErrorCode.NON_EMPTY_GROUP
    desk.leave((ids[0], None))
    assert desk.shard.delete_group("g").reply == ErrorCode.NONE
    assert desk.shard.delete_group("g").reply == ErrorCode.GROUP_ID_NOT_FOUND
    desk.restart()
    assert desk.state.groups == {}
    assert desk.committed() is None


def test_a_consumer_group_is_deleted_too(desk: Desk) -> None:
    desk.beat("m1", 0)
    assert desk.shard.delete_group("g").reply == ErrorCode.NON_EMPTY_GROUP
    desk.beat("m1", -1)
    assert desk.shard.delete_group("g").reply == ErrorCode.NONE
    desk.restart()
    assert desk.state.groups == {}


# --- expiry


def test_offsets_of_a_group_in_name_only_expire_after_their_commit(desk: Desk) -> None:
    desk.commit(5)
    desk.clock.advance(DAY - 1)
    expire(desk)
    assert desk.committed() == 5
    desk.clock.advance(1)
    expire(desk)
    assert desk.committed() is None
    assert desk.state.groups == {}


def test_offsets_of_an_empty_group_expire_after_the_last_member_left(desk: Desk) -> None:
    ids, generation = desk.stable_group("x")
    desk.commit(5, member_id=ids[0], epoch=generation)
    for _ in range(2 * DAY // 9_000):
        desk.clock.advance(9_000)
        desk.heartbeat(ids[0], generation)
    expire(desk)
    assert desk.committed() == 5, "it is being read"
    desk.leave((ids[0], None))
    desk.restart()
    expire(desk)
    assert desk.committed() == 5, "the clock has just started"
    desk.clock.advance(DAY)
    expire(desk)
    assert desk.committed() is None
    assert desk.state.groups == {}


def test_offsets_of_topics_a_group_no_longer_reads_expire(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", session_ms=1_800_000)
    desk.commit(5, member_id=ids[0], epoch=generation)
    desk.commit(5, member_id=ids[0], epoch=generation, topic="old")
    desk.clock.advance(DAY)
    expire(desk)
    assert (desk.committed(), desk.committed(topic="old")) == (5, None)


def test_nothing_expires_in_the_middle_of_a_rebalance(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", "y")
    desk.commit(5, member_id=ids[0], epoch=generation, topic="old")
    desk.send_join(ids[0])
    desk.clock.advance(DAY)
    expire(desk)
    assert desk.committed(topic="old") == 5


def test_offsets_of_other_kinds_of_groups_do_not_expire_while_they_live(desk: Desk) -> None:
    ids, generation = desk.stable_group("x", protocol_type="connect", protocols=[("sessioned", b"\0")])
    desk.commit(5, member_id=ids[0], epoch=generation)
    desk.clock.advance(DAY)
    expire(desk)
    assert desk.committed() == 5


def test_a_consumer_group_keeps_what_it_reads(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.commit(5, member_id="m1", epoch=2)
    desk.commit(5, member_id="m1", epoch=2, topic="old")
    desk.clock.advance(DAY)
    expire(desk)
    assert (desk.committed(), desk.committed(topic="old")) == (5, None)


def test_a_retention_the_client_asked_for_is_kept(desk: Desk) -> None:
    desk.commit(5, retention_ms=1_000, version=2)
    desk.restart()
    desk.clock.advance(1_000)
    expire(desk)
    assert desk.committed() is None


# --- describing


def test_groups_are_described_in_all_states(desk: Desk) -> None:
    def described(version: int = 6) -> tuple[str, str, int, bytes]:
        one = describe_classic(desk.state, "g", version)
        return (
            one.group_state,
            one.protocol_data,
            len(one.members),
            bytes(one.members[0].member_assignment) if one.members else b"",
        )

    assert described() == ("Dead", "", 0, b"")
    assert describe_classic(desk.state, "g", 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe_classic(desk.state, "g", 5).error_code == ErrorCode.NONE
    welcome = desk.join()
    assert described() == ("CompletingRebalance", "", 1, b"")
    desk.sync(welcome.member_id, 1, {welcome.member_id: b"x"})
    assert described() == ("Stable", "range", 1, b"x")
    desk.new_member_id()
    desk.send_join(welcome.member_id)
    assert described()[0] == "PreparingRebalance"
    desk.leave((welcome.member_id, None))
    desk.wait(10_000)
    assert described() == ("Empty", "", 0, b"")


def test_a_consumer_group_is_described(desk: Desk) -> None:
    desk.beat("m1", 0)
    desk.beat("m2", 0)
    one = describe_consumer(desk.state, "g")
    assert (one.group_state, one.group_epoch, one.assignment_epoch, one.assignor_name) == (
        "Reconciling",
        3,
        3,
        "uniform",
    )
    first = one.members[0]
    assert (first.member_id, first.member_epoch, first.member_type) == ("m1", 2, 1)
    assert [(two.topic_name, list(two.partitions)) for two in first.assignment.topic_partitions] == [
        ("orders", [0, 1, 2, 3])
    ]
    assert [(two.topic_name, list(two.partitions)) for two in first.target_assignment.topic_partitions] == [
        ("orders", [0, 1])
    ]
    assert describe_classic(desk.state, "g", 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe_consumer(desk.state, "nowhere").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_state_and_type(desk: Desk) -> None:
    desk.beat("m1", 0, group="new")
    desk.commit(1, group="simple")
    assert [one.group_id for one in list_groups(desk.state, ["stable"], [])] == ["new"]
    assert [one.group_id for one in list_groups(desk.state, [], ["Classic"])] == ["simple"]
    assert list_groups(desk.state, ["none"], []) == []
    assert {one.group_id: one.protocol_type for one in list_groups(desk.state, [], [])} == {
        "new": "consumer",
        "simple": "",
    }
