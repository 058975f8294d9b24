"""What transactions leave in a log: producer state replayed from batches, and the aborted ones in the index."""

from __future__ import annotations

import logging
import os
from bisect import bisect_left
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from ottla.records.batch import CONTROL_BIT, BatchHeader
from ottla.records.compression import DecompressionError
from ottla.records.record import CorruptRecords
from ottla.storage.log_dirs.refusals import PASSING
from ottla.storage.producers.producer_state import BATCHES_KEPT, Batch, EndMarker, ProducerState, read_marker
from ottla.storage.segments.indexes import CorruptIndex
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.txn_index import AbortedTxn

if TYPE_CHECKING:
    from ottla.storage.log_writer import LogWriter
    from ottla.storage.producers.producer_snapshot_files import SnapshotFiles

logger = logging.getLogger(__name__)

_LAST_OFFSET = attrgetter("last_offset")
# Of (producer id, first offset).
_FIRST_OFFSET = itemgetter(1)
# How far back a producer's history is looked for when a snapshot brought back only its last batch.
_HISTORY_BYTES = 16 * 1024 * 1024


def record_batch(
    log: LogWriter, segment: Segment, header: tuple[Any, ...], marker: EndMarker | None, now_ms: int
) -> None:
    """A batch with a producer id was appended: update the producer state and, of a marker, the index of aborted
    transactions, which is in memory (`aborted_in`)."""
    aborted = _apply(log.producers, header, marker, now_ms)
    if aborted is not None:
        segment.txns.append(aborted)


def replay_batch(producers: ProducerState, fd: int, position: int, header: BatchHeader) -> AbortedTxn | None:
    """Account for a batch that is in the file; gives the transaction that it aborts."""
    if header.producer_id < 0:
        return None
    marker = None
    if header.is_control and header.record_count == 0:
        producers.record_emptied_marker(header)
        return None
    if header.is_control:
        try:
            marker = read_marker(os.pread(fd, header.size, position))
        except (CorruptRecords, DecompressionError):
            marker = None
        if marker is None:
            return None
    # How long ago it was appended is not known: what the batch says is the best guess.
    return _apply(producers, header, marker, header.max_timestamp)


def _apply(
    producers: ProducerState, header: tuple[Any, ...], marker: EndMarker | None, now_ms: int
) -> AbortedTxn | None:
    if marker is None:
        if not header[5] & CONTROL_BIT:
            producers.record(header, header[0], now_ms)
        return None
    done = producers.record_marker(header, marker, now_ms)
    if done is None or not done.aborted:
        return None
    return AbortedTxn(done.producer_id, done.first_offset, done.last_offset, producers.stable_after(done))


def load_producers(
    producers: ProducerState,
    snapshots: SnapshotFiles,
    segments: list[Segment],
    upper: int,
    now_ms: int,
    index_from: int | None = None,
    replay_until: int | None = None,
) -> None:
    """Bring `producers` to what it was when the log ended at `upper`: the nearest snapshot, then batch headers.

    After a stop that was not clean `index_from` is the recovery point. Snapshots above it are gone by now, and the
    transaction indexes of segments that reach beyond it cannot be trusted beyond it: both are made again. From
    `replay_until` on no batch is known to have a producer: there is nothing to replay.
    """
    found = snapshots.latest(upper)
    if found is not None:
        producers.restore(found[1], found[0], now_ms)
    else:
        producers.restore((), segments[0].base_offset, now_ms)
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        ends = upper if is_last else segments[number + 1].base_offset
        aborted: list[AbortedTxn] = []
        if index_from is not None and producers.end_offset < segment.base_offset:
            snapshots.write(segment.base_offset, producers.snapshot_entries())
        if ends > producers.end_offset and segment.base_offset < upper:
            aborted = _replay_segment(producers, segment, upper if replay_until is None else replay_until)
        # The last one also when it ends with the recovery point: its index may name what a crash has cut off.
        if index_from is not None and (is_last or ends > index_from):
            _complete_txn_index(segment, producers.end_offset, aborted)
    producers.end_offset = upper


