"""What the metadata log of a Kafka says about its topics: for folders that someone brings from Kafka.

A KRaft controller keeps `__cluster_metadata-0` in the data folder: a log of framed records, and from time to time a
`.checkpoint` file with the whole state as such records. We read the newest checkpoint and what the log has after it,
and keep only what no partition's folder tells: the topics' own settings. Nothing is ever written there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ottla.common.ids import TopicId
from ottla.protocol.codec import read_uvarint
from ottla.records.record import iterate_batches, read_records

log = logging.getLogger("ottla.topics")

FOLDER = "__cluster_metadata-0"
_FRAME_VERSION = 1
# Types of records: TopicRecord, ConfigRecord, RemoveTopicRecord.
_TOPIC, _CONFIG, _REMOVE_TOPIC = 2, 4, 9
_TOPIC_RESOURCE = 2


def topic_configs(data_dir: Path) -> Mapping[TopicId, Mapping[str, str]]:
    """The settings of each topic by its id; empty where there is no such log, or none that we can read."""
    folder = data_dir / FOLDER
    try:
        return _replay(_records(folder)) if folder.is_dir() else {}
    except (OSError, ValueError, IndexError) as error:
        log.warning("the metadata log of Kafka cannot be read", extra={"folder": str(folder), "why": str(error)})
        return {}


def _records(folder: Path) -> Iterator[bytes]:
    """Values of the newest checkpoint, then of the log behind it. Checkpoints are named OFFSET-EPOCH."""
    first = 0
    checkpoints = sorted(folder.glob("*-*.checkpoint"))
    if checkpoints:
        first = int(checkpoints[-1].name.split("-")[0])
        yield from _values(checkpoints[-1], 0)
    for segment in sorted(folder.glob("*.log")):
        yield from _values(segment, first)


def _values(path: Path, first: int) -> Iterator[bytes]:
    data = path.read_bytes()
    for position, header in iterate_batches(data):
        if not header.is_control:
            for record in read_records(data, position):
                if record.offset >= first and record.value:
                    yield record.value


def _replay(values: Iterable[bytes]) -> dict[TopicId, dict[str, str]]:
    ids: dict[str, TopicId] = {}
    configs: dict[str, dict[str, str]] = {}
    for value in values:
        frame, at = read_uvarint(value, 0)
        kind, at = read_uvarint(value, at)
        _, at = read_uvarint(value, at)
        if frame != _FRAME_VERSION:
            raise ValueError(f"frame version {frame} is not {_FRAME_VERSION}")
        if kind == _TOPIC:
            name, at = _string(value, at)
            ids[name or ""] = TopicId(value[at : at + 16])
        elif kind == _REMOVE_TOPIC:
            gone = TopicId(value[at : at + 16])
            for name in [name for name, topic_id in ids.items() if topic_id == gone]:
                del ids[name]
                configs.pop(name, None)
        elif kind == _CONFIG and value[at] == _TOPIC_RESOURCE:
            topic, at = _string(value, at + 1)
            key, at = _string(value, at)
            text, at = _string(value, at)
            own = configs.setdefault(topic or "", {})
            if text is None:
                own.pop(key or "", None)
            else:
                own[key or ""] = text
    return {topic_id: configs.get(name, {}) for name, topic_id in ids.items()}


def _string(value: bytes, at: int) -> tuple[str | None, int]:
    size, at = read_uvarint(value, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(value):
        raise ValueError("a string runs past its record")
    return value[at:end].decode(), end
