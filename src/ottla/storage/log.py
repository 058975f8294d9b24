"""The log of one partition: a row of segments, appended at the end (`log_writer.py`), read anywhere (`log_reader.py`).
Here is what it is asked beside its records, what leaves it, and how its life ends. Used from one thread only."""

from __future__ import annotations

from pathlib import Path

from ottla.storage import retention
from ottla.storage.flushing.log_flush import FlushFuture
from ottla.storage.log_dirs.refusals import PASSING
from ottla.storage.log_writer import LogWriter
from ottla.storage.producers import log_transactions
from ottla.storage.segments import timestamps
from ottla.storage.segments.segment import Segment

# A producer snapshot is taken inside a segment after this much.
_SNAPSHOT_BYTES = 16 * 1024 * 1024


class Log(LogWriter):
    __slots__ = ()

    # -- asking --

    @property
    def last_stable_offset(self) -> int:
        """First offset of the first undecided transaction, else the high watermark. Never below the log start: the
        beginning of a transaction may have been deleted."""
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return max(self.log_start_offset, min(unstable, self.high_watermark))

    def aborted_transactions(self, start: int, upper: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that a reader of [start, upper) must filter."""
        try:
            return log_transactions.aborted_between(self, start, upper)
        except OSError as error:
            raise self._disk_error(error) from error

    def offset_for_timestamp(self, timestamp: int) -> timestamps.TimestampOffset | None:
        """The first record with this timestamp or a later one, however long it takes to find."""
        return timestamps.at_once(timestamps.find_by_timestamp(self, timestamp, timestamps.HERE))

    def max_timestamp(self) -> timestamps.TimestampOffset | None:
        """The first record that has the largest timestamp of the log."""
        return timestamps.at_once(timestamps.find_max_timestamp(self, timestamps.HERE))

    def snapshot_producers(self) -> None:
        """Now and then, so that a recovery that begins late in a large segment need not replay all of it."""
        if self._active.size - self._snapshot_position >= _SNAPSHOT_BYTES and self._refusal is None:
            self._take_snapshot(self.log_end_offset)
            self._snapshot_position = self._active.size

    # -- taking away --

    def delete_records(self, offset: int) -> int:
        """Move the start of the log; -1 means the high watermark. Gives the new start."""
        return retention.delete_records(self, offset)

    def delete_old_segments(self, now_ms: int) -> int:
        """What retention.ms, retention.bytes and the log start allow to go; returns how many segments went."""
        return retention.delete_old_segments(self, now_ms)

    def set_log_start(self, offset: int) -> None:
        """Never beyond the high watermark, never back: the callers see to that."""
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self._forget_positions()

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop everything at and above `offset`: a follower whose log went another way. Raises ApiError; it is to be
        tried again then, unless the disk is given up."""
        try:
            retention.truncate_to(self, offset, now_ms)
        except OSError as error:
            raise self._disk_error(error) from error

    def hide_behind_hole(self) -> None:
        """Readers are given nothing of it, until a leader has told how far this log is committed."""
        if self.hole is not None:
            self.high_watermark = min(self.high_watermark, self.hole)

    def lead_with_hole(self) -> None:
        """What is left is the partition from now on, and others copy it as it is. Followed by somebody else later, it
        must not be cut there while it counts as in sync: what was committed meanwhile lies behind."""
        self.hole = None

    def cut_at_hole(self, now_ms: int) -> None:
        """Give up what lies behind records that are missing, because others have all of it."""
        if self.hole is None:
            return
        if self.hole <= self.log_start_offset:
            # What is left before it was deleted, and need not be whole.
            self.restart_at(self.hole, now_ms)
        else:
            self.truncate_to(self.hole, now_ms)
        self.hole = None

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Drop everything and go on at `offset`: a follower whose leader has deleted what comes next. Raises
        ApiError."""
        try:
            retention.restart_at(self, offset, now_ms)
        except OSError as error:
            raise self._disk_error(error) from error

    def cut_back(self, segments: list[Segment], end_offset: int) -> None:
        """These segments remain, and the log ends at `end_offset`: the bookkeeping of a truncation."""
        self.segments[:] = segments
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
        if self.hole is not None and end_offset <= self.hole:
            self.hole = None
        # Also when nothing else is cut: an epoch may have begun exactly at the end.
        self.leader_epochs.truncate_from_end(end_offset)
        self._flushing.truncated(end_offset)
        if end_offset < self.cleaned_offset:
            # What is appended there from now on is not clean (KAFKA-3330).
            self.cleaned_offset = end_offset
            self.owner.checkpoint_cleaned(self)
        self.folder_changed()
        self._activate(segments[-1])

    # -- life --

    def release_idle(self) -> None:
        """Give back the files of segments that nobody read since the last time."""
        for segment in self.segments[:-1]:
            if not segment.used:
                segment.finish()  # an index that was made again reaches the disk
                segment.release()
            segment.used = False

    def moved_to(self, directory: Path) -> None:
        """The folder has another name; open files stay valid."""
        self.dir = directory
        for segment in self.segments:
            segment.moved_to(directory)
        self.leader_epochs.moved_to(directory)
        self.snapshots.moved_to(directory)

    def prepare_close(self) -> FlushFuture:
        """Begin with what `close` has to do, so that many logs are synced at the same time."""
        self._finish_files()
        return self.flush_async()

    def close(self, *, keep_files: bool = True) -> None:
        """Bring everything to disk, so that the next start reads no batches, and let go of the files.

        With `keep_files=False` the folder is about to go: nothing is written."""
        if keep_files and self._refusal is None:
            self.bring_to_disk()
        for segment in self.segments:
            segment.release()
        self.fail("the log is closed")

    def bring_to_disk(self) -> None:
        """All that a start after a clean stop looks at. The log stays in use."""
        try:
            self._finish_files()
            self.flush()
        finally:
            self._flushing.closing = False

    def _finish_files(self) -> None:
        self._flushing.closing = True
        self._take_snapshot(self.log_end_offset)
        for segment in self.segments:
            try:
                segment.finish()
            except OSError as error:
                if error.errno not in PASSING:
                    raise
                segment.give_up_indexes()
