"""Offsets in random schedules of commits, transactions, deletions of topics, failing disks, crashes and loads."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ottla.broker.coordinators.groups import group_shard
from ottla.broker.coordinators.groups.group_shard import GroupShard
from ottla.common.result import Result
from ottla.groups import offset_requests
from ottla.groups.offsets import CommittedOffset, OffsetStore
from ottla.groups.state import GroupState
from ottla.metadata.image import TopicImage
from tests.groups.sim.offsets import run_seed

BLOCK = 400


@pytest.mark.parametrize("block", range(2))
def test_whoever_asks_finds_the_offset_of_the_topic_of_today(block: int) -> None:
    asked = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        try:
            asked += run_seed(seed).asked_ever
        except Exception as error:
            raise AssertionError(f"replay with: python -m tests.groups.sim.offsets {seed}") from error
    assert asked > BLOCK


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2, 52))
def test_many_more_schedules(block: int) -> None:
    test_whoever_asks_finds_the_offset_of_the_topic_of_today(block)


# --- the simulation is worth something: what was wrong once is found out


def is_found_out() -> bool:
    for seed in range(BLOCK):
        try:
            run_seed(seed)
        except AssertionError:
            return True
    return False


def test_offsets_that_wait_for_a_transaction_and_survive_their_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    forget = offset_requests.forget_topic

    def careless(state: GroupState, *rest: object) -> None:
        held, state.offsets.pending = state.offsets.pending, {}
        forget(state, *rest)  # type: ignore[arg-type]
        state.offsets.pending = held

    monkeypatch.setattr(offset_requests, "forget_topic", careless)
    assert is_found_out()


def test_deletions_that_a_coordinator_misses_while_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    forget = GroupShard.forget_topics

    def careless(self: GroupShard, topics: Iterable[str]) -> None:
        if not self.state.is_loading:
            forget(self, topics)

    monkeypatch.setattr(GroupShard, "forget_topics", careless)
    assert is_found_out()


def test_deletions_before_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(topic: TopicImage | None, committed: CommittedOffset) -> bool:
        return True

    monkeypatch.setattr(group_shard, "_is_of", careless)
    assert is_found_out()


def test_tombstones_that_a_disk_did_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupShard, "_forget", _forget_once)
    assert is_found_out()


def _forget_once(self: GroupShard, topic: str) -> Result:
    out = self.begin()
    offset_requests.forget_topic(self.state, topic, self.state.forgetting.pop(topic), out)
    self.settle(out)
    return out


def test_answers_from_what_is_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: GroupShard, look: object) -> object:
        out = self.begin()
        out.reply, out.error = look(self.state), 0  # type: ignore[operator, assignment]
        return out

    monkeypatch.setattr(GroupShard, "read", careless)
    assert is_found_out()


def test_a_marker_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetStore, "end_transaction", lambda *_, **__: None)
    assert is_found_out()
