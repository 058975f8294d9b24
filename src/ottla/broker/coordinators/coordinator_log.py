"""One partition of a coordinator's topic as its shard sees it: records in, and at the election records out.

Coordinator records are ours alone to write; while the partition is read only markers of transactions are added to it.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.broker.coordinators.coordinator_shard import CoordinatorShard
from ottla.broker.partitions.partition import Committed, Partition
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.codec import MalformedMessage
from ottla.records.batch import TRANSACTIONAL_BIT, BatchHeader
from ottla.records.compression import Codec, DecompressionError
from ottla.records.record import CorruptRecords, Record, build_batch, iterate_batches, read_records
from ottla.storage.log import Log
from ottla.storage.results import Origin

_ALL = -1
_READ_BYTES = 256 * 1024
_MARKER_KEY = struct.Struct(">hh")
_COMMIT_MARKER = 1

# Key and value of what the machine calls a record.
Serialize = Callable[[Any], tuple[bytes, bytes | None]]


def check_replicas(partition: Partition) -> None:
    """Raises NOT_ENOUGH_REPLICAS when what is written now could not be committed. A partition with one replica has all
    it can have, whatever min.insync.replicas says."""
    if partition.replication is not None:
        partition.check_acks(_ALL)


class CoordinatorLog:
    def __init__(
        self,
        partition: Partition,
        clock: Clock,
        serialize: Serialize,
        codec: Callable[[], int] | None,
        commit_timeout_ms: int | None,
    ) -> None:
        """Without `commit_timeout_ms` a commit may take its time: nobody else has to take part in it."""
        self.partition = partition
        self._clock = clock
        self._serialize = serialize
        self._codec = codec
        self._commit_timeout_ms = commit_timeout_ms

    def append(self, records: Sequence[Any], producer: tuple[int, int] | None) -> int:
        """All or none as one batch; the offset of the first. Raises ApiError."""
        partition = self.partition
        check_replicas(partition)
        now_ms = self._clock.now_ms()
        rows: list[Record] = []
        for record in records:
            key, value = self._serialize(record)
            rows.append(Record(len(rows), now_ms, key, value))
        codec = Codec.NONE if self._codec is None else Codec(self._codec())
        if producer is None:
            batch = build_batch(rows, codec=codec)
        else:
            batch = build_batch(
                rows, codec=codec, producer_id=producer[0], producer_epoch=producer[1], attributes=TRANSACTIONAL_BIT
            )
        return partition.append(batch, now_ms, Origin.COORDINATOR).base_offset

    def when_committed(self, done: Committed) -> None:
        """To the log end: markers of transactions go into it past us."""
        self.partition.when_committed(self.partition.log.log_end_offset, done, self._commit_timeout_ms)


def all_batches(log: Log) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """(buffer, position in it, header) of each batch. Raises ApiError or OSError.

    The end of the log is looked at again when it is reached: meanwhile markers may have been added, and whoever adds
    one knows that it will be read. A log that cannot be read to its end raises: a coordinator that knew only half of it
    would answer with offsets of long ago, and leave decided transactions open."""
    offset = log.log_start_offset
    while (offset := max(offset, log.log_start_offset)) < (end := log.log_end_offset):
        part = log.read(offset, _READ_BYTES, upper_offset=end, min_one=True)
        data = os.pread(part.file, part.size, part.position) if part.size else b""
        before = offset
        for position, header in iterate_batches(data):
            # Compaction leaves gaps: the batch says where the next one may begin, not the count (KAFKA-9065).
            offset = header.last_offset + 1
            yield data, position, header
        if offset <= before:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be read on from offset {before} to {end}")


def replay_batch(
    shard: CoordinatorShard[Any], log: logging.Logger, data: bytes, position: int, header: BatchHeader
) -> int:
    """How many records it had. One that cannot be read must not keep all others of the partition from being served."""
    producer_id = header.producer_id if header.is_transactional else -1
    count, offset = 0, header.base_offset
    try:
        for record in read_records(data, position):
            count, offset = count + 1, record.offset
            if header.is_control:
                _, kind = _MARKER_KEY.unpack_from(record.key or b"")
                shard.replay_marker(header.producer_id, committed=kind == _COMMIT_MARKER)
                continue
            try:
                shard.replay_stored(record.key or b"", record.value, offset, producer_id)
            except MalformedMessage as error:
                _complain(log, offset, error)
    except (CorruptRecords, DecompressionError, struct.error) as error:
        _complain(log, offset, error)
    return count


def _complain(log: logging.Logger, offset: int, error: Exception) -> None:
    log.error("a coordinator record is not readable and was passed over", extra={"offset": offset, "why": str(error)})
