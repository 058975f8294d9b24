"""A log against a list: whatever is done to both, they agree, also over restarts and crashes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.compression import Codec
from ottla.records.record import iterate_batches, read_records
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.indexes import CorruptIndex
from tests.storage.batches import NOW_MS, batch, open_log, read_all, slice_bytes

VALUES = st.lists(st.binary(max_size=60), min_size=1, max_size=4)
STAMPS = st.integers(NOW_MS - 1000, NOW_MS + 5000)


class LogAgainstList(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([300, 1000, 1 << 20]),
        index_interval=st.sampled_from([0, 100, 400, 4096]),
        index_bytes=st.sampled_from([48, 1 << 20]),
    )
    def open(self, segment_bytes: int, index_interval: int, index_bytes: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.config = LogConfig(
            segment_bytes=max(segment_bytes, 1000),
            index_interval_bytes=index_interval,
            segment_index_bytes=index_bytes,
            segment_ms=3000,
            retention_ms=-1,
        )
        self.log = open_log(Path(self.folder.name), self.config)
        # (offset, value, timestamp) of each record, and where batches end.
        self.records: list[tuple[int, bytes, int]] = []
        self.ends = [0]
        self.start = 0
        self.synced = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @property
    def end(self) -> int:
        return self.ends[-1]

    @rule(batches=st.lists(st.tuples(VALUES, STAMPS, st.sampled_from(list(Codec))), min_size=1, max_size=3))
    def append(self, batches: list[tuple[list[bytes], int, Codec]]) -> None:
        data = b"".join(bytes(batch(*values, timestamp=stamp, codec=codec)) for values, stamp, codec in batches)
        if len(data) > self.config.segment_bytes:
            return
        result = self.log.append(data, leader_epoch=0, now_ms=NOW_MS)
        assert result.base_offset == self.end
        for values, stamp, _ in batches:
            self.records += [(self.end + n, value, stamp) for n, value in enumerate(values)]
            self.ends.append(self.end + len(values))
        assert result.last_offset == self.end - 1
        self.log.high_watermark = self.end

    @rule(data=st.data(), max_bytes=st.integers(0, 500), min_one=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, min_one: bool) -> None:
        offset = data.draw(st.integers(self.start - 1, self.end + 1))
        upper = data.draw(st.sampled_from(self.ends))
        if not self.start <= offset <= self.end:
            with pytest.raises(ApiError) as caught:
                self.log.read(offset, max_bytes, upper_offset=upper, min_one=min_one)
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            return
        piece = self.log.read(offset, max_bytes, upper_offset=upper, min_one=min_one)
        raw = slice_bytes(piece)
        assert len(raw) == piece.size
        whole = list(iterate_batches(raw))
        if offset >= upper:
            assert not raw
            return
        if min_one:
            assert whole and whole[0][1].base_offset <= offset <= whole[0][1].last_offset
            assert piece.size <= max(max_bytes, whole[0][1].size)
        else:
            assert piece.size <= max_bytes
            assert bool(whole) == bool(raw), "the first batch is never cut"
        found = [(one.offset, one.value) for at, _ in whole for one in read_records(raw, at)]
        expected = {n: value for n, value, _ in self.records if n < upper}
        assert all(expected.get(n, value) == value and n < upper for n, value in found if n >= self.start)

    @rule(stamp=STAMPS)
    def find_by_time(self, stamp: int) -> None:
        found = self.log.offset_for_timestamp(stamp)
        expected = next(((n, at) for n, _, at in self.records if at >= stamp and n >= self.start), None)
        assert (None if found is None else (found.offset, found.timestamp)) == expected

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        self.start = max(self.start, offset)
        assert self.log.delete_records(offset) == self.start
        self.log.delete_old_segments(NOW_MS)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(self.ends))
        if offset < self.log.segments[0].base_offset or offset < self.start:
            return
        self.log.truncate_to(offset, NOW_MS)
        self.ends = [one for one in self.ends if one <= offset] or [offset]
        self.records = [one for one in self.records if one[0] < offset]
        self.synced = min(self.synced, offset)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.synced = self.end

    @rule(clean=st.booleans(), release=st.booleans())
    def restart(self, clean: bool, release: bool) -> None:
        point = self.log.recovery_point
        if clean:
            self.log.close()
            point = self.end
        self.log = open_log(
            Path(self.folder.name), self.config, clean=clean, recovery_point=point, log_start_offset=self.start
        )
        self.log.high_watermark = self.end
        if release:
            for segment in self.log.segments[:-1]:
                segment.release()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.synced <= self.log.recovery_point <= self.end
        paths = [segment.path(".log") for segment in self.log.segments]
        assert self.log.size_bytes == sum(path.stat().st_size for path in paths if path.exists())

    @invariant()
    def read_everything(self) -> None:
        if hasattr(self, "log"):
            try:
                assert read_all(self.log) == [(n, value) for n, value, _ in self.records if n >= self.start]
            except CorruptIndex as error:  # never for files that nobody damaged
                raise AssertionError(error) from error


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
