"""What may be wrong with the bytes of a batch."""

from __future__ import annotations


class CorruptRecords(ValueError):
    """The bytes are not what their header, their checksum or their codec says."""
