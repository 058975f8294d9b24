"""Make a `Log` of a partition's folder: find the segments, recover them if the stop was not clean, learn its end.

After a clean stop a few headers of the last segment and the last producer snapshot are read, nothing else. Otherwise
the segments from the recovery point on are read once, and producers are replayed from the snapshot before it.
"""

from __future__ import annotations

import errno
import logging
from pathlib import Path

from ottla.common.errors import ApiError
from ottla.common.ids import TopicId, TopicPartition
from ottla.storage.disk import DISK, Disk
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.loading.folder import Folder
from ottla.storage.loading.recovery import Recovery
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.checkpoints import LEADER_EPOCHS
from ottla.storage.log_dirs.refusals import PASSING
from ottla.storage.owner import LogOwner
from ottla.storage.producers.log_transactions import load_producers, rebuild_txn_index
from ottla.storage.producers.producer_snapshot_files import SnapshotFiles
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.segments.segment import Segment

logger = logging.getLogger(__name__)


def load_log(
    directory: Path,
    topic_partition: TopicPartition,
    topic_id: TopicId,
    config: LogConfig,
    *,
    clean: bool = False,
    log_start_offset: int = 0,
    recovery_point: int | None = 0,
    cleaned_offset: int = 0,
    now_ms: int = 0,
    owner: LogOwner | None = None,
    disk: Disk = DISK,
) -> Log:
    """`recovery_point` is None when nobody knows it any more: its checkpoint file is gone."""
    # Then in a compacted log a hole cannot be told from what was removed.
    tells_no_holes = recovery_point is None and config.cleanup_compact
    recovery_point = recovery_point or 0
    folder = Folder(directory, config.index_interval_bytes, disk)
    segments = folder.segments
    epochs = LeaderEpochs(directory / LEADER_EPOCHS, disk)
    # A log with records has had a leader, and a file that tells of it, if only that its epoch is not known.
    lacks_epochs = epochs.is_file_lost and any(segment.size for segment in segments)
    snapshots = SnapshotFiles(directory, folder.snapshot_offsets, disk)
    new = not segments
    hole: int | None = None
    if new:
        if recovery_point > log_start_offset:
            hole = log_start_offset
            logger.error("%s is empty, but had records up to %d; it begins anew", directory, recovery_point - 1)
        segments.append(_segment(directory, log_start_offset, config, disk))
        segments[0].create(now_ms, when_used=log_start_offset == 0)
        recovery_point = log_start_offset
        clean = True
    for segment in folder.without_index:
        if clean or segment.base_offset < recovery_point:
            logger.warning("%s: an index of segment %d is missing; making it again", directory, segment.base_offset)
            segment.rebuild_indexes()
    damage: list[str] = []
    end = -1
    replay_until: int | None = None
    dirty_from: int | None = None
    if clean:
        end = segments[-1].next_offset() if segments[-1].size else segments[-1].base_offset
    if end < recovery_point or not clean:
        # What was said of later offsets need not be true of what is there now; the batches tell.
        epochs.truncate_from_end(recovery_point)
        whole_from = None if tells_no_holes else max(log_start_offset, cleaned_offset)
        is_compacted = config.cleanup_compact
        recovery = Recovery(segments, recovery_point, epochs, whole_from=whole_from, is_compacted=is_compacted)
        # With the last one that was synced: what a truncation took from its end may be back.
        recovery.run(_number_of(segments, recovery_point - 1))
        end, damage, dirty_from, hole = recovery.end_offset, recovery.damage, recovery_point, recovery.hole
        if not recovery.saw_producers:
            replay_until = recovery.start_offset
    if end < recovery_point:
        logger.error("%s ends at %d, but was synced up to %d; going on there", directory, end, recovery_point)
        damage.append(f"offsets {end} to {recovery_point - 1} are lost")
        hole = end if hole is None else hole
        segments.append(_segment(directory, recovery_point, config, disk))
        segments[-1].create(now_ms)
        end = recovery_point
    if lacks_epochs:
        _find_epochs(directory, segments, epochs)
    start = min(max(log_start_offset, segments[0].base_offset), end)
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    if lacks_epochs:
        _make_again(epochs)
    producers = ProducerState(str(topic_partition))
    snapshots.delete_below(segments[0].base_offset)
    removed = snapshots.delete_above(end if dirty_from is None else min(end, _last_trusted(segments, dirty_from)))
    load_producers(producers, snapshots, segments, end, now_ms, index_from=dirty_from, replay_until=replay_until)
    snapshots.delete_strays(segment.base_offset for segment in segments)
    log = Log(
        directory,
        topic_partition,
        topic_id,
        config,
        segments,
        log_start_offset=start,
        log_end_offset=end,
        # After a clean stop all is on disk, whatever the checkpoint says of it.
        recovery_point=min(recovery_point, end) if dirty_from is not None else end,
        leader_epochs=epochs,
        producers=producers,
        snapshots=snapshots,
        owner=owner or LogOwner(),
        disk=disk,
        new=new,
    )
    if removed:
        log.folder_changed()
    log.damage = tuple(damage)
    log.hole = None if hole is None else max(hole, start)
    log.cleaned_offset = cleaned_offset
    for segment in (known for known in folder.without_txn_index if known in segments):
        # Kafka leaves out empty ones: of a folder that it wrote every segment is walked once. Not while serving.
        if segment.size and not segment.txns.loaded:
            rebuild_txn_index(log, segment)
    if tells_no_holes and not clean:
        _flush(log)
    # Thousands of logs are loaded: none keeps a file open before it is used.
    for segment in segments:
        segment.release()
    return log


def _find_epochs(directory: Path, segments: list[Segment], epochs: LeaderEpochs) -> None:
    """Without them nobody could tell where this log and that of another replica have parted: a follower would ask for
    no comparison, and a leader would say that all it has is of the epoch of its first entry."""
    logger.warning("%s: %s is missing or damaged; the batches are asked", directory, LEADER_EPOCHS)
    epochs.truncate_from_end(0)
    for segment in segments:
        for _, header in segment.headers():
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
        segment.release()


def _make_again(epochs: LeaderEpochs) -> None:
    """At once: a log that nobody writes to would not be flushed before it is stopped, and read again after a crash."""
    try:
        epochs.make_again()
    except OSError as error:
        if error.errno not in PASSING:
            raise


def _flush(log: Log) -> None:
    """So that a start after the next crash finds a recovery point above all gaps."""
    try:
        log.flush()
    except ApiError as error:
        raise OSError(errno.EIO, f"{log.dir} could not be synced: {error.message}") from error


def _segment(directory: Path, offset: int, config: LogConfig, disk: Disk) -> Segment:
    return Segment(directory, offset, index_interval=config.index_interval_bytes, disk=disk)


def _last_trusted(segments: list[Segment], recovery_point: int) -> int:
    """After a crash: above this offset a snapshot may tell of batches that are lost, or were not what stands there."""
    return max(recovery_point, segments[0].base_offset)


def _number_of(segments: list[Segment], offset: int) -> int:
    """Of the segment that holds `offset`."""
    return max((number for number, segment in enumerate(segments) if segment.base_offset <= offset), default=0)
