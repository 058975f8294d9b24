"""`ottla pipeline check`: mistakes that only Spark knows of, found without running anything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from ottla.spark.pipeline.checking import Checked, check
from ottla.spark.pipeline.definition import Pipeline, pipeline
from ottla.spark.pipeline.spark_process import stack_traces_to
from ottla.spark.pipeline.verdicts import Retry, judge
from tests.cli.command import Cli
from tests.spark import topics as kafka

ORDERS = "customer string not null, euro double"
FILE = """
from ottla.spark.pipeline import pipeline

@pipeline(name={name!r}, to={target!r})
def any_name(topics):
    orders = topics.stream({source!r}, "customer string not null, euro double")
    return orders.select({column!r})
"""


@pytest.fixture
def cli(servers: str, tmp_path: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines")})


def test_a_pipeline_that_is_right_is_told_with_its_topics(spark: Any, servers: str, name: str) -> None:
    source, table, target = (kafka.create(servers) for _ in range(3))

    @pipeline(name=name, to=target, mode="update", every="5 seconds")
    def right(topics: Any) -> Any:
        customers = topics.table(table, "customer string, country string")
        return topics.stream(source, ORDERS).join(customers, "customer").groupBy("country").count()

    found = check(spark, right, {"kafka.bootstrap.servers": servers})
    assert found == Checked([source], [table], [target], f"{name}-dead-letters")
    assert not kafka.exists(servers, f"{name}-dead-letters"), "a check creates nothing"


@pytest.mark.parametrize(
    ("settings", "build", "said"),
    [
        ({}, lambda topics: topics.stream("orders", ORDERS).select("colour"), "the query is wrong: A column"),
        (
            {},
            lambda topics: topics.stream("orders", ORDERS).groupBy("customer").count(),
            "the query is wrong: Invalid streaming output mode: append",
        ),
        ({"every": "5 sconds"}, lambda topics: topics.stream("orders"), "5 sconds"),
        ({"compression": "zip"}, lambda topics: topics.stream("orders"), "there is no compression 'zip'"),
        ({}, lambda topics: topics.stream("no-orders"), "there is no topic 'no-orders'"),
        (
            {},
            lambda topics: topics.stream("orders", ORDERS).join(
                topics.table("no-table", "customer string"), "customer"
            ),
            "there is no topic 'no-table'",
        ),
        ({"to": "orders"}, lambda topics: topics.stream("orders"), "would write to 'orders', which it reads"),
    ],
)
def test_what_a_run_would_find_is_found(
    spark: Any, servers: str, name: str, settings: dict[str, str], build: Any, said: str
) -> None:
    for topic in ("orders", "out"):
        if not kafka.exists(servers, topic):
            kafka.create(servers, name=topic)
    with pytest.raises(Exception) as caught:
        check(spark, Pipeline(name, build, **{"to": "out", **settings}), {"kafka.bootstrap.servers": servers})
    verdict = judge(caught.value)
    assert said in verdict.sentence
    assert verdict.retry is Retry.NEVER


def test_stack_traces_of_spark_go_to_the_log_and_not_to_the_terminal(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    loggers = [PySparkLogger.getLogger(name) for name in names]
    for logger in loggers:
        monkeypatch.setattr(logger, "handlers", [*logger.handlers])
    stack_traces_to(tmp_path / "spark.log")
    with pytest.raises(AnalysisException):
        spark.range(1).select("colour")
    with pytest.raises(AnalysisException):
        spark.sql("select colour from (select 1)")
    for logger in loggers:
        logger.handlers[0].close()
    assert capfd.readouterr().err == ""
    assert (tmp_path / "spark.log").read_text().count("UNRESOLVED_COLUMN") >= 2


def test_what_needs_no_spark_is_told_without_one(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    assert "there is no file" in cli.fails(1, "pipeline", "check", file)
    file.write_text("x = 1 / 0")
    assert cli.fails(1, "pipeline", "check", file) == f"ottla: {file}, line 1: ZeroDivisionError: division by zero."
    file.write_text(FILE.format(name="p", source="in", target="no-such-topic", column="euro"))
    said = cli.fails(1, "pipeline", "check", file)
    assert said.startswith(f"ottla: {file}: there is no topic 'no-such-topic'")
    outcome = cli("pipeline", "check", file, tmp_path / "gone.py", "--output", "json")
    assert [one["name"] for one in outcome.data] == ["p", None]
    assert len(outcome.err.strip().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_file_is_checked_again_when_it_changes_on_the_same_spark(
    cli: Cli, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "copy.py"

    def write(column: str) -> None:
        file.write_text(FILE.format(name=name, source=source, target=target, column=column))

    write("colour")
    command = ("pipeline", "check", file, "-w")
    process = cli.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline().startswith(f"{file}, line 7: the query is wrong: A column".encode())
        write("euro")
        right = f"{file}: {name} is right, from {source} to {target}\n".encode()
        assert process.stdout.readline() == right
        write("customer")
        assert process.stdout.readline() == right
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.communicate()
    assert cli.ok("pipeline", "check", file).out.encode() == right
    write("colour")
    assert "cannot be resolved" in cli.fails(1, "pipeline", "check", file)
