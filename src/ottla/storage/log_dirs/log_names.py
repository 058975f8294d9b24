"""Names of partition folders, as Kafka gives them.

orders-0                                a partition
orders-0.<32 hex digits>-delete         deleted, its files go after a delay
orders-0.<32 hex digits>-future         a copy on its way into another log directory
"""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from ottla.common.ids import TopicPartition

DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"
_NAME_BYTES_MAX = 255

_PLAIN = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+)")
_MARKED = re.compile(r"(?P<topic>\S+)-(?P<partition>[0-9]+)\.(?P<id>[0-9a-f]{32})(?P<mark>-delete|-future|-stray)")


class FolderName(NamedTuple):
    topic_partition: TopicPartition
    mark: str  # "", "-delete", "-future" or "-stray"


def parse_folder(name: str) -> FolderName | None:
    """None when it is not the name of a partition's folder."""
    match = _MARKED.fullmatch(name)
    if match:
        return FolderName(TopicPartition(match["topic"], int(match["partition"])), match["mark"])
    match = _PLAIN.fullmatch(name)
    if match:
        return FolderName(TopicPartition(match["topic"], int(match["partition"])), "")
    return None


def marked_folder(topic_partition: TopicPartition, mark: str) -> str:
    """A fresh name with this mark; a long topic name is cut so that the file system takes it."""
    ending = f"-{topic_partition.partition}.{uuid.uuid4().hex}{mark}"
    return topic_partition.topic[: _NAME_BYTES_MAX - len(ending)] + ending
