"""What compaction must know of transactions while it walks a log: whose data is aborted, which markers may go.

Everything below the first uncleanable offset is decided, so the aborted transactions (from the `.txnindex` files) tell
data that can go at once from data that was committed. The state is carried from segment to segment (KAFKA-8351): a
transaction's data and its marker may stand in different ones. A marker stays until no batch of its transaction is left,
and then for delete.retention.ms more, so that a reader who saw the data also sees how it ended (KIP-534).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ottla.records.batch import TRANSACTIONAL_BIT, BatchHeader
from ottla.storage.producers.producer_state import EndMarker
from ottla.storage.segments.txn_index import AbortedTxn


class TransactionWalk:
    """Feed it the batches in order. `retained` gathers the entries for the transaction index of the new segment."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._upcoming = sorted(aborted, key=attrgetter("first_offset"), reverse=True)
        # Producer -> its aborted transaction under way, and whether a batch of it was seen.
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()
        self.retained: list[AbortedTxn] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether this batch of data belongs to an aborted transaction."""
        if not header.attributes & TRANSACTIONAL_BIT:
            return False
        self._begin_up_to(header.last_offset)
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def marker_is_done(self, header: BatchHeader, marker: EndMarker | None) -> bool:
        """Whether nothing that is left of its transaction needs this marker. None: its record is gone already."""
        self._begin_up_to(header.last_offset)
        if header.record_count == 0:
            return True
        if marker is None:  # another kind of control record, which is none of our business
            return False
        producer_id = header.producer_id
        if marker.commit:
            done = producer_id not in self._committed
            self._committed.discard(producer_id)
            return done
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.retained.append(transaction)
        return False

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            transaction = upcoming.pop()
            self._aborted.setdefault(transaction.producer_id, transaction)

    def take_retained(self) -> list[AbortedTxn]:
        taken, self.retained = self.retained, []
        return taken
