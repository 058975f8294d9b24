"""The coordinator of the transactional ids of one `__transaction_state` partition.

Theory of operation. A request is answered with a `Decision`: a new value of one transactional id to append to the log,
a reply, and markers to write. The broker appends the record and calls `apply` (`transaction_shard.py`), writes the
markers when it is committed and comes back with `markers_written` (`transaction_markers.py`). So the outcome of a
transaction is in the log (PREPARE_*) before any marker is written, and after a crash whatever was decided is finished
from there.

Epochs (KIP-360, KIP-890): a new instance gets a higher epoch, which fences the older one; with transactions v2 every
transaction ends with a bump, so a late message of an earlier transaction can never join a later one. Aborting on behalf
of a client (time-out, new instance) bumps too (KAFKA-6119). The last epoch of a producer id is never given out: whoever
comes so far gets a new producer id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.transactions.states import LEGAL, IllegalTransition, TxnState
from ottla.transactions.transaction import EPOCH_MAX, NO_EPOCH, NO_PRODUCER, Transaction

V2 = 2  # the transaction version from which each transaction ends with a new epoch
_CLASSIC = 0

NewProducerId = Callable[[], int]


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
    # The protocol of the transaction: from 2 on the marker has a later epoch than the records.
    version: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Append `write` if there is one; then `markers` if there are any. `reply` holds as soon as `write` is safe."""

    reply: ProducerIdentity | None = None
    write: Transaction | None = None
    markers: Markers | None = None


