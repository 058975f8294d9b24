"""What says that a batch was published: a record in a compacted topic, written in the batch's own transaction.

The same note stands in the metadata of the offsets that the transaction commits, for people and tools to read. It is
not enough on its own, because offsets of groups expire. The topic is shared by all queries. An open transaction of
another query would hide ours from a reader of committed records, so the topic is read to its very end here, and our
own transactions are told apart by their markers: by the time we read, our producer has been initialised, so each of
them is decided.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from array import array
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.client.admin.topics import ensure_topic
from ottla.client.cluster import ClusterClient
from ottla.client.fetching import NAMES_UNTIL
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode
from ottla.common.failures import Retriable, check
from ottla.common.ids import TopicPartition
from ottla.kernel.encode import BatchEncoder
from ottla.protocol.messages import FetchRequest, ListOffsetsRequest
from ottla.spark.sink.plain_batches import read_plain

MARKER_TOPIC = "ottla-pipelines"
# Small segments are cleaned soon, and what is left is read in a moment.
_TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    # Whatever the broker's default is: we read them without a decoder.
    "compression.type": "uncompressed",
    "segment.bytes": str(4 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}
_EARLIEST, _LATEST = -2, -1
_COMMIT = 1
_CONTROL_KEY = struct.Struct(">hh")


Offsets = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Marker:
    """The last batch that a query published, and up to where it had read its sources by then.

    All of these offsets are known to the one who publishes them. What is written is a digest, however many partitions
    there are: it tells whether the same batch of a checkpoint is meant. The offsets themselves stand in the group.
    """

    query: str
    batch: int
    offsets: Offsets | None = field(default=None, compare=False)
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", digest_of(self.offsets or {}))

    def to_json(self) -> str:
        return json.dumps({"query": self.query, "batch": self.batch, "digest": self.digest}, separators=(",", ":"))

    def records_since(self, before: Marker) -> int | None:
        """How many offsets of the sources lie between the two, if both know theirs. None also where one went back, as
        in a topic that was made anew: how many there are now is anybody's guess."""
        if self.offsets is None or before.offsets is None:
            return None
        steps = [
            offset - before.offsets.get(topic, {}).get(partition, 0)
            for topic, partitions in self.offsets.items()
            for partition, offset in partitions.items()
        ]
        return None if any(step < 0 for step in steps) else sum(steps)

    def note(self) -> str:
        """What goes into the metadata of offsets, of which brokers take 4,096 bytes only."""
        return json.dumps({"query": self.query, "batch": self.batch}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Marker:
        """Older ones have all offsets in the place of the digest."""
        found = json.loads(text)
        return Marker(found["query"], found["batch"], found.get("offsets"), found.get("digest", ""))


def digest_of(offsets: Offsets) -> str:
    text = json.dumps(offsets, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def marker_batch(name: str, marker: Marker | None) -> bytes:
    """The record of a query called `name`; without a marker the tombstone that removes it."""
    encoder = BatchEncoder()
    value = None if marker is None else marker.to_json().encode()
    encoder.append(
        array("i", [0]),
        pa.array([name.encode()], pa.binary()),
        pa.array([value], pa.binary()),
        None,
        pa.array([int(time.time() * 1000)], pa.int64()),
    )
    ((_, batch, _),) = encoder.finish()
    return batch


def ensure_marker_topic(cluster: ClusterClient, topic: str) -> None:
    advice = "create it, compacted, or ask for the right to"
    ensure_topic(cluster, topic, what="the topic", advice=advice, settings=_TOPIC_SETTINGS)


def read_marker(cluster: ClusterClient, topic: str, name: str, *, retry_timeout_s: float = 60.0) -> Marker | None:
    """The marker of the query `name` as it is decided. Its producer must have been initialised before."""

    def scan() -> Marker | None:
        return _Scan(cluster, TopicPartition(topic, 0), name.encode()).run()

    try:
        return retried(scan, Deadline(retry_timeout_s), lambda _: cluster.close())
    except Retriable as error:
        raise Retriable(f"the marker of '{name}' in '{topic}' cannot be read: {str(error).rstrip('.')}.") from None


class _Scan:
    def __init__(self, cluster: ClusterClient, partition: TopicPartition, key: bytes) -> None:
        self._cluster = cluster
        self._partition = partition
        self._key = key
        # By producer id: what its open transaction says.
        self._open: dict[int, bytes | None] = {}
        self._found: bytes | None = None

    def run(self) -> Marker | None:
        leader = self._cluster.broker(self._leader())
        position, end = self._offset(leader, _EARLIEST), self._offset(leader, _LATEST)
        while position < end:
            before, position = position, self._take(self._fetch(leader, position), position)
            if position == before:
                raise Retriable(f"it ended at {end}, and there is nothing at {position} now")
        return None if self._found is None else Marker.from_json(self._found)

    def _leader(self) -> int:
        leader = self._cluster.leaders([self._partition.topic]).get(self._partition, -1)
        if leader < 0:
            raise Retriable("it has no leader now")
        return leader

    def _offset(self, leader: Any, which: int) -> int:
        asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=self._partition.partition, timestamp=which)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._partition.topic, partitions=[asked])
        row = leader.call(ListOffsetsRequest(replica_id=-1, topics=[topic])).topics[0].partitions[0]
        self._check(row.error_code)
        return int(row.offset)

    def _fetch(self, leader: Any, position: int) -> Any:
        asked = FetchRequest.FetchPartition(
            partition=self._partition.partition, fetch_offset=position, partition_max_bytes=8 * 1024 * 1024
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=8 * 1024 * 1024,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=self._partition.topic, partitions=[asked])],
        )
        row = leader.call(request, NAMES_UNTIL).responses[0].partitions[0]
        self._check(row.error_code)
        return row.records or b""

    @staticmethod
    def _check(code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise Retriable("the log went back, or its beginning was deleted, since we asked where it begins and ends")
        check(code, "the topic of markers")

    def _take(self, records: Any, position: int) -> int:
        for batch in read_plain(records):
            for key, value in batch.records:
                if batch.is_control:
                    self._decide(batch.producer_id, key)
                elif key == self._key:
                    self._open[batch.producer_id] = value
            position = batch.last_offset + 1
        return position

    def _decide(self, producer_id: int, key: bytes | None) -> None:
        if producer_id not in self._open or key is None:
            return
        value = self._open.pop(producer_id)
        if _CONTROL_KEY.unpack_from(key)[1] == _COMMIT:
            self._found = value
