"""Which transactions a snapshot of PostgreSQL sees: `pg_current_snapshot()` is xmin:xmax:xid,xid,... Pure."""

from __future__ import annotations

from functools import lru_cache

_EPOCH = 1 << 32


@lru_cache(maxsize=64)
def _parsed(snapshot: str) -> tuple[int, int, frozenset[int]]:
    low, high, running = snapshot.split(":")
    return int(low), int(high), frozenset(map(int, running.split(","))) if running else frozenset()


def is_seen(snapshot: str, xid: int) -> bool:
    """`xid` has 32 bits in the stream and 64 in the snapshot: the one nearest to the snapshot is meant."""
    low, high, running = _parsed(snapshot)
    full = high - (high % _EPOCH) + xid
    if full - high > _EPOCH // 2:
        full -= _EPOCH
    elif high - full > _EPOCH // 2:
        full += _EPOCH
    return full < low or (full < high and full not in running)
