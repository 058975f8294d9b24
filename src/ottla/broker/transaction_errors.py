"""The coordinator's errors as a client of a given version understands them."""

from __future__ import annotations

from ottla.common.errors import ErrorCode


def for_version(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """Versions before `fenced_since` know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED today (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def for_produce(code: ErrorCode, version: int) -> ErrorCode:
    """What a refused transactional batch is answered with. A producer that cannot handle CONCURRENT_TRANSACTIONS on
    a produce is given an error that it retries; TRANSACTION_ABORTABLE (KIP-890) is known from v11 on."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.INVALID_TXN_STATE and version >= 11:
        return ErrorCode.TRANSACTION_ABORTABLE
    if version < 12 and code in (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
