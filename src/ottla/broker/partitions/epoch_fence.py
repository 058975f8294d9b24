"""The fence of KIP-320: a client says which leader epoch it believes in, and a stale belief is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition

NO_EPOCH = -1


def epoch_error(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    """NONE, or why a request for `current_leader_epoch` must not be served."""
    if current_leader_epoch == NO_EPOCH or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
