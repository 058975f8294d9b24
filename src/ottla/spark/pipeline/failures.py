"""What a failure means: may it pass, so that the pipeline starts again, and how is it said in one sentence.

Our own errors carry their type. Those of the source were raised in other processes and arrive as text inside Spark's
exceptions, where the last line that begins with `ottla.` is ours: the class that it names is the type. Of Spark's
errors a few mean that the machine failed; those of analysis mean that the query is wrong. What nobody knows is tried
again, but only a few times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

import ottla.client.fetching
import ottla.client.producing
import ottla.client.security
import ottla.spark.spool.sending  # noqa: F401  (these modules define the types that other processes may name)
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, failure_in, types_by_name
from ottla.spark.pipeline.sentences import first_sentence
from ottla.spark.sink.publishing import StaleCheckpoint


class Hope(Enum):
    """Whether to start again."""

    GOOD = "as often as it takes"
    SOME = "a few times"
    NONE = "never"


@dataclass(frozen=True)
class Verdict:
    hope: Hope
    sentence: str
    # The JVM is gone, and the session with it.
    lost_session: bool = False


_OURS = re.compile(r"^(?:[\w.]*\.)?ottla\.[\w.]*?(\w+): (.+)$", re.MULTILINE)
_HOPE = {
    Failure.RETRIABLE: Hope.GOOD,
    Failure.ABORTABLE: Hope.GOOD,
    Failure.EPOCH: Hope.GOOD,
    Failure.FENCED: Hope.NONE,
    Failure.DATA: Hope.NONE,
    Failure.SETTINGS: Hope.NONE,
}
_MACHINE = re.compile(
    r"ExecutorLostFailure|Python worker exited unexpectedly|Python worker failed to connect|worker lost|FetchFailed|"
    r"Connection reset|Connection refused|Broken pipe|EOFException|has been shut down|was shut down|NoRouteToHost"
)
# The query itself refuses a row, by `raise_error`.
_REFUSED_ROW = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_TWO_WRITERS = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|concurrently", re.IGNORECASE)
_OTHER_STATE = re.compile(
    r"STATE_STORE\w*SCHEMA|STATE_STORE_\w*FORMAT|SCHEMA_MISMATCH|STREAMING_STATEFUL_OPERATOR_NOT_MATCH"
)
_LOST_JVM = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
_WRONG_QUERY = ("AnalysisException", "ParseException", "IllegalArgumentException", "PySparkTypeError")


def judge(error: BaseException) -> Verdict:
    if isinstance(error, OttlaError):
        return _ours(error)
    kind, text = type(error).__name__, str(error)
    if kind in _LOST_JVM:
        return Verdict(Hope.GOOD, "Spark's JVM is gone.", lost_session=True)
    if found := list(_OURS.finditer(text)):
        name, sentence = found[-1].groups()
        known = types_by_name().get(name)
        return Verdict(Hope.NONE if known is None else _HOPE[known.failure], sentence.strip())
    if refused := _REFUSED_ROW.search(text):
        return Verdict(Hope.NONE, refused[1].strip())
    if _TWO_WRITERS.search(text):
        return Verdict(Hope.NONE, "another runner uses the same checkpoint: only one of them can go on.")
    if _OTHER_STATE.search(text):
        return Verdict(
            Hope.NONE,
            "the query was changed, and the state in its checkpoint does not fit it: start over with --reset.",
        )
    if kind in _WRONG_QUERY or "AnalysisException" in text[:200]:
        return Verdict(Hope.NONE, f"the query is wrong: {first_sentence(text)}")
    if ("JVM" in text and "shut down" in text) or "SparkContext was shut down" in text:
        return Verdict(Hope.GOOD, "Spark was shut down.", lost_session=True)
    if _MACHINE.search(text):
        return Verdict(Hope.GOOD, _machine_sentence(text))
    return _unknown(kind, text)


def _ours(error: OttlaError) -> Verdict:
    if isinstance(error, StaleCheckpoint):
        # A runner elsewhere has gone on since this one read the checkpoint: read again, it fits, or is an old copy.
        return Verdict(Hope.SOME, str(error))
    return Verdict(_HOPE[failure_in(error)], str(error))


def _machine_sentence(text: str) -> str:
    if "Python worker" in text:
        return "a Python worker ended unexpectedly."
    if "Executor" in text:
        return "an executor was lost."
    return f"a connection inside Spark broke: {first_sentence(text)}"


def _unknown(kind: str, text: str) -> Verdict:
    # An exception of the pipeline's own code is the last one in a traceback from a worker that Spark did not raise.
    raised = re.findall(
        r"^(?!org\.|java|scala\.|py4j\.|pyspark\.)([\w.]+(?:Error|Exception)): (.*)$", text, re.MULTILINE
    )
    if "Traceback (most recent call last)" in text and raised:
        name, said = raised[-1]
        return Verdict(Hope.NONE, f"the pipeline's own code failed: {name}: {said.strip().rstrip('.')}.")
    return Verdict(Hope.SOME, f"{kind}: {first_sentence(text)}")
