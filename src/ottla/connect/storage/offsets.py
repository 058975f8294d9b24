"""What is in the topic of offsets: how far sources were read. Key `["NAME",{partition}]`, value `{offset}`, JSON.

Of a sink it has the ids of the topics that it reads, under `["NAME",{"ottla.topic": "TOPIC"}]`: a cluster forgets what
a group has read of a topic that is deleted, and a target that knows how far it is would take the next topic of that
name for the same one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from ottla.common.ids import TopicId, topic_id_from_text, topic_id_text
from ottla.connect.api import Offset, Partition

Pair = tuple[bytes | None, bytes | None]
_TOPIC = "ottla.topic"


def canonical(partition: Partition) -> str:
    """The same for partitions that say the same, in whatever order."""
    return json.dumps(partition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class OffsetState:
    """As it was read so far. Records are of many connectors, and may be written with other orders of fields."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        # connector -> canonical partition -> (key as it was written, partition, offset)
        self._known: dict[str, dict[str, tuple[bytes, Partition, Offset]]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            name, partition = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (ValueError, TypeError, RecursionError):
            return  # a connector of somebody else's, with keys that are no JSON
        if not (isinstance(name, str) and isinstance(partition, dict) and isinstance(offset, dict | None)):
            return
        assert key is not None
        with self._guard:
            ours = self._known.setdefault(name, {})
            if offset is None:
                ours.pop(canonical(partition), None)
            else:
                ours[canonical(partition)] = (key, partition, offset)

    def of(self, connector: str) -> dict[str, Offset]:
        """By canonical partition."""
        with self._guard:
            return {text: offset for text, (_, _, offset) in self._known.get(connector, {}).items()}

    def listed(self, connector: str) -> list[tuple[Partition, Offset]]:
        return [row for row in self._rows(connector) if _TOPIC not in row[0]]

    def _rows(self, connector: str) -> list[tuple[Partition, Offset]]:
        with self._guard:
            return [(partition, offset) for _, partition, offset in self._known.get(connector, {}).values()]

    def topic_ids(self, connector: str) -> dict[str, TopicId]:
        """Of the topics that a sink has read."""
        return {
            partition[_TOPIC]: topic_id_from_text(offset["id"])
            for partition, offset in self._rows(connector)
            if _TOPIC in partition
        }

    def topic_id_record(self, connector: str, topic: str, topic_id: TopicId | None) -> Pair:
        """None: it is forgotten."""
        offset = None if topic_id is None else {"id": topic_id_text(topic_id)}
        return self.record(connector, {_TOPIC: topic}, offset)

    def record(self, connector: str, partition: Partition, offset: Offset | None) -> Pair:
        """Under the key that it has already, if it has one: else compaction would keep both."""
        with self._guard:
            known = self._known.get(connector, {}).get(canonical(partition))
        key = known[0] if known is not None else _json([connector, partition])
        return key, None if offset is None else _json(offset)


def _json(tree: Any | Mapping[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()
