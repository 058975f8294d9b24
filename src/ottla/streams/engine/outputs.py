"""Topics that tasks write to, as the cluster knows them: how many partitions, and how large a record may be. Looked up
on the executor when somebody asks, and kept by the process for a while."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ottla.client.settings import ClientSettings
from ottla.client.topic_settings import topic_settings
from ottla.common.failures import Retriable
from ottla.spark.source.reading import kept_reader
from ottla.streams.processing.context import TopicFacts

LARGEST = "max.message.bytes"
_AGE_S = 30.0
# A topic that is missing may be made at any moment, but the lookup waits for it, and must not do so for every record.
_MISSING_AGE_S = 5.0
# Records may choose names freely.
_KEPT_MAX = 10_000
# Until when, and what.
_kept: dict[tuple[int, str, str], tuple[float, TopicFacts | None]] = {}


@dataclass(frozen=True)
class ClusterTopics:
    """In the form of `TaskContext.topics`."""

    settings: ClientSettings
    generation: str

    def __call__(self, topic: str) -> TopicFacts | None:
        """None: it is not there."""
        key = (os.getpid(), self.generation, topic)
        ends_s, facts = _kept.get(key, (0.0, None))
        if time.monotonic() > ends_s:
            facts = self._looked_up(topic)
            if len(_kept) >= _KEPT_MAX:
                _kept.clear()
            _kept[key] = (time.monotonic() + (_MISSING_AGE_S if facts is None else _AGE_S), facts)
        return facts

    def _looked_up(self, topic: str) -> TopicFacts | None:
        reader = kept_reader(self.settings)
        numbers = reader.partitions([topic]).get(topic)
        if numbers is None:
            return None
        try:
            found = reader.retried(lambda: topic_settings(reader, [topic], [LARGEST]))
        except Retriable:
            found = {}  # the broker itself refuses what is too large
        value = found[topic][LARGEST].value if LARGEST in found.get(topic, {}) else None
        return TopicFacts(len(numbers), None if value is None else int(value))
