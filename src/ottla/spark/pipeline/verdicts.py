"""What a failure means: may it pass, so that the pipeline starts again, and how is it said in one sentence.

Our own errors carry their type. Those of the source were raised in other processes and arrive as a traceback inside
Spark's exceptions: the class that it names is the type (`worker_errors`). Spark's errors carry a condition and an
SQLSTATE, whose class says whether it is a row or the query that is wrong. A few mean that the machine failed. What
nobody knows is tried again, but only a few times.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

import ottla.client.access.security
import ottla.client.fetching
import ottla.client.producing
import ottla.client.schema_registry
import ottla.spark.spool.sending  # noqa: F401  (these modules define the types that other processes may name)
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, failure_in, types_by_name
from ottla.spark.pipeline.sentences import first_sentence
from ottla.spark.pipeline.worker_errors import Raised, raised_in
from ottla.spark.sink.publishing import StaleCheckpoint


class Retry(Enum):
    """Whether to start again."""

    UNLIMITED = "as often as it takes"
    LIMITED = "a few times"
    NEVER = "never"


@dataclass(frozen=True)
class Verdict:
    retry: Retry
    sentence: str
    # The JVM is gone, and the session with it.
    lost_session: bool = False


_RETRY = {
    Failure.RETRIABLE: Retry.UNLIMITED,
    Failure.ABORTABLE: Retry.UNLIMITED,
    Failure.EPOCH: Retry.UNLIMITED,
    Failure.FENCED: Retry.NEVER,
    Failure.DATA: Retry.NEVER,
    Failure.SETTINGS: Retry.NEVER,
}
_MACHINE = re.compile(
    r"ExecutorLostFailure|Python worker exited unexpectedly|Python worker failed to connect|worker lost|FetchFailed|"
    r"Connection reset|Connection refused|Broken pipe|EOFException|has been shut down|was shut down|NoRouteToHost"
)
_TWO_WRITERS = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY")
_OTHER_STATE = re.compile(
    r"STATE_STORE\w*SCHEMA|STATE_STORE_\w*FORMAT|SCHEMA_MISMATCH|STREAMING_STATEFUL_OPERATOR_NOT_MATCH"
)
_LOST_JVM = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
_WRONG_QUERY = ("AnalysisException", "ParseException", "IllegalArgumentException", "PySparkTypeError")
# Of code that is not ours: a service that it calls may come back.
_MAY_PASS = (
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "TimeoutError",
)
# `[STREAM_FAILED] Query [id = ...] terminated with exception: [CONDITION] ...`
_STREAM_FAILED = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s")
_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
_OF_PYTHON = ("PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR", "PYTHON_DATA_SOURCE_ERROR")


def judge(error: BaseException) -> Verdict:
    if type(error).__name__ == "StreamingQueryException" and error.__cause__ is not None:
        # What our own part of the query met, before Spark made a text of it.
        error = error.__cause__
    if isinstance(error, OttlaError):
        return _ours(error)
    kind, text = type(error).__name__, _STREAM_FAILED.sub("", str(error), count=1)
    if kind in _LOST_JVM:
        return Verdict(Retry.UNLIMITED, "Spark's JVM is gone.", lost_session=True)
    found = _CONDITION.match(text)
    condition = found[1] if found else ""
    if (kind == "PythonException" or condition in _OF_PYTHON) and (raised := raised_in(text)) is not None:
        return _raised(raised)
    return _of_condition(error, condition, text) or _of_machine(text) or _unknown(kind, text)


def _ours(error: OttlaError) -> Verdict:
    if isinstance(error, StaleCheckpoint):
        # A runner elsewhere has gone on since this one read the checkpoint: read again, it fits, or is an old copy.
        return Verdict(Retry.LIMITED, str(error))
    return Verdict(_RETRY[failure_in(error)], str(error))


def _raised(raised: Raised) -> Verdict:
    """In a Python process of an executor, or in one that plans a source."""
    if raised.is_ours:
        known = types_by_name().get(raised.name)
        return Verdict(Retry.NEVER if known is None else _RETRY[known.failure], raised.said)
    said = f"{raised.kind}: {raised.said.rstrip('.')}" if raised.said else raised.kind
    retry = Retry.UNLIMITED if raised.name in _MAY_PASS else Retry.NEVER
    return Verdict(retry, f"the pipeline's own code failed: {said}.")


def _of_condition(error: BaseException, condition: str, text: str) -> Verdict | None:
    if condition == "JAVA_GATEWAY_EXITED":
        # A wrong master or setting, or no memory: its last words are in the log, not in the exception.
        return Verdict(Retry.LIMITED, "Spark has not started: `ottla pipeline logs` shows why.")
    if condition == "USER_RAISED_EXCEPTION":
        # The query itself refuses a row, by `raise_error`.
        return Verdict(Retry.NEVER, first_sentence(text))
    if _TWO_WRITERS.match(condition):
        return Verdict(Retry.NEVER, "another runner uses the same checkpoint: only one of them can go on.")
    if _OTHER_STATE.match(condition):
        return Verdict(
            Retry.NEVER,
            "the query was changed, and the state in its checkpoint does not fit it: start over with --reset.",
        )
    sql_class = _sql_state(error, text)[:2] if condition else ""
    if type(error).__name__ in _WRONG_QUERY or sql_class in ("42", "0A"):
        return Verdict(Retry.NEVER, f"the query is wrong: {first_sentence(text)}")
    if sql_class in ("22", "21", "23"):
        return Verdict(Retry.NEVER, f"a row cannot be computed: {first_sentence(text)}")
    return None


def _sql_state(error: BaseException, text: str) -> str:
    """Of a stream that failed it is in the text alone, and last: what stands before it may quote anything."""
    state = None
    if type(error).__name__ != "StreamingQueryException":
        with suppress(Exception):  # it asks the JVM
            state = error.getSqlState()  # type: ignore[attr-defined]
    return str(state) if state else ["", *_SQLSTATE.findall(text)][-1]


def _of_machine(text: str) -> Verdict | None:
    if "No space left on device" in text:
        return Verdict(
            Retry.NEVER,
            "there is no room left on a disk: make some where the checkpoint and Spark's temporary files "
            "(spark.local.dir) are, and start again.",
        )
    if ("JVM" in text and "shut down" in text) or "SparkContext was shut down" in text:
        return Verdict(Retry.UNLIMITED, "Spark was shut down.", lost_session=True)
    if not _MACHINE.search(text):
        return None
    if "failed to connect back" in text:
        return Verdict(
            Retry.UNLIMITED, "a Python worker did not start within Spark's ten seconds: the machine is busy."
        )
    if "Python worker" in text:
        return Verdict(Retry.UNLIMITED, "a Python worker ended unexpectedly.")
    if "Executor" in text:
        return Verdict(Retry.UNLIMITED, "an executor was lost.")
    return Verdict(Retry.UNLIMITED, f"a connection inside Spark broke: {first_sentence(text)}")


def _unknown(kind: str, text: str) -> Verdict:
    return Verdict(Retry.LIMITED, f"{kind}: {first_sentence(text)}")
