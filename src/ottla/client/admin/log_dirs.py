"""How the log directories of a cluster's brokers are (DescribeLogDirs; room on the disk since KIP-827)."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol.messages import DescribeLogDirsRequest

# Below both, a segment or an index that is about to be made may find no room.
_SCARCE_BYTES = 64 << 20
_SCARCE_SHARE = 0.01


@dataclass(frozen=True)
class LogDir:
    broker: int
    path: str
    # None where the broker does not say.
    total_bytes: int | None
    usable_bytes: int | None
    # None while all is well.
    problem: str | None


def describe_log_dirs(cluster: ClusterClient, broker: int) -> list[LogDir]:
    """Raises OttlaError when this broker does not tell, OSError when it is gone."""
    answer = cluster.broker(broker).call(DescribeLogDirsRequest(topics=[]))
    if answer.error_code:
        raise OttlaError(f"broker {broker} does not tell: {ErrorCode(answer.error_code).name}")
    return [
        LogDir(
            broker,
            row.log_dir,
            row.total_bytes if row.total_bytes >= 0 else None,
            row.usable_bytes if row.usable_bytes >= 0 else None,
            _problem(row.error_code, row.total_bytes, row.usable_bytes),
        )
        for row in answer.results
    ]


def _problem(code: int, total_bytes: int, usable_bytes: int) -> str | None:
    scarce = 0 <= usable_bytes < min(_SCARCE_BYTES, total_bytes * _SCARCE_SHARE)
    if code:
        return "fails for want of room" if scarce else "fails"
    return "nearly full" if scarce else None
