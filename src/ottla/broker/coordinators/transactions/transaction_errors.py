"""The coordinator's errors as a client of a given request and version understands them."""

from __future__ import annotations

from ottla.common.errors import ErrorCode

_E = ErrorCode
_ABORTABLE_IN_PRODUCE_SINCE = 11
_ABORTABLE_IN_OFFSETS_SINCE = 4
_ADDS_PARTITIONS_SINCE = 12
_COORDINATOR_AWAY = (
    _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_COORDINATOR,
    _E.NETWORK_EXCEPTION,
)


def for_version(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """Versions before `fenced_since` know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED today (KIP-588)."""
    if code is _E.PRODUCER_FENCED and version < fenced_since:
        return _E.INVALID_PRODUCER_EPOCH
    return code


def _by_partition_leader(code: ErrorCode, version: int, abortable_since: int) -> ErrorCode:
    """Whoever writes to a partition is told INVALID_PRODUCER_EPOCH, and TRANSACTION_ABORTABLE (KIP-890) only if it
    knows the word."""
    if code is _E.PRODUCER_FENCED:
        return _E.INVALID_PRODUCER_EPOCH
    if code is _E.TRANSACTION_ABORTABLE and version < abortable_since:
        return _E.INVALID_TXN_STATE
    return code


def for_produce(code: ErrorCode, version: int) -> ErrorCode:
    """What a refused transactional batch is answered with. Producers look for coordinators in other places: what they
    are to try again is NOT_ENOUGH_REPLICAS here, which makes them do just that."""
    if code in _COORDINATOR_AWAY or (code is _E.CONCURRENT_TRANSACTIONS and version < _ADDS_PARTITIONS_SINCE):
        return _E.NOT_ENOUGH_REPLICAS
    return _by_partition_leader(code, version, _ABORTABLE_IN_PRODUCE_SINCE)


def for_offsets(code: ErrorCode, version: int) -> ErrorCode:
    """What refused offsets of a transaction are answered with. A coordinator of the transaction that cannot be reached
    is no reason to look for that of the group again."""
    if code is _E.NETWORK_EXCEPTION:
        return _E.COORDINATOR_LOAD_IN_PROGRESS
    return _by_partition_leader(code, version, _ABORTABLE_IN_OFFSETS_SINCE)
