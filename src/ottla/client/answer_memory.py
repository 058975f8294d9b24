"""Memory for large answers, used again once nobody looks at what was in it.

A new buffer of some megabytes is set to zero, page by page, before the socket fills it: for a reader of gigabytes that
is as much work as the copying. A buffer that somebody still has a view of is never written to.
"""

from __future__ import annotations

# Smaller ones are made in a moment, larger ones would be kept for nothing.
_KEPT_BYTES_MIN, _KEPT_BYTES_MAX = 64 * 1024, 16 * 1024 * 1024
# Answers differ by some bytes: so much at a time, one made for the first serves the next.
_STEP_BYTES = 256 * 1024
# One is looked at while the next answer comes.
_KEPT = 2


class AnswerMemory:
    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """Room for so many bytes, whatever they are now."""
        if not _KEPT_BYTES_MIN <= size <= _KEPT_BYTES_MAX:
            return memoryview(bytearray(size))
        for buffer in self._kept:
            if len(buffer) >= size and not _is_looked_at(buffer):
                return memoryview(buffer)[:size]
        made = bytearray(-(-size // _STEP_BYTES) * _STEP_BYTES)
        self._kept = [*self._kept[1 - _KEPT :], made]
        return memoryview(made)[:size]


def _is_looked_at(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())  # refused while there is a view of it
    except BufferError:
        return True
    return False
