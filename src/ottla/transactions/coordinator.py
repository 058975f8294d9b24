"""The coordinator of the transactional ids of one `__transaction_state` partition.

Theory of operation. A request is answered with a `Decision`: a reply at once, or a new value of one transactional id
to append to the log, and what follows when it is there. The runtime appends the record, calls `apply`, writes the
markers if there are any and comes back with `markers_written`. So the outcome of a transaction is in the log
(PREPARE_*) before any marker is written, and after a crash whatever was decided is finished from there.

Epochs (KIP-360, KIP-890): a new instance gets a higher epoch, which fences the older one; with transactions v2 every
transaction ends with a bump, so a late message of an earlier transaction can never join a later one. Aborting on behalf
of a client (time-out, new instance) bumps too (KAFKA-6119).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.transactions.states import TxnState, check_transition
from ottla.transactions.transaction import EPOCH_MAX, NO_EPOCH, NO_PRODUCER, Transaction

V2 = 2  # the client's transaction version from which epochs are bumped at the end of each transaction


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """What InitProducerId and EndTxn v5 answer."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Markers:
    """Write `commit` or abort markers to these partitions, then call `markers_written`."""

    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    partitions: tuple[TopicPartition, ...]
    client_version: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Append `write` if there is one; then `markers` if there are any; then `reply`."""

    reply: ProducerIdentity | None = None
    write: Transaction | None = None
    markers: Markers | None = None


def _fenced(what: str) -> ApiError:
    return ApiError(ErrorCode.PRODUCER_FENCED, what)


class TransactionCoordinator:
    def __init__(self, *, timeout_ms_max: int, id_expiration_ms: int) -> None:
        self.timeout_ms_max = timeout_ms_max
        self.id_expiration_ms = id_expiration_ms
        self._transactions: dict[str, Transaction] = {}

    # --- state

    def apply(self, transaction: Transaction) -> None:
        """Take over a value that is in the log. The only way state changes, live and when loading."""
        before = self._transactions.get(transaction.transactional_id)
        if before is not None and before != transaction:
            check_transition(before.state, transaction.state)
        if transaction.state is TxnState.DEAD:
            self._transactions.pop(transaction.transactional_id, None)
        else:
            self._transactions[transaction.transactional_id] = transaction

    def load(self, transactional_id: str, transaction: Transaction | None) -> None:
        """As `apply`, while reading a log that may be compacted: states may be missing between two records."""
        if transaction is None or transaction.state is TxnState.DEAD:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = transaction

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._transactions.values()))

    def __len__(self) -> int:
        return len(self._transactions)

    # --- InitProducerId

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: Callable[[], int],
        now_ms: int,
    ) -> Decision:
        """A new instance begins (`expected` is None) or one that met an error goes on under a new epoch (KIP-360).

        A transaction that is open is aborted first: the decision then has no reply, and the same request is decided
        again when its markers are written."""
        if not 0 < timeout_ms <= self.timeout_ms_max:
            raise ApiError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms is {timeout_ms}; it is at least 1 and at most {self.timeout_ms_max},"
                " the broker's transaction.max.timeout.ms",
            )
        known = self._transactions.get(transactional_id)
        if known is None:
            made = Transaction(transactional_id, new_producer_id(), 0, timeout_ms, updated_ms=now_ms)
            return Decision(ProducerIdentity(made.producer_id, 0), made)
        if expected is not None:
            _check_expected(known, expected)
        if known.state.is_decided:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is still being completed")
        if known.state is TxnState.ONGOING:
            return self._abort_for(known, now_ms, by_owner=expected is not None)
        return self._next_identity(known, timeout_ms, expected, new_producer_id, now_ms)

    def _next_identity(
        self,
        known: Transaction,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: Callable[[], int],
        now_ms: int,
    ) -> Decision:
        fresh = replace(
            known,
            state=TxnState.EMPTY,
            partitions=(),
            timeout_ms=timeout_ms,
            started_ms=-1,
            updated_ms=now_ms,
            next_producer_id=NO_PRODUCER,
        )
        behind = expected is not None and expected.epoch != known.producer_epoch
        if behind and not known.is_epoch_exhausted:
            # A repetition whose first answer was lost, or its own transaction was aborted just now: bumped already.
            return Decision(ProducerIdentity(known.producer_id, known.producer_epoch), fresh)
        last_epoch = known.producer_epoch if expected is not None else NO_EPOCH
        if known.is_epoch_exhausted:
            fresh = replace(
                fresh,
                producer_id=new_producer_id(),
                producer_epoch=0,
                last_epoch=last_epoch,
                previous_producer_id=known.producer_id if expected is not None else NO_PRODUCER,
            )
        else:
            fresh = replace(
                fresh,
                producer_epoch=known.producer_epoch + 1,
                last_epoch=last_epoch,
                previous_producer_id=NO_PRODUCER,
            )
        return Decision(ProducerIdentity(fresh.producer_id, fresh.producer_epoch), fresh)

    def _abort_for(self, known: Transaction, now_ms: int, *, by_owner: bool = False) -> Decision:
        """Abort without an EndTxn. The bump shuts out the instance that had the transaction open, unless it is that
        instance which asks."""
        write = replace(
            known,
            state=TxnState.PREPARE_ABORT,
            producer_epoch=min(known.producer_epoch + 1, EPOCH_MAX),
            last_epoch=known.producer_epoch if by_owner else NO_EPOCH,
            next_producer_id=NO_PRODUCER,
            # The bump has happened; completing must not bump again.
            client_version=min(known.client_version, V2 - 1),
            updated_ms=now_ms,
        )
        return Decision(write=write, markers=_markers(write))

    # --- adding partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> Decision:
        known = self._known(transactional_id, producer_id)
        _check_epoch(known, epoch)
        if known.state.is_decided:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is still being completed")
        open_ = known.state is TxnState.ONGOING
        merged = known.with_partitions(partitions) if open_ else tuple(sorted(set(partitions)))
        if open_ and merged == known.partitions:
            return Decision()
        write = replace(
            known,
            state=TxnState.ONGOING,
            partitions=merged,
            started_ms=known.started_ms if open_ else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )
        return Decision(write=write)

    def verify(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> None:
        """Is this partition part of the open transaction? Asked before the first append of a client that adds its
        partitions itself: a late or forged write must not leave a hanging transaction (KIP-890)."""
        known = self._known(transactional_id, producer_id)
        _check_epoch(known, epoch)
        if known.state.is_decided:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is still being completed")
        if known.state is not TxnState.ONGOING or partition not in known.partitions:
            raise ApiError(ErrorCode.INVALID_TXN_STATE, f"{partition} is not part of an open transaction")

    # --- ending

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        client_version: int,
        new_producer_id: Callable[[], int],
        now_ms: int,
    ) -> Decision:
        if client_version >= V2:
            return self._end_v2(transactional_id, producer_id, epoch, commit, client_version, new_producer_id, now_ms)
        known = self._known(transactional_id, producer_id)
        _check_epoch(known, epoch)
        done = TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT
        if known.state is done:
            return Decision(ProducerIdentity(known.producer_id, known.producer_epoch))
        self._check_can_end(known, commit)
        return self._prepare(known, commit, client_version, NO_PRODUCER, now_ms, bump=False)

    def _end_v2(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        client_version: int,
        new_producer_id: Callable[[], int],
        now_ms: int,
    ) -> Decision:
        known = self._transactions.get(transactional_id)
        overflowed = (
            known is not None
            and known.previous_producer_id == producer_id
            and known.producer_epoch == 0
            and epoch == EPOCH_MAX - 1
        )
        if known is None or (known.producer_id != producer_id and not overflowed):
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        state = known.state
        # Only the end of a v2 transaction bumps by its client's will; any other bump was to shut that client out.
        repeated = overflowed or (
            known.producer_epoch == epoch + 1
            and known.client_version >= V2
            and state not in (TxnState.EMPTY, TxnState.ONGOING)
        )
        if not repeated and (known.producer_epoch != epoch or state.is_decided):
            raise _fenced(f"epoch {epoch} is not the current one")
        if repeated and state.is_decided:
            self._check_can_end(known, commit)
        if repeated:
            if state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT):
                return Decision(ProducerIdentity(known.producer_id, known.producer_epoch))
            raise _wrong_end(known, commit)
        if state is not TxnState.ONGOING and commit:
            raise _wrong_end(known, commit)
        # An abort with nothing in it is allowed: it still ends with a bump, which is what the client wants.
        next_id = new_producer_id() if known.is_epoch_exhausted else NO_PRODUCER
        return self._prepare(known, commit, client_version, next_id, now_ms, bump=True)

    def _check_can_end(self, known: Transaction, commit: bool) -> None:
        if known.state is (TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT):
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is still being completed")
        if known.state is not TxnState.ONGOING:
            raise _wrong_end(known, commit)

    def _prepare(
        self, known: Transaction, commit: bool, client_version: int, next_id: int, now_ms: int, *, bump: bool
    ) -> Decision:
        write = replace(
            known,
            state=TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT,
            producer_epoch=known.producer_epoch + 1 if bump else known.producer_epoch,
            last_epoch=known.producer_epoch if bump else known.last_epoch,
            next_producer_id=next_id,
            partitions=known.partitions if known.state is TxnState.ONGOING else (),
            started_ms=known.started_ms if known.state is TxnState.ONGOING else now_ms,
            client_version=client_version,
            updated_ms=now_ms,
        )
        return Decision(write=write, markers=_markers(write))

    def markers_written(self, transactional_id: str, now_ms: int) -> Decision:
        """All markers are in their logs: the transaction is over."""
        known = self._transactions[transactional_id]
        done = TxnState.COMPLETE_COMMIT if known.state is TxnState.PREPARE_COMMIT else TxnState.COMPLETE_ABORT
        write = replace(known, state=done, partitions=(), updated_ms=now_ms)
        if known.next_producer_id != NO_PRODUCER:
            write = replace(
                write,
                producer_id=known.next_producer_id,
                producer_epoch=0,
                previous_producer_id=known.producer_id,
                last_epoch=EPOCH_MAX - 1,
                next_producer_id=NO_PRODUCER,
            )
        return Decision(ProducerIdentity(write.producer_id, write.producer_epoch), write)

    # --- time

    def unfinished(self) -> list[Markers]:
        """Decided transactions whose markers must be written (again), after loading or a failed write."""
        return [_markers(one) for one in self._transactions.values() if one.state.is_decided]

    def abort_overdue(self, now_ms: int) -> list[Decision]:
        """What has been open longer than the time-out its client asked for."""
        return [
            self._abort_for(one, now_ms)
            for one in self._transactions.values()
            if one.state is TxnState.ONGOING and now_ms - one.started_ms > one.timeout_ms
        ]

    def forget_unused(self, now_ms: int) -> list[Decision]:
        """Transactional ids that nobody used for `transactional.id.expiration.ms`."""
        return [
            Decision(write=replace(one, state=TxnState.DEAD, partitions=()))
            for one in self._transactions.values()
            if one.state.is_between and now_ms - one.updated_ms > self.id_expiration_ms
        ]

    # --- checks

    def _known(self, transactional_id: str, producer_id: int) -> Transaction:
        known = self._transactions.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known


def _markers(transaction: Transaction) -> Markers:
    return Markers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state is TxnState.PREPARE_COMMIT,
        transaction.partitions,
        transaction.client_version,
    )


def _check_epoch(known: Transaction, epoch: int) -> None:
    """The exact epoch, not just a recent one (KAFKA-9600)."""
    if epoch != known.producer_epoch:
        raise _fenced(f"epoch {epoch} is not the current one")


def _check_expected(known: Transaction, expected: ProducerIdentity) -> None:
    """KIP-360: the producer id and epoch of the request must be the current ones, or those of a lost answer."""
    if expected.producer_id == known.producer_id:
        if expected.epoch in (known.producer_epoch, known.last_epoch):
            return
    elif expected.producer_id == known.previous_producer_id and expected.epoch == known.last_epoch:
        return
    raise _fenced("another instance has taken over this transactional id")


def _wrong_end(known: Transaction, commit: bool) -> ApiError:
    verb = "committed" if commit else "aborted"
    return ApiError(ErrorCode.INVALID_TXN_STATE, f"a transaction in state {known.state.text} cannot be {verb}")