def _replay_segment(producers: ProducerState, segment: Segment, upper: int) -> list[AbortedTxn]:
    if not segment.size or segment.base_offset >= upper or producers.end_offset >= upper:
        return []
    fd = segment.file().fd
    aborted: list[AbortedTxn] = []
    for position, header in segment.headers_from(producers.end_offset):
        if header.base_offset >= upper:
            break
        if header.base_offset >= producers.end_offset:
            entry = replay_batch(producers, fd, position, header)
            if entry is not None:
                aborted.append(entry)
    return aborted


def _complete_txn_index(segment: Segment, replayed_from: int, aborted: list[AbortedTxn]) -> None:
    """Entries of the part that was replayed are known; the ones before are in the file or have to be found later."""
    written: list[AbortedTxn] | None = None
    try:
        written = list(segment.aborted_transactions())
    except CorruptIndex:
        segment.txns.discard()
        if replayed_from > segment.base_offset:
            return
    complete = [*(entry for entry in written or () if entry.last_offset < replayed_from), *aborted]
    if complete != written:
        segment.txns.replace(complete)
    elif complete:
        segment.txns.unsynced = True


def rebuild_txn_index(log: LogWriter, segment: Segment) -> None:
    """Make the index of aborted transactions again, from the batches of the segment."""
    logger.warning("%s: making the transaction index of segment %d again", log.name, segment.base_offset)
    producers = ProducerState(log.name)
    load_producers(producers, log.snapshots, log.segments, segment.base_offset, 0)
    fd = segment.file().fd
    aborted = [replay_batch(producers, fd, position, header) for position, header in segment.headers()]
    entries = [entry for entry in aborted if entry is not None]
    try:
        segment.txns.replace_for_good(entries)
    except OSError as error:
        if error.errno not in PASSING:
            raise
        # They are known until the log is closed, which writes them, or else the next start makes them again.
        log.owner.disk_refused(log, error)


def aborted_in(log: LogWriter, segment: Segment) -> list[AbortedTxn]:
    """The index of aborted transactions of this segment, made again if need be. Raises OSError."""
    try:
        return segment.aborted_transactions()
    except CorruptIndex:
        rebuild_txn_index(log, segment)
        return segment.txns.entries()


def aborted_between(log: LogWriter, start: int, upper: int) -> list[tuple[int, int]]:
    """In the order in which they began. The index has them in the order in which they ended, as has Kafka's answer;
    kafkajs takes them one by one as it reads and would show what belongs to one that began early and ended late."""
    found: list[tuple[int, int]] = []
    for segment in log.segments[log.segment_number(start) :]:
        entries = aborted_in(log, segment)
        for entry in entries[bisect_left(entries, start, key=_LAST_OFFSET) :]:
            if entry.first_offset < upper:
                found.append((entry.producer_id, entry.first_offset))
            # Whatever is aborted later began at or above this offset.
            if entry.last_stable_offset >= upper:
                return sorted(found, key=_FIRST_OFFSET)
    return sorted(found, key=_FIRST_OFFSET)


def refill_history(log: LogWriter, producer_id: int) -> bool:
    """Find the batches before the last one of a producer that a snapshot brought back; False when there is nothing to
    add. Five requests may have been on the way when the broker stopped, and all five may come again."""
    entry = log.producers.entries.get(producer_id)
    if entry is None or not entry.partial:
        return False
    entry.partial = False
    last_offset = entry.batches[-1][1]
    history: list[Batch] = []
    budget = _HISTORY_BYTES
    for segment in reversed(log.segments):
        if segment.base_offset > last_offset or not segment.size:
            continue
        start = segment.index_position_before(max(segment.size - budget, 0))
        history = [*_batches_of(segment, start, producer_id, entry.epoch, last_offset), *history]
        budget -= segment.size - start
        if len(history) >= BATCHES_KEPT or budget <= 0:
            break
    if len(history) <= len(entry.batches) or history[-1][1] != last_offset:
        return False
    entry.batches.extend(history)
    return True


def _batches_of(segment: Segment, start: int, producer_id: int, epoch: int, last_offset: int) -> list[Batch]:
    found: list[Batch] = []
    for _, header in segment.headers(start):
        if header.base_offset > last_offset:
            break
        if header.producer_id == producer_id and header.producer_epoch == epoch and not header.is_control:
            found.append((header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp))
    return found
