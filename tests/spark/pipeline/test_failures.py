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
# And one of a Python worker.
FROM_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/{file}", line 13, in plain
    raise it
    ^^^^^^^^
{raised}

 SQLSTATE: 39000
"""
UNREACHABLE = "ottla.client.cluster.Unreachable: away."
FROM_US = FROM_WORKER.format(file="ottla/client/cluster.py", raised=UNREACHABLE)


class StreamingQueryException(Exception):
    """Spark's has this name."""


class PythonException(Exception):
    """So has this."""


class ArithmeticException(Exception):
    pass


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
            PythonException(FROM_WORKER.format(file="orders.py", raised="ValueError: no number")),
            Hope.NONE,
            "the pipeline's own code failed: ValueError: no number.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised="AssertionError")),
            Hope.NONE,
            "the pipeline's own code failed: AssertionError.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised="ConnectionRefusedError: [Errno 111] no")),
            Hope.GOOD,
            "the pipeline's own code failed: ConnectionRefusedError: [Errno 111] no.",
        ),
        (
            PythonException(FROM_WORKER.format(file="ottla/client/cluster.py", raised=UNREACHABLE)),
            Hope.GOOD,
            "away.",
        ),
        # Raised by the pipeline, which may import what it likes.
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=UNREACHABLE)),
            Hope.NONE,
            "the pipeline's own code failed: ottla.client.cluster.Unreachable: away.",
        ),
        # Texts that quote us: a pipeline may read the logs of another one.
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=f"ValueError: cannot read\n{UNREACHABLE}")),
            Hope.NONE,
            "the pipeline's own code failed: ValueError: cannot read.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=f"ValueError: cannot read\n{FROM_US}")),
            Hope.NONE,
            "the pipeline's own code failed: ValueError: cannot read.",
        ),
        (
            ArithmeticException(f"[CAST_INVALID_INPUT] The value '{FROM_US}' cannot be cast. SQLSTATE: 22018"),
            Hope.NONE,
            "a row cannot be computed: The value 'An exception was thrown from the Python worker.",
        ),
        (
            ArithmeticException(
                "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012\n== SQL ==\na / b\n"
            ),
            Hope.NONE,
            "a row cannot be computed: Division by zero. Use `try_divide`.",
        ),
        (
            ArithmeticException("[CAST_INVALID_INPUT] The value 'written concurrently' is no INT. SQLSTATE: 22018"),
            Hope.NONE,
            "a row cannot be computed: The value 'written concurrently' is no INT.",
        ),
        (
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."),
            Hope.SOME,
            "Spark has not started: `ottla pipeline logs` shows why.",
        ),
        (
            ArithmeticException("[USER_RAISED_EXCEPTION] no such country SQLSTATE: P0001"),
            Hope.NONE,
            "no such country.",
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


def test_what_our_part_of_a_query_met_counts_and_not_the_text_that_spark_made_of_it() -> None:
    error = StreamingQueryException(FROM_SOURCE.format(name="ottla.client.cluster.Unreachable", sentence="away."))
    error.__cause__ = ArithmeticException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    assert judge(error).sentence == "a row cannot be computed: Division by zero."


def test_the_last_exception_of_a_chain_counts() -> None:
    first = FROM_WORKER.format(file="ottla/client/connection.py", raised="ConnectionResetError: it hung up")
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    second = FROM_US.partition("\n")[2]
    assert judge(PythonException(first + between + second)).sentence == "away."
