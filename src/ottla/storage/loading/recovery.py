"""After a stop that was not clean: which batches behind the recovery point are whole, and where the log ends.

Below the recovery point everything was synced: batches there are walked by their headers, never truncated, and what is
damaged or gone is reported, and what is left stays for whoever can save it. Where the first such hole begins is noted:
a replica of which there are others must neither lead nor be in sync with what lies behind it, and gives it up as soon
as it follows (`broker/cluster/emptied_replicas.py`), while the only copy goes on. From the recovery point on every CRC
is checked, and the log is cut at the first batch that is not whole, as in Kafka, with everything behind it: a power cut
may have kept later pages and later segments and lost earlier ones, and no reader gets past the hole. A segment that is
missing altogether, or ends too early with a whole batch, is such a hole, too: a replica that kept what follows would
never fetch what it lacks. What compaction leaves out is not taken for one: it removes nothing above the recovery point
that the checkpoint file names (`broker/chores/cleaning.py`), and records that come from a compacted leader with gaps
lie in segments that follow each other without (`LogWriter.roll`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ottla.records.batch import LOG_OVERHEAD, NO_TIMESTAMP, BatchHeader
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_dirs.refusals import PASSING
from ottla.storage.segments.batch_scan import BrokenChain, Trail, scan_batches, scan_headers
from ottla.storage.segments.indexes import INT32_MAX, CorruptIndex
from ottla.storage.segments.segment import Segment

logger = logging.getLogger(__name__)


class Recovery:
    """One log's recovery: `end_offset`, `damage` and `hole` are its outcome."""

    def __init__(
        self,
        segments: list[Segment],
        recovery_point: int,
        epochs: LeaderEpochs,
        *,
        whole_from: int | None,
        is_compacted: bool = False,
    ) -> None:
        """From `whole_from` on segments follow each other without a gap; None: they need not. Where the log is
        compacted they need not below the recovery point."""
        self._segments = segments
        self._whole_from = whole_from
        self._is_compacted = is_compacted
        self._recovery_point = recovery_point
        self._epochs = epochs
        self.end_offset = segments[0].base_offset
        self.damage: list[str] = []
        # Where the first records are missing that were synced.
        self.hole: int | None = None
        # From here on batches were walked, and whether one of them had a producer id.
        self.start_offset: int | None = None
        self.saw_producers = False
        # Of the batch that was walked last.
        self._last_epoch = -1

    def run(self, first: int) -> None:
        """Go through the segments from the first-th on; of the ones before only the ends are looked at."""
        for number in range(first):
            self._find_missing(self._segments[number].next_offset(), self._segments[number + 1])
            self._segments[number].release()  # there may be thousands
        for number in range(first, len(self._segments)):
            segment = self._segments[number]
            if number > first:
                self._find_missing(self.end_offset, segment)
            if number > first and self._is_behind_a_hole(segment):
                self._drop_behind(number - 1, "where a segment is missing")
                break
            if number > first and self._overlaps(segment) and not self._takes_over(segment, self._segments[number - 1]):
                self._drop_behind(number - 1, "which were cut off before")
                break
            self.end_offset = max(self.end_offset, segment.base_offset)
            if not self._recover(segment, is_last=number + 1 == len(self._segments)):
                self._drop_behind(number, "where a batch is not whole")
                break
        self._drop_empty_leftover()
        for segment in self._segments:
            if segment.hole is not None and segment.hole < self._recovery_point:
                self._note_hole(segment.hole)

    def _find_missing(self, end: int, following: Segment) -> None:
        """Whether records that were synced are missing where one segment ends at `end` and the next one follows."""
        if self._is_compacted or end >= self._recovery_point:
            return
        missing = self._missing_between(end, following)
        if missing is not None:
            self._note_hole(missing)
            self._report(following, f"offsets {missing} to {following.base_offset - 1} before it are missing")

    def _missing_between(self, end: int, following: Segment) -> int | None:
        """The first offset that should be there and is not; what was deleted, or left out by compaction, need not."""
        if self._whole_from is None:
            return None
        missing = max(end, self._whole_from)
        # Offsets that no segment can hold together were never written together.
        return missing if 0 < following.base_offset - missing <= INT32_MAX else None

    def _note_hole(self, offset: int) -> None:
        self.hole = offset if self.hole is None else min(self.hole, offset)

    def _is_behind_a_hole(self, segment: Segment) -> bool:
        """Of records that were not synced. What was synced and is gone, or was deleted, is no reason to give up what
        follows."""
        if self.end_offset < self._recovery_point:
            return False
        return self._missing_between(self.end_offset, segment) is not None

    def _overlaps(self, segment: Segment) -> bool:
        """A truncation takes the end of a segment and the segments behind it. Until that is synced a power cut gives
        back one or the other, beside what was written in its place."""
        return segment.size > 0 and self._recovery_point <= segment.base_offset < self.end_offset

    def _takes_over(self, segment: Segment, before: Segment) -> bool:
        """Whether this segment was begun after the one before was cut back: its leader is not older, and none of a
        log that went another way. Then the cut is made again."""
        try:
            _, header = next(scan_headers(segment.file().fd, 0, segment.size))
        except BrokenChain:
            return False
        if header.leader_epoch < self._last_epoch:
            return False
        logger.warning(
            "%s in %s: cutting off what the next segment has from offset %d on",
            before,
            before.directory,
            segment.base_offset,
        )
        before.truncate_to(segment.base_offset)
        before.disk.fsync(before.file().fd)
        _finish(before)
        self.end_offset = segment.base_offset
        self._epochs.truncate_from_end(self.end_offset)
        return True

    def _recover(self, segment: Segment, *, is_last: bool) -> bool:
        """False when the log ends here, whatever follows."""
        file_size = segment.size
        position = self._trusted_position(segment)
        valid_end = position
        for at, header in self._whole_batches(segment, position, file_size):
            size = header.length + LOG_OVERHEAD
            last_offset = header.base_offset + header.last_offset_delta
            segment.note_batch(at, size, last_offset, header.max_timestamp)
            self._last_epoch = header.leader_epoch
            if header.leader_epoch > self._epochs.latest:
                self._epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self.saw_producers = True
            if self.start_offset is None:
                self.start_offset = header.base_offset
            self.end_offset = last_offset + 1
            valid_end = at + size
        segment.size = valid_end
        # Whoever wrote them before may not have synced them.
        segment.offsets.unsynced = segment.times.unsynced = True
        is_cut = valid_end < file_size and self._cut_tail(segment, file_size - valid_end)
        if not is_last:
            _finish(segment)
        return not is_cut

    def _trusted_position(self, segment: Segment) -> int:
        """Where to begin: the last index entry below the recovery point if it holds, else the start."""
        if self._recovery_point > segment.base_offset:
            try:
                segment.offsets.truncate_to(self._recovery_point)
                segment.times.truncate_to(self._recovery_point)
                indexed, position = segment.offsets.last()
                if position and segment.begins_batch(position, indexed):
                    segment.max_timestamp, segment.max_timestamp_offset = _largest_timestamp(segment, position)
                    return position
            except (CorruptIndex, BrokenChain) as error:
                logger.warning("%s: %s; making the indexes again", segment, error)
        segment.forget_batches()
        return 0

    def _whole_batches(self, segment: Segment, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        fd, trail = segment.file().fd, Trail(segment.base_offset)
        synced = segment.base_offset < self._recovery_point
        while position < end:
            try:
                for at, header in (scan_headers if synced else scan_batches)(fd, position, end, trail.previous):
                    if synced and header.base_offset >= self._recovery_point:
                        break
                    yield at, header
                    trail.passed(at, header.base_offset + header.last_offset_delta)
                    position = at + header.length + LOG_OVERHEAD
                synced = False
            except BrokenChain as broken:
                found = trail.resume(fd, broken.position, end) if synced else None
                if trail.previous + 1 >= self._recovery_point:
                    return
                if synced:
                    self._note_hole(trail.previous + 1)
                if found is None:
                    return
                self._report(segment, f"{broken}; valid batches follow at {found}")
                position = found

    def _cut_tail(self, segment: Segment, size: int) -> bool:
        if self.end_offset < self._recovery_point:
            # These bytes were synced once: they stay in the file for whoever can save them; new records go elsewhere.
            self._report(
                segment, f"{size} bytes at the end are damaged, below the recovery point {self._recovery_point}"
            )
            return False
        logger.warning(
            "%s in %s: cutting off %d bytes at offset %d, where a batch is not whole",
            segment,
            segment.directory,
            size,
            self.end_offset,
        )
        segment.disk.ftruncate(segment.file().fd, segment.size)
        # Everything up to here may be synced already: no flush would make the cut durable.
        segment.disk.fsync(segment.file().fd)
        return True

    def _drop_behind(self, number: int, why: str) -> None:
        last, dropped = self._segments[number], self._segments[number + 1 :]
        if not dropped:
            return
        logger.error(
            "%s: dropping %d segments of %d bytes behind offset %d, %s",
            last.directory,
            len(dropped),
            sum(segment.size for segment in dropped),
            self.end_offset,
            why,
        )
        for segment in dropped:
            self._remove(segment)
        # Or a power cut brings them back beside what is appended in their place.
        last.disk.fsync_path(last.directory)
        del self._segments[number + 1 :]

    def _remove(self, segment: Segment) -> None:
        segment.release()
        for path in segment.paths():
            try:
                segment.disk.unlink(path)
            except FileNotFoundError:
                continue

    def _report(self, segment: Segment, message: str) -> None:
        logger.error("%s in %s: %s", segment, segment.directory, message)
        self.damage.append(f"{segment}: {message}")

    def _drop_empty_leftover(self) -> None:
        """A roll that failed half-way leaves an empty segment at an offset that the one before went past."""
        while len(self._segments) > 1:
            last = self._segments[-1]
            before = self._segments[-2]
            if last.size or before.next_offset() <= last.base_offset:
                return
            self._remove(last)
            self._segments.pop()
            self.end_offset = before.next_offset()


def _finish(segment: Segment) -> None:
    """Without room for its indexes they stay in memory: the next flush writes them, and reading needs no file."""
    try:
        segment.finish()
    except OSError as error:
        if error.errno not in PASSING:
            raise
        logger.warning("%s in %s: its indexes are not written now: %s", segment, segment.directory, error.strerror)


def _largest_timestamp(segment: Segment, last: int) -> tuple[int, int]:
    """(timestamp, last offset of its batch) of the batches up to the one at position `last`. The last time entry has
    it, unless the file lacks later ones: of the active segment it is not synced. Raises CorruptIndex when the entry is
    wrong."""
    timestamp, offset = segment.times.last()
    is_confirmed = timestamp == NO_TIMESTAMP
    start = 0 if is_confirmed else segment.offsets.lookup(offset)[1]
    for position, header in scan_headers(segment.file().fd, start, segment.size):
        if position > last:
            break
        if header.base_offset <= offset <= header.last_offset and header.max_timestamp == timestamp:
            is_confirmed = True
        elif header.max_timestamp > timestamp:
            timestamp, offset = header.max_timestamp, header.last_offset
    if not is_confirmed:
        raise CorruptIndex(f"{segment.times.name} names a timestamp that is not there")
    return timestamp, offset
