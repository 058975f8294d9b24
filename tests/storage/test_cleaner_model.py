"""Random histories of a compacted log against a dict: values, tombstones, codecs, rolls, rounds, restarts, time."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.records.compression import Codec
from ottla.storage.disk import Disk
from ottla.storage.log import Log
from tests.storage.batches import NOW_MS, open_log, read_all
from tests.storage.cleaning import COMPACT, clean, leftovers, pairs, put

RETENTION_MS = 1000
CONFIG = replace(COMPACT, delete_retention_ms=RETENTION_MS, segment_bytes=1200, index_interval_bytes=100)
# A few short keys that meet often, and a few long ones that the map knows by their digest.
KEYS = st.sampled_from([b"%d" % n for n in range(6)] + [b"", b"x" * 39, b"y" * 40, b"z" * 41, b"long" * 30])
VALUES = st.one_of(st.none(), st.binary(max_size=30), st.just(b"v" * 100))
MAP_BYTES = st.sampled_from([1, 800, 2000, 1 << 20])


class NoSync(Disk):
    def fsync(self, fd: int) -> None:
        """Nothing here survives a power cut anyway."""


class CompactedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-cleaner-"))
        self.now_ms = NOW_MS
        self.log = self.open()
        # Every record ever appended, in order: (offset, key, value).
        self.history: list[tuple[int, bytes, bytes | None]] = []
        # Offset of a tombstone -> when a round first passed it by: its retention counts from there.
        self.first_cleaned_ms: dict[int, int] = {}

    def open(self, recovery_point: int = 0, clean: bool = False) -> Log:
        log = open_log(self.directory, CONFIG, NoSync(), recovery_point=recovery_point, clean=clean)
        log.high_watermark = log.log_end_offset
        return log

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @rule(records=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6), codec=st.sampled_from(list(Codec)))
    def append(self, records: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        base = put(self.log, *records, timestamp=self.now_ms, codec=codec)
        self.history += [(base + n, key, value) for n, (key, value) in enumerate(records)]

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(ms=st.sampled_from([1, 400, 1000, 5000]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule(map_bytes=MAP_BYTES)
    def clean(self, map_bytes: int) -> None:
        before = {one[0]: one for one in pairs(self.log)}
        start = self.log.cleaned_offset
        result = clean(self.log, self.now_ms, map_bytes_max=map_bytes, roll=False)
        assert result.end_offset > start or start == self.log.segments[-1].base_offset
        assert leftovers(self.directory) == []
        self.check_what_went(before, result.end_offset)

    def check_what_went(self, before: dict[int, tuple[int, bytes | None, bytes | None]], end_offset: int) -> None:
        after = {one[0]: one for one in pairs(self.log)}
        assert all(before[offset] == one for offset, one in after.items())
        last = {key: offset for offset, key, _ in self.history if offset < end_offset}
        for offset, key, value in before.values():
            assert key is not None
            if offset >= end_offset:
                assert offset in after
            elif last[key] != offset:
                assert offset not in after
            elif value is not None:
                assert offset in after
            else:
                first_ms = self.first_cleaned_ms.setdefault(offset, self.now_ms)
                # The batch may have got its horizon later than this tombstone was passed by, never earlier.
                if offset not in after:
                    assert self.now_ms >= first_ms + RETENTION_MS

    @rule(clean_stop=st.booleans(), synced=st.integers(0, 4))
    def restart(self, clean_stop: bool, synced: int) -> None:
        cleaned = self.log.cleaned_offset
        end = self.log.log_end_offset
        if clean_stop:
            self.log.close()
        self.log = self.open(end * synced // 4, clean_stop)
        self.log.cleaned_offset = cleaned
        assert self.log.log_end_offset == end

    @invariant()
    def readers_end_up_with_the_same_table(self) -> None:
        expected: dict[bytes, bytes] = {}
        for _, key, value in self.history:
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        found: dict[bytes | None, bytes] = {}
        previous = -1
        for offset, key, value in pairs(self.log):
            assert offset > previous
            previous = offset
            found.pop(key, None)
            if value is not None:
                found[key] = value
        assert found == expected
        # In the order of their last update, too.
        assert list(found) == list(expected)

    @invariant()
    def offsets_can_be_read_from_anywhere(self) -> None:
        everything = [(offset, value) for offset, _, value in pairs(self.log)]
        for start in {0, self.log.log_end_offset // 3, self.log.log_end_offset // 2}:
            assert read_all(self.log, start) == [one for one in everything if one[0] >= start]


CompactedLog.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestCompactedLog = CompactedLog.TestCase
