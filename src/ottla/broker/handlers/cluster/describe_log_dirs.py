"""DescribeLogDirs v1-5. What each log dir holds and how much room it has; a null list of topics means all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.storage.log import Log
from ottla.storage.log_dirs.future_log import FutureLog
from ottla.storage.log_dirs.log_dir import LogDir

Partition = DescribeLogDirsResponse.DescribeLogDirsPartition
Topics = dict[str, list[Partition]]

_UNKNOWN_BYTES = -1


def handle(broker: Broker, context: RequestContext, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    by_dir: dict[Path, Topics] = {}
    for tp in _asked(broker, request):
        yield None
        log = broker.logs.get(tp)
        if log is not None:
            by_dir.setdefault(log.dir.parent, {}).setdefault(tp.topic, []).append(_current(log))
        move = broker.replica_moves.get(tp)
        if move is not None and move.future is not None:
            by_dir.setdefault(move.target.path, {}).setdefault(tp.topic, []).append(_future(move.future))
    return DescribeLogDirsResponse(
        results=[_describe(log_dir, by_dir.get(log_dir.path, {})) for log_dir in broker.logs.dirs]
    )


def _asked(broker: Broker, request: DescribeLogDirsRequest) -> Iterable[TopicPartition]:
    if request.topics is None:
        return list(broker.logs.logs)
    # A dict, because a client may name a partition twice.
    return dict.fromkeys(TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions)


def _describe(log_dir: LogDir, topics: Topics) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    path = str(log_dir.path.absolute())
    if log_dir.offline is not None:
        return DescribeLogDirsResponse.DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    total, usable = _space(log_dir.path)
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        # A directory that lacks room or file descriptors is still read from, but an operator should see it.
        error_code=ErrorCode.KAFKA_STORAGE_ERROR if log_dir.refusals.current else ErrorCode.NONE,
        log_dir=path,
        topics=[
            DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )


def _current(log: Log) -> Partition:
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=log.partition,
        partition_size=log.size_bytes,
        # How far the replica is behind what clients may read; a leader is never.
        offset_lag=max(0, log.high_watermark - log.log_end_offset),
    )


def _future(future: FutureLog) -> Partition:
    """A copy on its way into this directory."""
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=future.log.partition,
        partition_size=future.size_bytes,
        offset_lag=max(0, future.log.log_end_offset - future.end_offset),
        is_future_key=True,
    )


def _space(path: Path) -> tuple[int, int]:
    try:
        found = os.statvfs(path)
    except OSError:
        return _UNKNOWN_BYTES, _UNKNOWN_BYTES
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
