"""Topics that tasks write to, as the cluster knows them: how many partitions, and how large a record may be. Looked up
on the executor when somebody asks, and kept by the process for a while."""

from __future__ import annotations

import os
import time
from array import array
from dataclasses import dataclass

import pyarrow as pa

from ottla.client.admin.topic_settings import topic_settings
from ottla.client.settings import ClientSettings
from ottla.common.failures import Retriable
from ottla.kernel.compressing import NUMBERS
from ottla.kernel.encode import BatchEncoder
from ottla.spark.source.reading import kept_reader
from ottla.streams.processing.context import TopicFacts
from ottla.streams.record import Headers

LARGEST = "max.message.bytes"
# Of all that an application writes.
COMPRESSION = "lz4"
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
        return TopicFacts(len(numbers), None if value is None else int(value), bytes_on_the_wire)


def bytes_on_the_wire(key: bytes | None, value: bytes | None, headers: Headers, timestamp: int) -> int:
    """As the sink would write it."""
    encoder = BatchEncoder(codec=NUMBERS[COMPRESSION])
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    heads = pa.array([[{"key": name, "value": data} for name, data in headers]], kind) if headers else None
    columns = pa.array([key], pa.binary()), pa.array([value], pa.binary()), heads, pa.array([timestamp], pa.int64())
    done = [*encoder.append(array("i", [0]), *columns), *encoder.finish()]
    return sum(len(batch) for _, batch, _ in done)
