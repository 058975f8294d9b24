"""Make a `Log` of a partition's folder: find the segments, check them, and learn where the log ends."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ottla.common.ids import TopicId, TopicPartition
from ottla.storage.batch_scan import BrokenChain
from ottla.storage.disk import DISK, Disk
from ottla.storage.indexes import CorruptIndex
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segment import LOG_SUFFIX, Segment

logger = logging.getLogger(__name__)


def load_log(
    directory: Path,
    topic_partition: TopicPartition,
    topic_id: TopicId,
    config: LogConfig,
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    now_ms: int = 0,
    disk: Disk = DISK,
) -> Log:
    segments = _find_segments(directory, config, disk)
    if not segments:
        segment = Segment(directory, log_start_offset, disk=disk)
        segment.create(now_ms)
        segments = [segment]
    active = segments[-1]
    end = active.read_next_offset() if active.size else active.base_offset
    start = max(log_start_offset, segments[0].base_offset)
    return Log(
        directory,
        topic_partition,
        topic_id,
        config,
        segments,
        log_end_offset=max(end, start),
        log_start_offset=start,
        recovery_point=min(recovery_point, end),
        disk=disk,
    )


def _find_segments(directory: Path, config: LogConfig, disk: Disk) -> list[Segment]:
    segments: list[Segment] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(LOG_SUFFIX):
                segment = Segment(directory, int(name.removesuffix(LOG_SUFFIX)), disk=disk)
                status = entry.stat()
                try:
                    segment.attach(status.st_size, status.st_mtime_ns // 1_000_000)
                    segment.offsets.last()
                except (CorruptIndex, BrokenChain) as error:
                    logger.warning("%s: %s; rebuilding the indexes of segment %s", directory, error, name)
                    segment.rebuild_indexes(config.index_interval_bytes)
                segments.append(segment)
    segments.sort(key=lambda one: one.base_offset)
    return segments
