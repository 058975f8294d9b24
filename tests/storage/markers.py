"""Transaction markers as a coordinator writes them."""

from __future__ import annotations

import struct

from ottla.records.record import Record, build_batch
from tests.storage.batches import NOW_MS

TRANSACTIONAL = 0x10
CONTROL = 0x20


def marker(
    *, commit: bool, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 7, timestamp: int = NOW_MS
) -> bytearray:
    record = Record(0, timestamp, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, coordinator_epoch))
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, attributes=TRANSACTIONAL | CONTROL
    )
