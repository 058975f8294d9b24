"""A disk that loses what it had said to be safe: a segment that is gone, or ends anywhere, below the recovery point.

Only what a start after a crash can see is damaged so: the first segment may have been deleted, and what was not synced
may be missing after any crash.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from ottla.common.ids import TopicPartition
from ottla.records.batch import HEADER_SIZE, read_header
from ottla.storage.log_dirs.checkpoints import RECOVERY_POINTS, read_offsets


def damage(folder: Path, partition: TopicPartition, rng: Random) -> str | None:
    """What was done to the files of this partition, in words; None where nothing can be lost that was synced."""
    synced = (read_offsets(folder / RECOVERY_POINTS) or {}).get(partition, 0)
    segments = [path for path in sorted((folder / str(partition)).glob("*.log")) if int(path.stem) < synced]
    if not segments:
        return None
    segment = rng.choice(segments)
    if segment is not segments[0] and rng.random() < 0.4:
        for path in segment.parent.glob(f"{segment.stem}.*"):
            path.unlink()
        return f"{partition} has lost {segment.name}"
    ends = [end for end, first_lost in _ends(segment.read_bytes()) if first_lost < synced]
    if not ends:
        return None
    # Between two batches, where nothing looks broken, or within one.
    size = rng.choice(ends) + rng.choice((0, rng.randrange(HEADER_SIZE)))
    os.truncate(segment, size)
    return f"{partition}: {segment.name} ends after {size} bytes"


def _ends(content: bytes) -> list[tuple[int, int]]:
    """Where each batch begins, and its first offset: what is lost if the file ends there."""
    found, position = [], 0
    while position + HEADER_SIZE <= len(content):
        header = read_header(content, position)
        if header.size <= HEADER_SIZE:
            break
        found.append((position, header.base_offset))
        position += header.size
    return found
