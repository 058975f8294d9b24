"""Records that could not be written, in a topic of their own, with Kafka Connect's headers that say why.

They are written before anything that comes after them is: a target that keeps its own position would else have passed
them when a worker dies, and nobody would ever hear of them. So a dead letter may be there twice, and is never lost.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.idempotent import IdempotentProducer
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.connect.api import ConnectorFailure
from ottla.connect.conversion import Failed, dead_letter_headers
from ottla.connect.storage.topics import create_topic
from ottla.kernel.encode import BatchEncoder, partition_for_key

_TOPIC = "errors.deadletterqueue.topic.name"
_REPLICATION = "errors.deadletterqueue.topic.replication.factor"
_HEADERS = "errors.deadletterqueue.context.headers.enable"
_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_THERE_S_MAX = 30.0


@dataclass(frozen=True)
class DeadLetterPlan:
    """Goes to executors with the tasks."""

    address: ClusterAddress
    topic: str
    replication: int
    has_headers: bool
    connector: str

    def prepare(self) -> None:
        """On the driver: the topic is there. Raises OttlaError."""
        with ClusterClient(self.address) as cluster:
            if cluster.settled(lambda: cluster.refresh([self.topic])):
                return
            code = cluster.settled(lambda: create_topic(cluster, self.topic, 1, self.replication, {}))
            if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise ConnectorFailure(
                    f"the topic of dead letters '{self.topic}' cannot be created ({code.name}): create it, or set "
                    f"{_REPLICATION} to what the cluster has brokers for."
                )

    def write(self, failures: Sequence[Failed], task: int) -> None:
        """Raises OttlaError."""
        with ClusterClient(self.address) as cluster, IdempotentProducer(cluster) as producer:
            found = retried(lambda: cluster.leaders([self.topic]), Deadline(_THERE_S_MAX), cluster.forget)
            producer.write(self._batches(failures, len(found), task))

    def _batches(self, failures: Sequence[Failed], partitions: int, task: int) -> list[tuple[TopicPartition, bytes]]:
        encoder = BatchEncoder()
        now_ms = int(time.time() * 1000)
        slots = [partition_for_key(one.key, partitions) if one.key is not None else 0 for one in failures]
        done = encoder.append(
            array("i", slots),
            pa.array([one.key for one in failures], pa.binary()),
            pa.array([one.value for one in failures], pa.binary()),
            pa.array([self._headers(one, task) for one in failures], _TYPE),
            pa.array([now_ms] * len(failures), pa.int64()),
        )
        return [(TopicPartition(self.topic, slot), data) for slot, data, _ in (*done, *encoder.finish())]

    def _headers(self, failed: Failed, task: int) -> list[dict[str, Any]]:
        told = dead_letter_headers(failed, self.connector, task) if self.has_headers else []
        return [{"key": name, "value": value} for name, value in (*failed.headers, *told)]


def dead_letter_plan(config: Mapping[str, str], address: ClusterAddress, connector: str) -> DeadLetterPlan | None:
    """None: what cannot be written is left out, or fails the connector, as errors.tolerance says."""
    topic = config.get(_TOPIC, "")
    if not topic:
        return None
    replication = int(config.get(_REPLICATION, "3"))
    return DeadLetterPlan(address, topic, replication, config.get(_HEADERS, "false") == "true", connector)
