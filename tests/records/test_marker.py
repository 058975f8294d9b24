"""The marker of a transaction is written with a fixed layout: it is what the general writer of batches makes of it."""

from __future__ import annotations

import struct

import pytest

from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.marker import control_batch
from ottla.records.record import Record, build_batch, read_records
from ottla.storage.producers.producer_state import EndMarker, read_marker


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    ("producer_id", "epoch", "coordinator_epoch"), [(0, 0, 0), (2**62, 32767, 2**31 - 1), (7, 3, -1)]
)
def test_a_marker_is_what_the_general_writer_makes_of_it(
    producer_id: int, epoch: int, coordinator_epoch: int, commit: bool
) -> None:
    now_ms = 1_700_000_000_123
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, coordinator_epoch)
    expected = build_batch(
        [Record(0, now_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )
    marker = control_batch(producer_id, epoch, commit, coordinator_epoch, now_ms)
    assert marker == expected
    assert read_marker(marker) == EndMarker(commit, coordinator_epoch)
    assert [(record.key, record.value) for record in read_records(marker)] == [(key, value)]
