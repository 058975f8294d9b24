"""One partition of `__consumer_offsets` as its group shard sees it: records in, and at start-up records out.

Coordinator records are ours alone to write; while the partition is read only markers of transactions are added to it.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence

from ottla.broker.coordinators.enough_replicas import check_replicas
from ottla.broker.coordinators.group_shard import GroupShard
from ottla.broker.partitions.partition import Partition
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.groups import records as group_records
from ottla.groups.result import Record
from ottla.protocol.codec import MalformedMessage
from ottla.records.batch import TRANSACTIONAL_BIT, BatchHeader
from ottla.records.compression import Codec, DecompressionError
from ottla.records.record import CorruptRecords, build_batch, read_records
from ottla.records.record import Record as LogRecord
from ottla.storage.results import Origin

log = logging.getLogger("ottla.groups")

_MARKER_KEY = struct.Struct(">hh")
_COMMIT_MARKER = 1


class GroupLog:
    def __init__(
        self,
        partition: Partition,
        clock: Clock,
        codec: Callable[[], int],
        commit_timeout_ms: int | None = None,
    ) -> None:
        """Without `commit_timeout_ms` a commit may take its time: nobody else has to take part in it."""
        self._partition = partition
        self._clock = clock
        self._codec = codec
        self._commit_timeout_ms = commit_timeout_ms

    # --- writing

    def append(self, records: Sequence[Record], producer: tuple[int, int] | None) -> int:
        check_replicas(self._partition)
        now_ms = self._clock.now_ms()
        rows = []
        for number, record in enumerate(records):
            key, value = group_records.serialize(record)
            rows.append(LogRecord(number, now_ms, key, value))
        if producer is None:
            batch = build_batch(rows, codec=Codec(self._codec()))
        else:
            batch = build_batch(
                rows,
                codec=Codec(self._codec()),
                producer_id=producer[0],
                producer_epoch=producer[1],
                attributes=TRANSACTIONAL_BIT,
            )
        return self._partition.append(batch, now_ms, Origin.COORDINATOR).base_offset

    def when_committed(self, done: Callable[[ErrorCode], None]) -> None:
        def tell(error: Exception | None) -> None:
            if error is None:
                done(ErrorCode.NONE)
            else:
                done(error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR)

        # To the log end: markers of transactions go into it past us.
        self._partition.when_committed(self._partition.log.log_end_offset, tell, self._commit_timeout_ms)


# --- reading


def replay_batch(shard: GroupShard, data: bytes, position: int, header: BatchHeader) -> int:
    producer_id = header.producer_id if header.is_transactional else -1
    count = 0
    try:
        for record in read_records(data, position):
            if header.is_control:
                _, kind = _MARKER_KEY.unpack_from(record.key or b"")
                shard.state.end_transaction(header.producer_id, committed=kind == _COMMIT_MARKER)
            else:
                _replay(shard, record, producer_id)
            count += 1
    except (CorruptRecords, DecompressionError, struct.error) as error:
        _complain(header.base_offset, error)
    return count


def _replay(shard: GroupShard, record: LogRecord, producer_id: int) -> None:
    try:
        parsed = group_records.deserialize(record.key or b"", record.value)
        if parsed is not None:
            shard.state.replay(parsed, record.offset, producer_id)
    except MalformedMessage as error:
        _complain(record.offset, error)


def _complain(offset: int, error: Exception) -> None:
    """One record that cannot be read must not keep all groups of the partition from being served."""
    log.error("group record is not readable and was passed over", extra={"offset": offset, "why": str(error)})