class TransactionCoordinator:
    def __init__(self, *, timeout_ms_max: int, id_expiration_ms: int, version: int = V2) -> None:
        self.timeout_ms_max = timeout_ms_max
        self.id_expiration_ms = id_expiration_ms
        # The finalized transaction.version: how a transaction ends that its client does not end itself.
        self.version = version
        self._transactions: dict[str, Transaction] = {}

    # --- state

    def apply(self, transaction: Transaction) -> None:
        """Take over a value that is in the log. The only way state changes, live and when loading."""
        before = self._transactions.get(transaction.transactional_id)
        if before is not None and transaction.state not in LEGAL[before.state] and before != transaction:
            raise IllegalTransition(f"{before.state.text} may not become {transaction.state.text}")
        if transaction.state is TxnState.DEAD:
            self._transactions.pop(transaction.transactional_id, None)
        else:
            self._transactions[transaction.transactional_id] = transaction

    def clear(self) -> None:
        """As before the first record."""
        self._transactions.clear()

    def load(self, transactional_id: str, transaction: Transaction | None, now_ms: int) -> None:
        """As `apply`, while reading a log that may be compacted: states may be missing between two records. Nothing
        began in the future; a clock that was set back meanwhile must not keep a transaction open for that long."""
        if transaction is None or transaction.state is TxnState.DEAD:
            self._transactions.pop(transactional_id, None)
        elif transaction.started_ms > now_ms:
            self._transactions[transactional_id] = transaction._replace(started_ms=now_ms)
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
        new_producer_id: NewProducerId,
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
            producer_id = new_producer_id()
            made = Transaction(
                transactional_id, producer_id, 0, timeout_ms, updated_ms=now_ms, previous_producer_id=producer_id
            )
            return Decision(ProducerIdentity(producer_id, 0), made)
        if known.state.is_decided:
            raise _busy()
        if expected is not None:
            _check_expected(known, expected)
        if known.state is TxnState.ONGOING:
            return self._abort(known, new_producer_id, now_ms)
        return self._next_identity(known, timeout_ms, expected, new_producer_id, now_ms)

    def _next_identity(
        self,
        known: Transaction,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        new_producer_id: NewProducerId,
        now_ms: int,
    ) -> Decision:
        producer_id, epoch, last_epoch = known.producer_id, known.producer_epoch, known.last_epoch
        is_repeated = expected is not None and expected.epoch != known.producer_epoch
        if known.is_epoch_exhausted:
            last_epoch = epoch if expected is not None else NO_EPOCH
            producer_id, epoch = new_producer_id(), 0
        elif not is_repeated:
            last_epoch = epoch if expected is not None else NO_EPOCH
            epoch += 1
        # Else the answer to the first time was lost, or its own transaction was aborted just now: bumped already.
        fresh = known._replace(
            state=TxnState.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            previous_producer_id=known.producer_id,
            next_producer_id=NO_PRODUCER,
            partitions=(),
            timeout_ms=timeout_ms,
            started_ms=-1,
            updated_ms=now_ms,
        )
        return Decision(ProducerIdentity(producer_id, epoch), fresh)

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
        known = self._transactions.get(transactional_id)
        if known is not None and known.state.is_decided:
            # Before the identity is looked at: the client may hold the next one, which takes effect in a moment.
            raise _busy()
        known = _checked(known, producer_id, epoch)
        is_open = known.state is TxnState.ONGOING
        merged = known.with_partitions(partitions) if is_open else tuple(sorted(set(partitions)))
        if is_open and merged == known.partitions:
            return Decision()
        write = known._replace(
            state=TxnState.ONGOING,
            partitions=merged,
            previous_producer_id=known.producer_id,
            started_ms=known.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )
        return Decision(write=write)

    def verify(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> None:
        """Is this partition part of the open transaction? Asked before the first append of a client that adds its
        partitions itself: a late or forged write must not leave a hanging transaction (KIP-890)."""
        known = _checked(self._transactions.get(transactional_id), producer_id, epoch)
        if known.state.is_decided:
            raise _busy()
        if partition not in known.partitions:
            raise ApiError(ErrorCode.TRANSACTION_ABORTABLE)

    # --- ending

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        client_version: int,
        new_producer_id: NewProducerId,
        now_ms: int,
    ) -> Decision:
        known = self._transactions.get(transactional_id)
        if client_version >= V2:
            return self._end_v2(known, producer_id, epoch, commit, client_version, new_producer_id, now_ms)
        known = _checked(known, producer_id, epoch)
        if known.state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT):
            return Decision(ProducerIdentity(known.producer_id, known.producer_epoch))
        if known.state is (TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT):
            raise _busy()
        if known.state is not TxnState.ONGOING:
            raise _wrong_end(known, commit)
        return _prepare(known, commit, client_version, NO_PRODUCER, now_ms)

    def _end_v2(
        self,
        known: Transaction | None,
        producer_id: int,
        epoch: int,
        commit: bool,
        client_version: int,
        new_producer_id: NewProducerId,
        now_ms: int,
    ) -> Decision:
        """The same request twice has the same epoch, but what it ended has the next one; so a repetition is told from
        the end of the next transaction. An abort of nothing is allowed: the client wants the epoch."""
        if known is not None and known.state.is_decided:
            raise _busy()
        if known is None or not (known.producer_id == producer_id or known.is_successor_of(producer_id, epoch)):
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.was_ended_at(producer_id, epoch):
            if known.state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT):
                return Decision(ProducerIdentity(known.producer_id, known.producer_epoch))
            raise _wrong_end(known, commit)
        if known.producer_epoch != epoch:
            raise _fenced(epoch)
        if commit and known.state is not TxnState.ONGOING:
            raise _wrong_end(known, commit)
        next_id = new_producer_id() if known.is_epoch_exhausted else NO_PRODUCER
        return _prepare(known, commit, client_version, next_id, now_ms)

    def _abort(self, known: Transaction, new_producer_id: NewProducerId, now_ms: int) -> Decision:
        """Without an EndTxn, so with a new epoch: whoever holds the old one is shut out. With transactions v2 the
        owner is told apart from a zombie by it and may go on."""
        if self.version >= V2:
            next_id = new_producer_id() if known.is_epoch_exhausted else NO_PRODUCER
            decision = _prepare(known, False, V2, next_id, now_ms)
        else:
            fenced = known._replace(producer_epoch=min(known.producer_epoch + 1, EPOCH_MAX), last_epoch=NO_EPOCH)
            decision = _prepare(fenced, False, _CLASSIC, NO_PRODUCER, now_ms)
        return replace(decision, reply=None)

    def markers_written(self, transactional_id: str, now_ms: int) -> Transaction:
        """All markers are in their logs: the transaction is over once this is written down."""
        known = self._transactions[transactional_id]
        done = TxnState.COMPLETE_COMMIT if known.state is TxnState.PREPARE_COMMIT else TxnState.COMPLETE_ABORT
        producer_id, epoch = known.identity_after_end
        return known._replace(
            state=done,
            producer_id=producer_id,
            producer_epoch=epoch,
            previous_producer_id=known.producer_id,
            next_producer_id=NO_PRODUCER,
            partitions=(),
            updated_ms=now_ms,
        )

    # --- time

    def unfinished(self) -> list[Markers]:
        """Decided transactions whose markers must be written (again), after loading or a failed write."""
        return [_markers(transaction) for transaction in self._transactions.values() if transaction.state.is_decided]

    def markers_of(self, transactional_id: str) -> Markers | None:
        """Those of one id, if its transaction is decided and not complete."""
        known = self._transactions.get(transactional_id)
        return _markers(known) if known is not None and known.state.is_decided else None

    def overdue(self, now_ms: int) -> list[str]:
        """The ids whose transaction has been open longer than their clients asked for."""
        return [name for name, transaction in self._transactions.items() if _is_overdue(transaction, now_ms)]

    def abort_overdue(self, transactional_id: str, new_producer_id: NewProducerId, now_ms: int) -> Decision:
        known = self._transactions.get(transactional_id)
        if known is None or not _is_overdue(known, now_ms):
            return Decision()  # ended while we came here
        return self._abort(known, new_producer_id, now_ms)

    def unused(self, now_ms: int) -> list[Transaction]:
        """To be written: transactional ids that nobody used for `transactional.id.expiration.ms` are forgotten."""
        return [
            transaction._replace(state=TxnState.DEAD, partitions=())
            for transaction in self._transactions.values()
            if transaction.state.is_between and now_ms - transaction.updated_ms >= self.id_expiration_ms
        ]


