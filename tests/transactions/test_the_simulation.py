"""The simulation is worth something: a coordinator that is broken in one place is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.transactions import coordinator as module
from ottla.transactions.coordinator import Decision, Markers, ProducerIdentity, TransactionCoordinator
from ottla.transactions.states import IllegalTransition
from ottla.transactions.transaction import Transaction
from tests.transactions import simulation

SEEDS = 400


class NoNewEpoch(TransactionCoordinator):
    """A second instance gets the epoch of the first."""

    def _next_identity(self, known: Transaction, *rest: Any) -> Decision:
        decision = super()._next_identity(known, *rest)
        assert decision.write is not None
        same = decision.write._replace(producer_id=known.producer_id, producer_epoch=known.producer_epoch)
        return Decision(ProducerIdentity(known.producer_id, known.producer_epoch), same)


class NoVerification(TransactionCoordinator):
    """Whatever comes is let into a partition."""

    def verify(self, *_: Any) -> None:
        return


class NoCompletion(TransactionCoordinator):
    """What was decided before a crash is forgotten."""

    def unfinished(self) -> list[Markers]:
        return []


class NoTimeout(TransactionCoordinator):
    """A client that dies leaves its transaction open."""

    def overdue(self, now_ms: int) -> list[str]:
        return []


class OtherDecision(TransactionCoordinator):
    """A commit that was decided before a crash becomes an abort after it."""

    def load(self, transactional_id: str, transaction: Transaction | None, now_ms: int) -> None:
        if transaction is not None and transaction.state is module.TxnState.PREPARE_COMMIT:
            transaction = transaction._replace(state=module.TxnState.PREPARE_ABORT)
        super().load(transactional_id, transaction, now_ms)


class NoEpochAfterAbort(TransactionCoordinator):
    """A transaction is aborted for its client, who keeps its epoch (KAFKA-6119)."""

    def _abort(self, known: Transaction, new_producer_id: Callable[[], int], now_ms: int) -> Decision:
        return replace(module._prepare(known, False, 0, -1, now_ms), reply=None)


def found_out() -> bool:
    for seed in range(SEEDS):
        try:
            simulation.run(seed)
        except (AssertionError, KeyError, IllegalTransition):
            return True
    return False


@pytest.mark.parametrize(
    "broken", [NoNewEpoch, NoVerification, NoCompletion, NoTimeout, OtherDecision, NoEpochAfterAbort]
)
def test_a_broken_coordinator_is_found_out(
    broken: type[TransactionCoordinator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation.System, "make_coordinator", broken)
    assert found_out()


def test_a_missing_check_of_the_epoch_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(known: Transaction | None, producer_id: int, epoch: int) -> Transaction:
        if known is None or known.producer_id != producer_id:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    monkeypatch.setattr(module, "_checked", careless)
    assert found_out()


def test_the_coordinator_as_it_is_passes() -> None:
    assert not found_out()
