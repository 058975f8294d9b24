"""When a segment is full: by size, by age, by its indexes, and by the range of offsets that an index can express."""

from __future__ import annotations

import random

from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment import Segment


def is_due(config: LogConfig, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
    """Whether an append of `size` bytes that ends with `last_offset` belongs into a new segment."""
    if segment.size > config.segment_bytes - size or last_offset > segment.max_offset:
        return True
    if segment.is_index_full(config.segment_index_bytes):
        return True
    if segment.size == 0:
        return False
    first = segment.first_batch_timestamp()
    # By the records' own time, so that a replayed history is cut as it was; by the clock if they have none.
    waited = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return waited > segment_ms(config, segment)


def segment_ms(config: LogConfig, segment: Segment) -> int:
    """How long a segment takes records, counted from its first; compaction must get at them within its largest lag."""
    limit_ms = config.segment_ms
    if config.cleanup_compact and config.max_compaction_lag_ms > 0:
        limit_ms = min(limit_ms, config.max_compaction_lag_ms)
    return limit_ms - segment.jitter_ms


def jitter_ms(config: LogConfig) -> int:
    """Spreads the rolls of partitions that began together."""
    bound = min(config.segment_jitter_ms, config.segment_ms)
    return random.randrange(bound) if bound > 0 else 0