def _is_overdue(transaction: Transaction, now_ms: int) -> bool:
    return transaction.state is TxnState.ONGOING and now_ms - transaction.started_ms > transaction.timeout_ms


def _prepare(known: Transaction, commit: bool, client_version: int, next_id: int, now_ms: int) -> Decision:
    """The decision itself. With transactions v2 it takes the next epoch, and a new producer id when epochs run out."""
    is_open, bump = known.state is TxnState.ONGOING, client_version >= V2
    write = known._replace(
        state=TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT,
        producer_epoch=min(known.producer_epoch + 1, EPOCH_MAX) if bump else known.producer_epoch,
        last_epoch=known.producer_epoch if bump else known.last_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=next_id,
        partitions=known.partitions if is_open else (),
        started_ms=known.started_ms if is_open else now_ms,
        client_version=client_version,
        updated_ms=now_ms,
    )
    return Decision(ProducerIdentity(*write.identity_after_end), write, _markers(write))


def _markers(transaction: Transaction) -> Markers:
    return Markers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state is TxnState.PREPARE_COMMIT,
        transaction.partitions,
        transaction.client_version,
    )


# --- checks


def _checked(known: Transaction | None, producer_id: int, epoch: int) -> Transaction:
    """Whoever asks is the current holder: the exact epoch, not just a recent one (KAFKA-9600)."""
    if known is None or known.producer_id != producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != epoch:
        raise _fenced(epoch)
    return known


def _check_expected(known: Transaction, expected: ProducerIdentity) -> None:
    """KIP-360: the producer id and epoch of the request must be the current ones, or those of a lost answer."""
    if expected.producer_id == known.producer_id:
        if expected.epoch in (known.producer_epoch, known.last_epoch):
            return
    elif known.is_successor_of(expected.producer_id, expected.epoch) and expected.epoch == known.last_epoch:
        return
    raise _fenced(expected.epoch)


def _fenced(epoch: int) -> ApiError:
    return ApiError(ErrorCode.PRODUCER_FENCED, f"epoch {epoch} is not the current one")


def _busy() -> ApiError:
    return ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is still being completed")


def _wrong_end(known: Transaction, commit: bool) -> ApiError:
    verb = "committed" if commit else "aborted"
    return ApiError(ErrorCode.INVALID_TXN_STATE, f"a transaction in state {known.state.text} cannot be {verb}")
