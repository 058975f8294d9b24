"""How much comes out of what goes in, to tell small batches from large ones before they are computed."""

from __future__ import annotations

# What a batch may come to, judged by those before, for its rows to be encoded on the driver.
SMALL_BYTES = 1024 * 1024


class Load:
    def __init__(self, *, is_bound_to_input: bool = True) -> None:
        # Not so where every batch writes the whole state.
        self._is_bound_to_input = is_bound_to_input
        self._bytes_per_record: float | None = None

    def is_small(self, records: int | None) -> bool:
        """Of the batch that begins now, with so many records of the sources, if that is known."""
        if not self._is_bound_to_input or records is None or self._bytes_per_record is None:
            return False
        return records * self._bytes_per_record <= SMALL_BYTES

    def note(self, records: int | None, written_bytes: int) -> None:
        if records:
            # Windows come out all at once, after batches that gave nothing: what was large is forgotten slowly.
            self._bytes_per_record = max(written_bytes / records, 0.95 * (self._bytes_per_record or 0.0))
