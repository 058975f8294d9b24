"""Which failures are waited out, and what is said of the others."""

from __future__ import annotations

import pytest

from ottla.client.access.security import AccessRefused
from ottla.client.cluster import Unreachable
from ottla.client.fetching import DataLoss
from ottla.client.producing import ProducerFenced, TransactionRefused
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, Retriable
from ottla.spark.pipeline.verdicts import Retry, judge
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
    ("error", "retry", "sentence"),
    [
        (Unreachable("cannot reach any broker at x."), Retry.UNLIMITED, "cannot reach any broker at x."),
        (ProducerFenced("another writer has taken over."), Retry.NEVER, "another writer has taken over."),
        (AccessRefused("it did not answer as we trust."), Retry.NEVER, "it did not answer as we trust."),
        (
            StreamingQueryException(
                FROM_SOURCE.format(name="ottla.client.access.security.AccessRefused", sentence="no.")
            ),
            Retry.NEVER,
            "no.",
        ),
        (DataLoss("data were lost."), Retry.NEVER, "data were lost."),
        (TransactionRefused("it timed out.", Failure.EPOCH), Retry.UNLIMITED, "it timed out."),
        (TransactionRefused("too large.", Failure.DATA), Retry.NEVER, "too large."),
        (
            StreamingQueryException(
                FROM_SOURCE.format(name="ottla.spark.spool.sending.SpoolUnreachable", sentence="it hung up.")
            ),
            Retry.UNLIMITED,
            "it hung up.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.cluster.Absent", sentence="not there yet.")),
            Retry.UNLIMITED,
            "not there yet.",
        ),
        (OttlaError("there is no topic 'x'."), Retry.NEVER, "there is no topic 'x'."),
        (
            StaleCheckpoint("the checkpoint of 'x' is older than what was published: ..."),
            Retry.LIMITED,
            "the checkpoint of 'x' is older than what was published: ...",
        ),
        (
            Retriable("records could not be written for 60 s: x."),
            Retry.UNLIMITED,
            "records could not be written for 60 s: x.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.cluster.Unreachable", sentence="away.")),
            Retry.UNLIMITED,
            "away.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.client.fetching.DataLoss", sentence="gone.")),
            Retry.NEVER,
            "gone.",
        ),
        (
            StreamingQueryException(FROM_SOURCE.format(name="ottla.common.errors.OttlaError", sentence="no topic.")),
            Retry.NEVER,
            "no topic.",
        ),
        (
            StreamingQueryException("Job aborted: ExecutorLostFailure (executor 1 exited caused by ...)"),
            Retry.UNLIMITED,
            "an executor was lost.",
        ),
        (
            StreamingQueryException("Python worker exited unexpectedly (crashed)"),
            Retry.UNLIMITED,
            "a Python worker ended unexpectedly.",
        ),
        (
            StreamingQueryException("org.apache.spark.SparkException: Python worker failed to connect back."),
            Retry.UNLIMITED,
            "a Python worker did not start within Spark's ten seconds: the machine is busy.",
        ),
        (
            AnalysisException(
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Plan"
            ),
            Retry.NEVER,
            "the query is wrong: A column `x` cannot be resolved.",
        ),
        (
            StreamingQueryException("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log."),
            Retry.NEVER,
            "another runner uses the same checkpoint: only one of them can go on.",
        ),
        (
            StreamingQueryException("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match"),
            Retry.NEVER,
            "the query was changed, and the state in its checkpoint does not fit it: start over with --reset.",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), Retry.UNLIMITED, "Spark's JVM is gone."),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised="ValueError: no number")),
            Retry.NEVER,
            "the pipeline's own code failed: ValueError: no number.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised="AssertionError")),
            Retry.NEVER,
            "the pipeline's own code failed: AssertionError.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised="ConnectionRefusedError: [Errno 111] no")),
            Retry.UNLIMITED,
            "the pipeline's own code failed: ConnectionRefusedError: [Errno 111] no.",
        ),
        (
            PythonException(FROM_WORKER.format(file="ottla/client/cluster.py", raised=UNREACHABLE)),
            Retry.UNLIMITED,
            "away.",
        ),
        (
            PythonException(
                FROM_WORKER.format(
                    file="ottla/schemas/json_rows.py",
                    raised="ottla.common.errors.OttlaError: rows cannot be written with their schema: too deep.",
                )
            ),
            Retry.NEVER,
            "rows cannot be written with their schema: too deep.",
        ),
        # Raised by the pipeline, which may import what it likes.
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=UNREACHABLE)),
            Retry.NEVER,
            "the pipeline's own code failed: ottla.client.cluster.Unreachable: away.",
        ),
        # Texts that quote us: a pipeline may read the logs of another one.
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=f"ValueError: cannot read\n{UNREACHABLE}")),
            Retry.NEVER,
            "the pipeline's own code failed: ValueError: cannot read.",
        ),
        (
            PythonException(FROM_WORKER.format(file="orders.py", raised=f"ValueError: cannot read\n{FROM_US}")),
            Retry.NEVER,
            "the pipeline's own code failed: ValueError: cannot read.",
        ),
        (
            ArithmeticException(f"[CAST_INVALID_INPUT] The value '{FROM_US}' cannot be cast. SQLSTATE: 22018"),
            Retry.NEVER,
            "a row cannot be computed: The value 'An exception was thrown from the Python worker.",
        ),
        (
            ArithmeticException(
                "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012\n== SQL ==\na / b\n"
            ),
            Retry.NEVER,
            "a row cannot be computed: Division by zero. Use `try_divide`.",
        ),
        (
            ArithmeticException("[CAST_INVALID_INPUT] The value 'written concurrently' is no INT. SQLSTATE: 22018"),
            Retry.NEVER,
            "a row cannot be computed: The value 'written concurrently' is no INT.",
        ),
        (
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."),
            Retry.LIMITED,
            "Spark has not started: `ottla pipeline logs` shows why.",
        ),
        (
            ArithmeticException("[USER_RAISED_EXCEPTION] no such country SQLSTATE: P0001"),
            Retry.NEVER,
            "no such country.",
        ),
        (
            StreamingQueryException("[X] Something else\nat org"),
            Retry.LIMITED,
            "StreamingQueryException: Something else.",
        ),
    ],
)
def test_a_failure_is_judged(error: Exception, retry: Retry, sentence: str) -> None:
    verdict = judge(error)
    assert (verdict.retry, verdict.sentence) == (retry, sentence)


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
