"""One partition of `__transaction_state` at work: what its machine decides is an operation like any other
(`coordinator_shard.py`), and its markers are what follows when it is committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ottla.broker.coordinators.coordinator_log import CoordinatorLog
from ottla.broker.coordinators.coordinator_shard import COORDINATOR_ERRORS, CallLater, CoordinatorShard
from ottla.broker.coordinators.transactions.transaction_markers import Completion, MarkerWriter
from ottla.common.clock import Clock
from ottla.common.errors import ErrorCode
from ottla.common.result import Result, TimerKey
from ottla.protocol.codec import MalformedMessage
from ottla.transactions.coordinator import Decision, TransactionCoordinator
from ottla.transactions.transaction import Transaction, decode_key, decode_value

# The machine was told the time when it decided; its results need none.
_TOLD = -1


class TransactionShard(CoordinatorShard[TransactionCoordinator]):
    # After a full disk clients ask again here: it may have room by then.
    errors: ClassVar = {**COORDINATOR_ERRORS, ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.COORDINATOR_NOT_AVAILABLE}

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        log: CoordinatorLog,
        clock: Clock,
        call_later: CallLater,
        markers: MarkerWriter,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(coordinator, log, clock, call_later)
        self.coordinator = coordinator
        self.partition = log.partition
        self._markers = markers
        self._now_ms = now_ms
        # By transactional id: the decided transactions that are being completed.
        self.completing: dict[str, Completion] = {}
        # Those that are being aborted because they were open for too long: it may have to wait for a producer id.
        self.aborting: set[str] = set()

    def write(self, transaction: Transaction) -> Result:
        out = Result(_TOLD)
        out.records = [transaction]
        self.settle(out)
        return out

    def carry_out(self, decision: Decision) -> Result:
        out = Result(_TOLD)
        out.reply = decision.reply
        if decision.write is not None:
            out.records = [decision.write]
        if decision.markers is not None:
            out.after_commit(partial(self._markers.on_decided, self, decision.markers))
        self.settle(out)
        return out

    def fire(self, key: TimerKey, payload: Any) -> None:
        """A decision could not be committed in time."""
        self.complete(key[1])

    def complete(self, transactional_id: str) -> None:
        """Go on with what is decided and not complete, if it is not being done."""
        markers = self.coordinator.markers_of(transactional_id)
        if markers is not None and transactional_id not in self.completing:
            self.carry_out(Decision(markers=markers))

    # --- records

    def replay(self, record: Transaction, offset: int, producer_id: int) -> None:
        self.coordinator.apply(record)

    def replay_stored(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        transactional_id = decode_key(key)
        if transactional_id is None:
            return
        try:
            stored = None if value is None else decode_value(transactional_id, value)
        except ValueError as error:
            raise MalformedMessage(str(error)) from error
        self.coordinator.load(transactional_id, stored, self._now_ms())

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Nothing in this topic belongs to a transaction."""

    # --- life

    def begin_loading(self) -> None:
        super().begin_loading()
        self.coordinator.clear()

    def loaded(self) -> None:
        super().loaded()
        self._markers.finish_soon(self)

    def resign(self) -> None:
        """What waits in queues is given up."""
        super().resign()
        for completion in list(self.completing.values()):
            completion.close()
