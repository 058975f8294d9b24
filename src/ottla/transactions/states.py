"""The states of a transactional id, under Kafka's numbers, and which may follow which."""

from __future__ import annotations

from enum import IntEnum


class TxnState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    # Kafka knows a seventh, PrepareEpochFence, that is never written; here fencing and aborting are one step.

    @property
    def text(self) -> str:
        """As Kafka's tools show it."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def is_decided(self) -> bool:
        """The outcome is in the log; what is missing are markers."""
        return self in (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)

    @property
    def is_between(self) -> bool:
        """No transaction is open."""
        return self in (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)


_S = TxnState

# From each state to those that may follow it. A prepared outcome is final: only its own completion may come.
LEGAL: dict[TxnState, frozenset[TxnState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.DEAD: frozenset(),
}


class IllegalTransition(RuntimeError):
    """A bug: the machine must never get here."""
