"""The one record of a batch that ends a transaction, as everybody writes it.

Its length, attributes, deltas and the length of its key; the key (version, type); the length of the value; the value
(version, coordinator epoch); no headers.
"""

from __future__ import annotations

import struct

from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.record import assemble_batch

MARKER = struct.Struct(">5shhBhiB")
MARKER_START = b"\x20\x00\x00\x00\x08"
VALUE_LENGTH = 12  # six bytes, as a varint
ABORT, COMMIT = 0, 1


def control_batch(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """The marker that ends a transaction in one partition."""
    return assemble_batch(
        MARKER.pack(MARKER_START, 0, COMMIT if commit else ABORT, VALUE_LENGTH, 0, coordinator_epoch, 0),
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        base_offset=0,
        leader_epoch=-1,
        last_offset_delta=0,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=-1,
        count=1,
    )
