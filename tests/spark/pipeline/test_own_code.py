"""What a pipeline's own code and data may do in Spark's processes, and what is said of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from ottla.client.cluster import Unreachable
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import ORDERS, eventually, read, send

QUOTED = """cannot read this:
Traceback (most recent call last):
  File "/x/ottla/client/cluster.py", line 1, in leaders
ottla.client.cluster.Unreachable: it is away
"""


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def refuse(error: Exception) -> Any:
    def raising(customer: str) -> str:
        raise error

    return F.udf(raising, StringType())


def chained(customer: str) -> str:
    try:
        return {}[customer]
    except KeyError:
        raise RuntimeError("no such customer") from None


def with_udf(function: Any) -> Any:
    return lambda rows: rows.withColumn("customer", function("customer"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        slow(with_udf(refuse(ValueError("no number"))), "the pipeline's own code failed: ValueError: no number."),
        (with_udf(refuse(ValueError(QUOTED))), "the pipeline's own code failed: ValueError: cannot read this:."),
        slow(with_udf(F.udf(chained, StringType())), "the pipeline's own code failed: RuntimeError: no such customer."),
        slow(
            with_udf(refuse(OttlaError("not today."))),
            "the pipeline's own code failed: ottla.common.errors.OttlaError: not today.",
        ),
        (
            with_udf(refuse(Unreachable("not today."))),
            "the pipeline's own code failed: ottla.client.cluster.Unreachable: not today.",
        ),
        (lambda rows: rows.selectExpr("euro / (euro - euro) as euro"), "a row cannot be computed: Division by zero."),
        slow(
            lambda rows: rows.selectExpr("cast(customer as int) as n"), "a row cannot be computed: The value 'written"
        ),
        slow(lambda rows: rows.selectExpr("raise_error('no such country') as n"), "no such country."),
    ],
)
def test_it_ends_with_what_was_raised(
    spark: Any, servers: str, name: str, tmp_path: Path, change: Any, said: str
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [order("written concurrently", 1)])
    made = Pipeline(name, lambda topics: change(topics.stream(source, ORDERS)), to=target)
    with Running(spark, made, servers, tmp_path) as run:
        run.wait()
    assert said in str(run.error)
    assert "\n" not in str(run.error)
    assert "restarting" not in run.heard.events
    assert read(servers, target) == []


def fail_once(note: Path, how: Any) -> Any:
    def function(customer: str) -> str:
        if not note.exists():
            note.touch()
            how()
        return customer

    return F.udf(function, StringType())


def _kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse_connection() -> None:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (_kill_worker, "a Python worker ended unexpectedly."),
        slow(
            _refuse_connection,
            "the pipeline's own code failed: ConnectionRefusedError: [Errno 111] Connection refused.",
        ),
    ],
    ids=["a killed worker", "a service that is away"],
)
def test_it_starts_again_after_what_may_pass(
    spark: Any, servers: str, name: str, tmp_path: Path, how: Any, said: str
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [order("one", 1)])
    function = fail_once(tmp_path / "failed", how)
    made = Pipeline(name, lambda topics: with_udf(function)(topics.stream(source, ORDERS)), to=target)
    with Running(spark, made, servers, tmp_path) as run:
        eventually(lambda: len(read(servers, target)) == 1)
    assert run.error is None
    assert said in run.heard.sentences
    assert len(read(servers, target)) == 1
