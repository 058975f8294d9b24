"""One partition of `__transaction_state` at work: the machine that decides, and the log that remembers."""

from __future__ import annotations

from ottla.broker.coordinators.transaction_log import TransactionLog
from ottla.broker.coordinators.transaction_markers import Completion, MarkerWriter
from ottla.common.errors import ApiError, ErrorCode
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.transaction import Transaction


class TransactionShard:
    def __init__(self, coordinator: TransactionCoordinator, log_: TransactionLog, markers: MarkerWriter) -> None:
        self.coordinator = coordinator
        self.log = log_
        self._markers = markers
        self.is_loading = True
        self.has_resigned = False
        # By transactional id: the decided transactions that are being completed.
        self.completing: dict[str, Completion] = {}

    def write(self, transaction: Transaction) -> None:
        """Raises ApiError when it cannot be written; then nothing has changed."""
        if self.has_resigned:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        self.log.append(transaction, self.coordinator.version)
        self.coordinator.apply(transaction)

    def begin_loading(self) -> None:
        self.coordinator.clear()

    def loaded(self) -> None:
        self.is_loading = False
        self._markers.finish_soon(self)

    def resign(self) -> None:
        """The partition is not ours any more: what waits in queues is given up."""
        self.has_resigned = True
        for completion in list(self.completing.values()):
            completion.close()
