"""Kafka's small text files: offset checkpoints of a log directory, and the two files that name things.

    recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint (the high watermarks)
    and cleaner-offset-checkpoint, one of each per log directory:
        0                           version
        2                           entries
        orders 0 1234               topic partition offset
        orders 1 7
    leader-epoch-checkpoint in a partition's folder: the same with `epoch start-offset` lines
    partition.metadata in a partition's folder:      version: 0 / topic_id: <base64>
    meta.properties in a log directory:              version, node.id, cluster.id, directory.id
    __ottla_made_anew in each log directory of a cluster: the first form, with partitions of which all records were lost

They are written aside and renamed, so a crash leaves the old or the new one. One that cannot be read is reported and
treated as absent: everything in it can be found out again, only more slowly.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.common.ids import TopicId, TopicPartition, topic_id_from_text, topic_id_text
from ottla.storage.disk import DISK, Disk, read_whole

logger = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
MADE_ANEW = "__ottla_made_anew"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"

_VERSION = 0


def _read_lines(path: Path) -> list[str] | None:
    """The lines behind version and count; None when the file is missing or makes no sense."""
    try:
        text = read_whole(path).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("%s cannot be read (%s); it is treated as missing", path, error)
        return None
    lines = text.splitlines()
    if not lines:  # Kafka makes an empty file before it has anything to write
        return None
    try:
        version, count, entries = int(lines[0]), int(lines[1]), lines[2:]
    except (IndexError, ValueError):
        version, count, entries = -1, -1, []
    if version != _VERSION or len(entries) != count:
        logger.warning("%s is damaged; it is treated as missing", path)
        return None
    return entries


def _write_lines(path: Path, lines: list[str], disk: Disk, *, sync: bool) -> None:
    text = "".join(f"{line}\n" for line in [str(_VERSION), str(len(lines)), *lines])
    disk.replace_file(path, text.encode(), sync=sync)


def read_offsets(path: Path) -> dict[TopicPartition, int] | None:
    """An offset checkpoint; None when there is none that can be read."""
    offsets: dict[TopicPartition, int] = {}
    lines = _read_lines(path)
    if lines is None:
        return None
    try:
        for line in lines:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = int(offset)
    except ValueError:
        logger.warning("%s is damaged; it is treated as missing", path)
        return None
    return offsets


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], disk: Disk = DISK) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    _write_lines(path, lines, disk, sync=True)


def read_epochs(path: Path) -> list[tuple[int, int]] | None:
    """(epoch, start offset) in order; None when there is no file that can be read."""
    lines = _read_lines(path)
    if lines is None:
        return None
    try:
        entries = [(int(epoch), int(start)) for epoch, start in (line.split(" ") for line in lines)]
    except ValueError:
        logger.warning("%s is damaged; it is treated as missing", path)
        return None
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in itertools.pairwise(entries)):
        logger.warning("%s has epochs out of order; it is treated as missing", path)
        return None
    return entries


def write_epochs(path: Path, entries: Iterable[tuple[int, int]], disk: Disk = DISK, *, sync: bool = True) -> None:
    _write_lines(path, [f"{epoch} {start}" for epoch, start in entries], disk, sync=sync)


def read_partition_metadata(directory: Path) -> TopicId | None:
    try:
        lines = read_whole(f"{directory}/{PARTITION_METADATA}").decode().splitlines()
        if lines[0] != f"version: {_VERSION}" or not lines[1].startswith("topic_id: "):
            raise ValueError(lines)
        return topic_id_from_text(lines[1].removeprefix("topic_id: "))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, IndexError) as error:
        logger.warning("%s in %s is damaged (%s)", PARTITION_METADATA, directory, error)
        return None


def write_partition_metadata(directory: Path, topic_id: TopicId, disk: Disk = DISK) -> None:
    # Not synced here but with the first records: an empty folder may be any topic's of the name.
    text = f"version: {_VERSION}\ntopic_id: {topic_id_text(topic_id)}"
    disk.replace_file(directory / PARTITION_METADATA, text.encode(), sync=False)


class MetaProperties(NamedTuple):
    node_id: int
    cluster_id: str
    directory_id: TopicId


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """None when the directory is new. Raises ValueError when the file is not what a Kafka 4 broker writes."""
    path = directory / META_PROPERTIES
    try:
        lines = path.read_text("iso-8859-1").splitlines()
    except FileNotFoundError:
        return None
    pairs = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith(("#", "!")))
    if pairs.get("version") != "1":
        raise ValueError(f"{path} has version {pairs.get('version')!r}, not 1")
    try:
        directory_id = topic_id_from_text(pairs["directory.id"]) if "directory.id" in pairs else TopicId(bytes(16))
        return MetaProperties(int(pairs["node.id"]), pairs["cluster.id"], directory_id)
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}") from None


def write_meta_properties(directory: Path, meta: MetaProperties, disk: Disk = DISK) -> None:
    lines = [
        "#",
        time.strftime("#%a %b %d %H:%M:%S UTC %Y", time.gmtime()),
        f"cluster.id={meta.cluster_id}",
        f"directory.id={topic_id_text(meta.directory_id)}",
        f"node.id={meta.node_id}",
        "version=1",
    ]
    disk.replace_file(directory / META_PROPERTIES, "".join(f"{line}\n" for line in lines).encode(), sync=True)
