"""The rules of a leader, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.common.errors import ErrorCode
from ottla.metadata.image import PartitionImage, initial_partition
from ottla.replication.leader import UNKNOWN, IsrState, LeaderState

LAG_MS = 1_000
THREE = initial_partition((1, 2, 3))


def leader(image: PartitionImage = THREE, *, epoch_start: int = 0, min_insync: int = 1) -> LeaderState:
    return LeaderState(1, image, epoch_start, min_insync, now_ms=0)


def fetch(state: LeaderState, replica: int, offset: int, *, end: int = 100, now_ms: int = 0, epoch: int = 7) -> bool:
    return state.on_fetch(replica, epoch, offset, 0, end, now_ms)


@pytest.mark.parametrize(
    ("isr", "min_insync", "fetched", "own_end", "watermark"),
    [
        ((1, 2, 3), 1, {}, 10, UNKNOWN),
        ((1, 2, 3), 1, {2: 10}, 10, UNKNOWN),
        ((1, 2, 3), 1, {2: 10, 3: 4}, 10, 4),
        ((1, 2, 3), 1, {2: 10, 3: 10}, 10, 10),
        # The leader's own end counts as well: it may have to flush first.
        ((1, 2, 3), 1, {2: 10, 3: 10}, 6, 6),
        ((1, 2), 1, {2: 10, 3: 4}, 10, 10),
        ((1,), 1, {}, 10, 10),
        # Nothing is committed while too few are in sync (KIP-966).
        ((1,), 2, {}, 10, UNKNOWN),
        ((1, 2), 2, {2: 10}, 10, 10),
    ],
)
def test_the_watermark_waits_for_those_in_sync(
    isr: tuple[int, ...], min_insync: int, fetched: dict[int, int], own_end: int, watermark: int
) -> None:
    state = leader(replace(THREE, isr=isr), min_insync=min_insync)
    for replica, offset in fetched.items():
        fetch(state, replica, offset)
    assert state.high_watermark(own_end) == watermark


def test_a_fetch_says_whether_the_watermark_may_move() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    assert fetch(state, 2, 10) and not fetch(state, 3, 10)


def test_the_watermark_waits_for_old_and_new_members_while_a_change_is_on_its_way() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 2, 10)
    fetch(state, 3, 5)
    assert state.high_watermark(10) == 10
    state.propose({1, 2, 3})
    assert state.high_watermark(10) == 5
    state.on_refused(ErrorCode.INELIGIBLE_REPLICA, state.partition_epoch)
    assert state.high_watermark(10) == 10
    state.propose({1})
    assert state.high_watermark(12) == 10, "who is to leave is waited for until it has left"
    assert state.on_accepted((1,), 1)
    assert state.high_watermark(12) == 12


@pytest.mark.parametrize(
    ("end_offset", "watermark", "epoch_start", "may_join"),
    [(9, 10, 0, False), (10, 10, 0, True), (10, 10, 11, False), (11, 10, 11, True), (10, 10, 10, True)],
)
def test_who_joins_has_what_is_committed_and_what_the_epoch_began_with(
    end_offset: int, watermark: int, epoch_start: int, may_join: bool
) -> None:
    state = leader(replace(THREE, isr=(1, 2)), epoch_start=epoch_start)
    fetch(state, 3, end_offset)
    assert state.may_join(3, watermark) is may_join
    state.propose({1, 2, 3})
    assert not state.may_join(3, watermark), "one change at a time"


def test_nobody_in_sync_joins_again() -> None:
    state = leader()
    fetch(state, 2, 100)
    assert not state.may_join(2, 0)


@pytest.mark.parametrize(
    ("fetches", "now_ms", "lagging"),
    [
        # (when, offset, where the leader's log ended)
        ([], LAG_MS, set()),
        ([], LAG_MS + 1, {2}),
        ([(0, 50, 100)], LAG_MS + 1, {2}),
        ([(500, 100, 100)], LAG_MS + 500, set()),
        # At the end of the log nobody lags, however long ago it fetched.
        ([(0, 100, 100)], 50 * LAG_MS, set()),
        # It has always what was there when it last asked: as far behind as one fetch takes.
        ([(500, 40, 50), (900, 50, 80), (1_300, 80, 100)], LAG_MS + 900, set()),
        ([(500, 40, 50), (900, 50, 80), (1_300, 80, 100)], LAG_MS + 901, {2}),
        ([(500, 40, 50), (900, 49, 80), (1_300, 79, 100)], LAG_MS + 1, {2}),
    ],
)
def test_who_has_not_had_everything_for_too_long_lags(
    fetches: list[tuple[int, int, int]], now_ms: int, lagging: set[int]
) -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    for at_ms, offset, end in fetches:
        fetch(state, 2, offset, end=end, now_ms=at_ms)
    assert state.lagging(100, now_ms, LAG_MS) == lagging


def test_an_idle_partition_that_is_written_to_counts_from_the_last_fetch() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 2, 100, end=100, now_ms=0)
    state.had_everything(2, 50_000)
    assert state.lagging(101, 50_000 + LAG_MS, LAG_MS) == set()
    assert state.lagging(101, 50_001 + LAG_MS, LAG_MS) == {2}


def test_a_lagging_member_is_not_told_while_a_change_is_on_its_way() -> None:
    state = leader()
    assert state.lagging(100, LAG_MS + 1, LAG_MS) == {2, 3}
    state.propose({1, 3})
    assert state.lagging(100, LAG_MS + 1, LAG_MS) == set()


def test_the_watermark_waits_for_one_who_is_about_to_join_and_not_for_ever() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 2, 100)
    fetch(state, 3, 90, end=100, now_ms=10)
    state.consider_joining(3, 100, 10, LAG_MS)
    assert state.joining == set(), "it was never at the end"
    fetch(state, 3, 100, end=110, now_ms=20)
    state.consider_joining(3, 110, 20, LAG_MS)
    assert state.joining == {3}
    fetch(state, 2, 110)
    assert state.high_watermark(110) == 100
    assert not state.drop_stragglers(110, 10 + LAG_MS, LAG_MS)
    assert state.drop_stragglers(110, 11 + LAG_MS, LAG_MS)
    assert state.high_watermark(110) == 110


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, IsrState.COMMITTED),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, IsrState.COMMITTED),
        # It may be that the same proposal was accepted before, and its answer lost.
        (ErrorCode.INVALID_UPDATE_VERSION, IsrState.UNCERTAIN),
        (ErrorCode.FENCED_LEADER_EPOCH, IsrState.UNCERTAIN),
        (ErrorCode.NEW_LEADER_ELECTED, IsrState.UNCERTAIN),
        (ErrorCode.UNKNOWN_TOPIC_ID, IsrState.UNCERTAIN),
        (ErrorCode.INVALID_REQUEST, IsrState.UNCERTAIN),
        (ErrorCode.NOT_CONTROLLER, IsrState.PROPOSED),
        (ErrorCode.UNKNOWN_SERVER_ERROR, IsrState.PROPOSED),
        (ErrorCode.REQUEST_TIMED_OUT, IsrState.PROPOSED),
    ],
)
def test_what_a_refusal_means(code: ErrorCode, after: IsrState) -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 3, 5)
    state.propose({1, 2, 3})
    state.on_refused(code, state.partition_epoch)
    assert state.state is after
    is_waited_for = after is not IsrState.COMMITTED
    fetch(state, 2, 10)
    assert state.high_watermark(10) == (5 if is_waited_for else 10)
    if after is IsrState.UNCERTAIN:
        assert state.on_image(replace(THREE, partition_epoch=4), 0)
        assert (state.state, state.isr) == (IsrState.COMMITTED, {1, 2, 3})


def test_answers_and_images_in_any_order() -> None:
    state = leader(replace(THREE, isr=(1, 2), partition_epoch=3))
    state.propose({1, 2, 3})
    assert state.on_image(replace(THREE, partition_epoch=5, isr=(1, 3)), 0)
    assert not state.on_accepted((1, 2, 3), 4), "older than what we know"
    assert state.isr == {1, 3}
    assert not state.on_image(replace(THREE, partition_epoch=5), 0)
    assert not state.on_image(replace(THREE, partition_epoch=4), 0)
    state.propose({1})
    state.on_refused(ErrorCode.INELIGIBLE_REPLICA, 3)
    assert state.state is IsrState.PROPOSED, "that was the answer to an older one"
    assert state.on_accepted((1,), 6)
    assert not state.on_image(replace(THREE, partition_epoch=6, isr=(1,)), 0)
    assert (state.isr, state.partition_epoch, state.state) == ({1}, 6, IsrState.COMMITTED)


def test_a_proposal_names_the_registrations_that_fetched() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 3, 5, epoch=9)
    state.propose({1, 2, 3})
    assert state.proposal() == [(1, UNKNOWN), (2, UNKNOWN), (3, 9)]


def test_another_registration_has_not_caught_up_by_what_the_one_before_had() -> None:
    state = leader(replace(THREE, isr=(1, 2)))
    fetch(state, 3, 40, end=50, now_ms=10, epoch=1)
    fetch(state, 3, 60, end=100, now_ms=20, epoch=2)
    assert not state.followers[3].is_caught_up(100, 20 + LAG_MS, LAG_MS)


def test_replicas_come_and_go() -> None:
    state = leader(replace(THREE, isr=(1, 2, 3)))
    fetch(state, 2, 10)
    state.on_image(replace(THREE, partition_epoch=1, replicas=(1, 2, 4), isr=(1, 2)), 5)
    assert set(state.followers) == {2, 4}
    assert state.followers[2].end_offset == 10
    assert state.high_watermark(10) == 10
    assert state.lagging(100, LAG_MS * 3, LAG_MS) == {2}


def test_the_low_watermark_is_that_of_the_live_replicas() -> None:
    state = leader()
    state.on_fetch(2, 7, 100, 5, 100, 0)
    assert state.low_watermark(20, lambda replica: replica == 2) == 5
    assert state.low_watermark(20, lambda replica: True) == UNKNOWN
    assert state.low_watermark(20, lambda replica: False) == 20
