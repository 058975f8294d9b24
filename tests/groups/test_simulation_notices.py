"""The simulation is worth something only if it fails when the machines are wrong: here they are, on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.coordinators.groups import group_shard as shard
from ottla.groups import classic_rebalance, classic_sync, consumer_update, reconcile
from ottla.groups.classic_group import ClassicGroup, ClassicMember
from ottla.groups.consumer_group import ConsumerGroup
from ottla.groups.offsets import OffsetStore
from tests.groups.sim.world import run_seed

SEEDS = 300


def _hand_out_what_others_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "owner", lambda *_: None)


def _take_silence_for_letting_go(patch: pytest.MonkeyPatch) -> None:
    real = reconcile._owns_any
    patch.setattr(reconcile, "_owns_any", lambda owned, held: owned is not None and real(owned, held))


def _accept_any_generation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "check_commit", lambda *_, **__: None)


def _accept_any_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "check_commit", lambda *_, **__: None)


def _answer_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    real = shard.GroupShard.settle

    def settle(self: Any, out: Any) -> None:
        real_log, self.log = self.log, _Hasty(self.log)
        try:
            real(self, out)
        finally:
            self.log = real_log

    patch.setattr(shard.GroupShard, "settle", settle)


class _Hasty:
    def __init__(self, log: Any) -> None:
        self._log = log

    def append(self, *arguments: Any) -> Any:
        return self._log.append(*arguments)

    def when_committed(self, done: Any) -> None:
        done(None)


def _forget_to_answer_those_who_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_rebalance, "answer_syncs", lambda *_: None)
    patch.setattr(classic_sync, "answer_syncs", lambda *_: None)


def _let_sessions_run_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicMember, "is_kept_alive", property(lambda self: True))


def _lose_commits_in_replay(patch: pytest.MonkeyPatch) -> None:
    real = OffsetStore._put

    def put(self: Any, group: str, topic: str, partition: int, committed: Any) -> None:
        if partition != 1:
            real(self, group, topic, partition, committed)

    patch.setattr(OffsetStore, "_put", put)


def _change_state_without_a_record(patch: pytest.MonkeyPatch) -> None:
    real = consumer_update.Update.write_epoch

    def write_epoch(self: Any, is_bump: bool) -> None:
        real(self, is_bump)
        if is_bump:
            self.group.epoch += 1

    patch.setattr(consumer_update.Update, "write_epoch", write_epoch)


MISTAKES: list[Callable[[pytest.MonkeyPatch], None]] = [
    _hand_out_what_others_hold,
    _take_silence_for_letting_go,
    _accept_any_generation,
    _accept_any_epoch,
    _answer_before_it_is_durable,
    _forget_to_answer_those_who_wait,
    _let_sessions_run_for_ever,
    _lose_commits_in_replay,
    _change_state_without_a_record,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.__name__.strip("_"))
def test_a_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None]) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(SEEDS):
            run_seed(seed)
