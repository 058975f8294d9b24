"""From a time to a record inside one batch, also when the batch is a bomb or its header lies."""

from __future__ import annotations

from functools import partial

import pytest

from ottla.records.batch import read_header
from ottla.records.compression import Codec, compress
from ottla.records.record import Record, assemble_batch, build_batch
from ottla.records.time_search import first_record_since, needs_records, open_batch
from tests.support.hostile_batches import UNREADABLE, patched, raw_body
from tests.support.work import calls_made

BASE = 1_700_000_000_000


def batch(codec: Codec = Codec.NONE) -> bytearray:
    """Five records from offset 100 on, a second apart."""
    records = [Record(100 + n, BASE + 1000 * n, b"k", b"v" * n) for n in range(5)]
    return build_batch(records, codec=codec)


def search(raw: bytearray, timestamp: int, start: int = 0) -> tuple[int, int] | None:
    header = read_header(raw)
    walk = first_record_since(open_batch(raw, header) if needs_records(header) else None, header, timestamp, start)
    try:
        while True:
            next(walk)
    except StopIteration as end:
        found: tuple[int, int] | None = end.value
        return found


@pytest.mark.parametrize("codec", list(Codec), ids=lambda one: one.name.lower())
def test_the_first_record_since(codec: Codec) -> None:
    raw = batch(codec)
    assert search(raw, 0) == (BASE, 100)
    assert search(raw, BASE) == (BASE, 100)
    assert search(raw, BASE + 1) == (BASE + 1000, 101)
    assert search(raw, BASE + 4000) == (BASE + 4000, 104)


def test_times_that_are_out_of_order() -> None:
    times = (5, 9, 2, 7)
    raw = build_batch([Record(n, BASE + one, None, b"") for n, one in enumerate(times)])
    assert search(raw, BASE + 6) == (BASE + 9, 1)
    assert search(raw, BASE + 1) == (BASE + 5, 0)


def test_below_the_log_start() -> None:
    raw = batch()
    assert search(raw, BASE, start=103) == (BASE + 3000, 103)
    assert search(raw, BASE + 4000, start=105) is None


@pytest.mark.parametrize("attributes", [0, 8])
def test_a_batch_that_compaction_emptied_has_no_record(attributes: int) -> None:
    raw = assemble_batch(
        b"",
        attributes=attributes,
        base_offset=100,
        leader_epoch=0,
        last_offset_delta=4,
        base_timestamp=-1,
        max_timestamp=BASE + 4000,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        count=0,
    )
    assert search(raw, BASE) is None


def test_log_append_time_needs_no_look_at_the_records() -> None:
    raw = patched(batch(), 21, "h", 8)
    assert search(raw, BASE + 1) == (BASE + 4000, 100)


@pytest.mark.parametrize("name", UNREADABLE)
def test_records_that_cannot_be_read(name: str) -> None:
    raw = bytearray(UNREADABLE[name])
    found = search(raw, read_header(raw).max_timestamp)
    assert found is not None


def test_a_header_that_lies_about_its_latest_time() -> None:
    raw = patched(batch(), 35, "q", BASE + 999_999)
    assert search(raw, BASE + 500_000) == (BASE + 999_999, 104)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda one: one.name.lower())
def test_a_bomb_costs_little(codec: Codec) -> None:
    frame = compress(codec, bytes(8 << 20))
    bombs = [raw_body(frame * 30, 1, codec=codec), raw_body(frame * 30, 2**31 - 1, codec=codec)]
    for raw in bombs:
        assert calls_made(partial(search, raw, 0)) < 1_000_000  # two for each record that it looks at
        assert search(raw, 0) is not None
