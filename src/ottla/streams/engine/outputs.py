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
_kept: dict[tuple[int, str, str], tuple[float, TopicFacts | None]] = {}


@dataclass(frozen=True)
class ClusterTopics:
    """In the form of `TaskContext.topics`."""

    settings: ClientSettings
    generation: str

    def __call__(self, topic: str) -> TopicFacts | None:
        """None: it is not there."""
        key = (os.getpid(), self.generation, topic)
        looked_s, facts = _kept.get(key, (0.0, None))
        if facts is None or time.monotonic() > looked_s + _AGE_S:
            facts = self._looked_up(topic)
            _kept[key] = (time.monotonic(), facts)
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
