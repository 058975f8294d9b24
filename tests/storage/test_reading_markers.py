"""The marker of a control batch: the usual form is read at a glance, and every other form as it always was."""

from __future__ import annotations

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch, read_records
from ottla.storage.producers.producer_state import EndMarker, read_marker


@given(
    kind=st.integers(-1, 6),
    versions=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    coordinator_epoch=st.integers(0, 2**31 - 1),
    more=st.binary(max_size=4),
    has_header=st.booleans(),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP]),
    before=st.binary(max_size=3),
)
@example(0, (0, 0), 0, b"", False, Codec.NONE, b"")
@example(1, (0, 0), 7, b"", False, Codec.NONE, b"")
def test_a_marker_is_what_its_record_says(
    kind: int,
    versions: tuple[int, int],
    coordinator_epoch: int,
    more: bytes,
    has_header: bool,
    codec: Codec,
    before: bytes,
) -> None:
    headers = (("h", b""),) if has_header else ()
    key = struct.pack(">hh", versions[0], kind)
    record = Record(5, 1_000, key, struct.pack(">hi", versions[1], coordinator_epoch) + more, headers)
    batch = build_batch([record], codec=codec, producer_id=3, attributes=v2.CONTROL_BIT | v2.TRANSACTIONAL_BIT)
    (stored,) = read_records(batch)
    assert stored.key == key
    expected = EndMarker(kind == 1, coordinator_epoch) if kind in (0, 1) else None
    assert read_marker(before + bytes(batch), len(before)) == expected
