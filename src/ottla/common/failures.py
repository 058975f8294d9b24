"""What a failure is, so that whoever meets it knows what to do next: a property of an error code and of an exception.

It is data, not a sentence: it crosses process boundaries as its value, and nobody has to look for words in a message.
"""

from __future__ import annotations

from enum import StrEnum

from ottla.common.errors import ErrorCode, OttlaError


class Failure(StrEnum):
    # Passes by itself: the same request again, a little later.
    RETRIABLE = "retriable"
    # The transaction is lost, its producer is not: abort, initialise, do all of it again.
    ABORTABLE = "abortable"
    # The epoch is not ours any more: the transaction timed out, or somebody else took over. InitProducerId tells.
    EPOCH = "epoch"
    # Somebody else has taken over.
    FENCED = "fenced"
    # What is there does not fit: offsets that are gone, records that the topic refuses.
    DATA = "data"
    # A person has to change something first.
    SETTINGS = "settings"


# Those whose exceptions in Java's client extend RetriableException, and BROKER_NOT_AVAILABLE.
RETRIABLE = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
# A coordinator that is to be found again.
MOVED = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_OF_CODE = {
    **dict.fromkeys(RETRIABLE, Failure.RETRIABLE),
    ErrorCode.INVALID_PRODUCER_EPOCH: Failure.EPOCH,
    ErrorCode.PRODUCER_FENCED: Failure.EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Failure.EPOCH,
    # The transactional id has expired, or somebody has taken it over after that.
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Failure.ABORTABLE,
    ErrorCode.INVALID_TXN_STATE: Failure.ABORTABLE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Failure.ABORTABLE,
    ErrorCode.TRANSACTION_ABORTABLE: Failure.ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID: Failure.ABORTABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR: Failure.ABORTABLE,
    ErrorCode.INVALID_RECORD: Failure.DATA,
    ErrorCode.INVALID_TIMESTAMP: Failure.DATA,
    ErrorCode.MESSAGE_TOO_LARGE: Failure.DATA,
    ErrorCode.OFFSET_OUT_OF_RANGE: Failure.DATA,
    ErrorCode.RECORD_LIST_TOO_LARGE: Failure.DATA,
}


def failure_of(code: int) -> Failure:
    """Of an error code that a broker answered with; one that we do not know is for a person to look at."""
    return _OF_CODE.get(ErrorCode(code), Failure.SETTINGS)


_DENIALS = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def refusal(code: int, what: str, otherwise: str) -> str:
    """Why `what` cannot be used: a right that is missing, or `otherwise`, and the code."""
    name = ErrorCode(code).name
    if code in _DENIALS:
        return f"the cluster does not let this user use {what} ({name}): ask whoever looks after it for the right."
    return f"{otherwise}: {name}."


class ClientFailure(OttlaError):
    """An OttlaError that says what it is."""

    failure: Failure = Failure.SETTINGS


class Retriable(ClientFailure):
    """It may pass by itself: the same question again, a little later."""

    failure = Failure.RETRIABLE


class RetriableAnswer(Retriable):
    """A broker answered with a retriable error code: it is there, and keeps its connection."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def check(code: int, what: str) -> None:
    """Raises RetriableAnswer for a retriable error code, OttlaError for any other."""
    if code in RETRIABLE:
        raise RetriableAnswer(f"the cluster cannot serve {what} now: {ErrorCode(code).name}.", code)
    if code:
        raise OttlaError(refusal(code, what, f"the cluster refused to serve {what}"))


def types_by_name() -> dict[str, type[ClientFailure]]:
    """All that are loaded, by the names that a traceback from another process has for them."""
    found: dict[str, type[ClientFailure]] = {}
    waiting: list[type[ClientFailure]] = [ClientFailure]
    while waiting:
        kind = waiting.pop()
        found[kind.__name__] = kind
        waiting += kind.__subclasses__()
    return found


def failure_in(error: BaseException) -> Failure:
    """What an exception is to a client of a cluster: a connection that breaks may be made again."""
    if isinstance(error, ClientFailure):
        return error.failure
    return Failure.RETRIABLE if isinstance(error, OSError) else Failure.SETTINGS
