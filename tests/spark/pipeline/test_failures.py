"""Which failures are waited out, and what is said of the others."""

from __future__ import annotations

import pytest

from ottla.client.cluster import Unreachable
from ottla.client.fetching import DataLoss
from ottla.client.producing import ProducerFenced, TransactionRefused
from ottla.client.security import AccessRefused
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, Retriable
from ottla.spark.pipeline.failures import Hope, judge
from ottla.spark.sink.publishing import StaleCheckpoint

# As Spark passes an exception on that our source raised in a process of its own.
FROM_SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "/x/pyspark/sql/streaming/python_streaming_source_runner.py", line 1, in main
  File "/x/ottla/spark/source/stream.py", line 9, in latestOffset
{name}: {sentence}
 SQLSTATE: 38000
"""


class StreamingQueryException(Exception):
    """Spark's has this name."""


class AnalysisException(Exception):
    pass


class Py4JNetworkError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "hope", "sentence"),
    [
        (Unreachable("cannot reach any broker at x."), Hope.GOOD, "cannot reach any broker at x."),
        (ProducerFenced("another writer has taken over."), Hope.NONE, "another writer has taken over."),
        (AccessRefused("it did not answer as we trust."), Hope.NONE, "it did not answer as we trust."),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.security.AccessRefused", sentence="no.")),
            Hope.NONE,
            "no.",
        ),
        (DataLoss("data were lost."), Hope.NONE, "data were lost."),
        (TransactionRefused("it timed out.", Failure.EPOCH), Hope.GOOD, "it timed out."),
        (TransactionRefused("too large.", Failure.DATA), Hope.NONE, "too large."),
        (
            StreamingQueryException(
                FROM_SOURCE.format(name="ottla.spark.spool.sending.SpoolUnreachable", sentence="it hung up.")
            ),
            Hope.GOOD,
            "it hung up.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.lookup.Absent", sentence="not there yet.")),
            Hope.GOOD,
            "not there yet.",
        ),
        (OttlaError("there is no topic 'x'."), Hope.NONE, "there is no topic 'x'."),
        (
            StaleCheckpoint("the checkpoint of 'x' is older than what was published: ..."),
            Hope.SOME,
            "the checkpoint of 'x' is older than what was published: ...",
        ),
        (
            Retriable("records could not be written for 60 s: x."),
            Hope.GOOD,
            "records could not be written for 60 s: x.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.cluster.Unreachable", sentence="away.")),
            Hope.GOOD,
            "away.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.fetching.DataLoss", sentence="gone.")),
            Hope.NONE,
            "gone.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.common.errors.OttlaError", sentence="no topic.")),
            Hope.NONE,
            "no topic.",
        ),
        (
            StreamingQueryException("Job aborted: ExecutorLostFailure (executor 1 exited caused by ...)"),
            Hope.GOOD,
            "an executor was lost.",
        ),
        (
            StreamingQueryException("Python worker exited unexpectedly (crashed)"),
            Hope.GOOD,
            "a Python worker ended unexpectedly.",
        ),
        (
            AnalysisException(
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Plan"
            ),
            Hope.NONE,
            "the query is wrong: A column `x` cannot be resolved.",
        ),
        (
            StreamingQueryException("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log."),
            Hope.NONE,
            "another runner uses the same checkpoint: only one of them can go on.",
        ),
        (
            StreamingQueryException("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match"),
            Hope.NONE,
            "the query was changed, and the state in its checkpoint does not fit it: start over with --reset.",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), Hope.GOOD, "Spark's JVM is gone."),
        (
            StreamingQueryException(
                'x\nTraceback (most recent call last):\n  File "o.py"\nValueError: no number\n\nat org'
            ),
            Hope.NONE,
            "the pipeline's own code failed: ValueError: no number.",
        ),
        (StreamingQueryException("[X] Something else\nat org"), Hope.SOME, "StreamingQueryException: Something else."),
    ],
)
def test_a_failure_is_judged(error: Exception, hope: Hope, sentence: str) -> None:
    verdict = judge(error)
    assert (verdict.hope, verdict.sentence) == (hope, sentence)


def test_a_lost_jvm_takes_the_session_with_it() -> None:
    assert judge(Py4JNetworkError("")).lost_session
    assert not judge(Unreachable("")).lost_session
