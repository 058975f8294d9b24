"""Which partition of a coordinator's topic an id lives in: as in Kafka, so that either finds the other's state."""

from __future__ import annotations

from functools import lru_cache


# Asked for each heartbeat and commit; a long id costs 5 us.
@lru_cache(maxsize=4096)
def partition_of(text: str, count: int) -> int:
    """String.hashCode over UTF-16 units, its absolute value (0 for the one that has none), modulo."""
    code = 0
    raw = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(raw), 2):
        code = (31 * code + (raw[at] << 8 | raw[at + 1])) & 0xFFFFFFFF
    if code & 0x80000000:
        code = (1 << 32) - code
    return 0 if code == 0x80000000 else code % count
