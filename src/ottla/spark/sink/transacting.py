"""A transaction, again and again until it is committed or there is no use in it: its batches can be read again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from ottla.client.producing import TransactionalProducer, TransactionRefused
from ottla.client.retrying import Deadline
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, failure_in

_LASTING = (Failure.FENCED, Failure.SETTINGS, Failure.DATA)
_log = logging.getLogger("ottla.spark")


class Transacting:
    def __init__(
        self, producer: TransactionalProducer, *, timeout_ms: int, retry_timeout_s: float, too_long: str
    ) -> None:
        """`too_long`: what to do about a transaction that takes longer than any may."""
        self._producer = producer
        self._first_timeout_ms = self._timeout_ms = timeout_ms
        self._retry_timeout_s = retry_timeout_s
        self._too_long = too_long

    def run(self, transact: Callable[[], None], is_committed: Callable[[], bool]) -> None:
        """`transact` is one transaction from its beginning to its commit. If it fails, it is settled, and then
        `is_committed` says what became of it. Raises ProducerFenced when another writer has taken over, and OttlaError
        for what trying again does not change."""
        # The producer keeps the time that it has got; should that not do one day, it is another transaction's trouble.
        self._timeout_ms = self._first_timeout_ms
        deadline = Deadline(self._retry_timeout_s)
        while True:
            try:
                transact()
                return
            except (OttlaError, OSError) as error:
                if failure_in(error) in _LASTING:
                    self._abort_quietly()
                    raise
                self._settle(error)
                if is_committed():
                    return
                if failure_in(error) is Failure.EPOCH:
                    # The next one has twice the time, and may need all of it: what the cluster allows ends these.
                    deadline.moved()
                if not deadline.pause():
                    raise
                _log.warning("%s: %s Publishing it again.", self._producer.transactional_id, error)
            except BaseException:
                self._abort_quietly()
                raise

    def _settle(self, error: Exception) -> None:
        """Abort it. An unclear commit is decided by who coordinates it."""
        if failure_in(error) is not Failure.EPOCH:
            self._producer.abort()
            return
        # If it was the time-out, the next transaction has twice as long, up to what the cluster allows.
        before, self._timeout_ms = self._timeout_ms, 2 * self._timeout_ms
        self._producer.set_transaction_timeout(self._timeout_ms)
        try:
            self._producer.abort()
        except TransactionRefused as refused:
            self._timeout_ms = before
            self._producer.set_transaction_timeout(before)
            if refused.failure is not Failure.SETTINGS:
                raise
            self._abort_quietly()
            raise OttlaError(
                f"{error} The cluster allows no longer one: {self._too_long}, or raise its transaction.max.timeout.ms."
            ) from None

    def _abort_quietly(self) -> None:
        """The first error is the one to tell of; the next start aborts what could not be aborted now."""
        with suppress(OttlaError, OSError):
            self._producer.abort()
