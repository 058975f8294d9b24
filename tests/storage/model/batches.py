"""What is in a log, as plain values, and how consumers of both isolation levels read it."""

from __future__ import annotations

import os
import random
import struct
from functools import lru_cache
from typing import NamedTuple

from ottla.records import batch as v2
from ottla.records.record import Record, iterate_batches, read_records
from ottla.storage.log import Log


class Batch(NamedTuple):
    """One batch. `commit` is None for data, else what the marker says."""

    base: int
    last: int
    records: tuple[Record, ...]
    max_timestamp: int
    producer_id: int
    epoch: int
    sequence: int
    transactional: bool
    commit: bool | None
    coordinator_epoch: int
    leader_epoch: int

    @property
    def shape(self) -> tuple[object, ...]:
        """What compaction never changes."""
        return (
            self.base,
            self.last,
            self.producer_id,
            self.epoch,
            self.sequence,
            self.transactional,
            self.leader_epoch,
        )


@lru_cache(maxsize=20_000)
def parse(raw: bytes) -> Batch:
    header = v2.read_header(raw)
    assert v2.compute_crc(raw, 0, header.size) == header.crc, f"a batch at {header.base_offset} with a wrong CRC"
    records = tuple(read_records(raw))
    commit, coordinator_epoch = None, -1
    if header.is_control and records:
        key, value = records[0].key, records[0].value
        assert key is not None and value is not None
        commit, coordinator_epoch = struct.unpack(">hh", key)[1] == 1, struct.unpack(">hi", value)[1]
    return Batch(
        header.base_offset,
        header.last_offset,
        records,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        commit,
        coordinator_epoch,
        header.leader_epoch,
    )


def is_control(raw: bytes) -> bool:
    return v2.read_header(raw).is_control


def fetch(log: Log, offset: int, upper: int, max_bytes: int) -> tuple[list[bytes], list[tuple[int, int]]]:
    """The whole batches of one answer, and the aborted transactions that it names."""
    piece = log.read(offset, max_bytes, upper_offset=upper, min_one=True)
    if not piece.size:
        return [], []
    raw = os.pread(piece.file, piece.size, piece.position)
    batches = [raw[at : at + header.size] for at, header in iterate_batches(raw)]
    aborted = log.aborted_transactions(offset, min(upper, log.upper_offset_of(piece)))
    return batches, aborted


def read_uncommitted(log: Log, rng: random.Random) -> list[Batch]:
    offset, found = log.log_start_offset, []
    while offset < log.log_end_offset:
        batches, _ = fetch(log, offset, log.log_end_offset, rng.choice((1, 300, 1 << 20)))
        assert batches or _nothing_behind(log, offset), f"nothing can be read at {offset}"
        if not batches:
            break
        found += [parse(raw) for raw in batches]
        assert found[-1].last >= offset, f"a read at {offset} ends with {found[-1].last}"
        offset = found[-1].last + 1
    return found


def _nothing_behind(log: Log, offset: int) -> bool:
    """Compaction may take the last batches of a segment; what is read then is nothing, up to the log end."""
    return all(header.last_offset < offset for one in log.segments for _, header in one.headers())


def read_committed(log: Log, start: int, rng: random.Random) -> list[Record]:
    """As a client does it: batches of a producer are dropped from where its aborted transaction began up to its
    abort marker."""
    offset, upper, found = start, log.last_stable_offset, []
    while offset < upper:
        batches, aborted = fetch(log, offset, upper, rng.choice((1, 300, 1 << 20)))
        if not batches:
            break
        upcoming = sorted(aborted, key=lambda one: one[1], reverse=True)
        aborting: set[int] = set()
        before = offset
        for raw in batches:
            batch = parse(raw)
            while upcoming and upcoming[-1][1] <= batch.last:
                aborting.add(upcoming.pop()[0])
            offset = batch.last + 1
            if is_control(raw):
                if batch.commit is False:
                    aborting.discard(batch.producer_id)
            elif not (batch.transactional and batch.producer_id in aborting):
                found += [one for one in batch.records if one.offset >= before]
        assert offset > before
    return found
