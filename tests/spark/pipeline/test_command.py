"""`ottla pipeline` as a command: one Spark for the whole life of a pipeline, and mistakes that need none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import order
from tests.spark.pipeline.test_runner import customers, eventually, send
from tests.support.process import command_of, descendants

PIPELINE = """
from ottla.spark.pipeline import pipeline

@pipeline(name={name!r}, to={target!r}, key="customer", conf={{"spark.ui.enabled": False}})
def any_name(topics):
    return topics.stream({source!r}, "customer string not null, euro double")
"""


# A UDF belongs to the JVM in which it was first used.
WITH_UDF = """
from ottla.spark.pipeline import pipeline
from beside import loud

@pipeline(name={name!r}, to={target!r}, key="customer", conf={{"spark.ui.enabled": False}})
def any_name(topics):
    orders = topics.stream({source!r}, "customer string not null, euro double")
    return orders.select(loud("customer").alias("customer"))
"""
BESIDE = """
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

@F.udf(StringType())
def loud(text):
    return text.upper()
"""


@pytest.fixture
def cli(servers: str, tmp_path: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines")})


@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_pipeline_is_run_listed_refused_a_second_time_and_stopped_by_ctrl_c_after_its_batch(
    cli: Cli, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "copy.py"
    file.write_text(PIPELINE.format(name=name, source=source, target=target))
    send(servers, source, [order("one", 1), b"bad"])
    process = cli.start(
        "pipeline", "run", file, "--master", "local[1]",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        said = _events(process)
        batch = next(one for one in said if one["event"] == "batch")
        assert (batch["rows_out"], batch["dead_letters"], batch["lag"]) == (1, 1, 0)

        (listed,) = cli.ok("pipeline", "list", "--output", "json").data
        assert (listed["name"], listed["state"], listed["pid"]) == (name, "running", process.pid)
        assert "running" in cli.ok("pipeline", "status", name).out
        assert f"pipeline '{name}' is running already (pid {process.pid})" in cli.fails(1, "pipeline", "run", file)

        send(servers, source, [order("two", 1)])
        eventually(lambda: customers(servers, target) == ["one", "two"])
        # As a terminal does it: Spark's processes get it too.
        os.killpg(process.pid, signal.SIGINT)
        assert [one["event"] for one in said if one["event"] != "batch"] == ["stopping", "stopped"]
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, b"")
    finally:
        process.kill()
        process.wait()
    assert cli.ok("pipeline", "stop", name).out == f"{name} was not running\n"
    assert cli.ok("pipeline", "status", name, "--output", "json").data["state"] == "stopped"


def _events(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no pipeline"),
        ("import no_such_module", "needs the module 'no_such_module'"),
        (PIPELINE.format(name="p", source="in", target="no-such-topic"), "there is no topic 'no-such-topic'"),
    ],
)
def test_a_bad_file_is_one_sentence_and_status_1(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    assert said in cli.fails(1, "pipeline", "run", file)


def test_what_is_not_there_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    assert "there is no file" in cli.fails(1, "pipeline", "run", tmp_path / "gone.py")
    assert "no pipeline 'x' was run in" in cli.fails(1, "pipeline", "status", "x")
    assert "no pipeline 'x' was run in" in cli.fails(1, "pipeline", "stop", "x")
    assert cli.ok("pipeline", "list").out.startswith("no pipeline was run in")


def test_security_that_the_client_does_not_have_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "any.py"
    file.write_text(PIPELINE.format(name="p", source="in", target="out"))
    said = cli.fails(1, "pipeline", "run", file, "-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=GSSAPI")
    assert "sasl.mechanism GSSAPI is not supported" in said
    assert "speaks plain text there" in cli.fails(1, "pipeline", "run", file, "-X", "security.protocol=ssl")


def test_a_broker_that_is_down_at_the_start_is_waited_for_until_somebody_stops_that(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "any.py"
    file.write_text(PIPELINE.format(name="p", source="in", target="out"))
    process = cli.start("pipeline", "run", file, "-b", "127.0.0.1:1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said = _events(process)
        waiting = [next(one for one in said if one["event"] == "restarting") for _ in range(2)]
        assert all("cannot reach any broker at 127.0.0.1:1" in one["problem"] for one in waiting)
        assert cli.ok("pipeline", "status", "p", "--output", "json").data["state"] == "waiting"
        assert cli.ok("pipeline", "stop", "p").out == "stopped p\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_file_is_executed_once(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "noted.py"
    note = f"open({str(tmp_path / 'runs')!r}, 'a').write('once ')\n"
    file.write_text(note + PIPELINE.format(name="p", source="in", target="no-such-topic"))
    assert "there is no topic 'no-such-topic'" in cli.fails(1, "pipeline", "run", file)
    assert (tmp_path / "runs").read_text() == "once "


def test_a_reset_asks_first(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "any.py"
    file.write_text(PIPELINE.format(name="p", source="in", target="out"))
    outcome = cli("pipeline", "run", file, "--reset")
    assert outcome.status == 1
    assert outcome.err.startswith("Forget how far 'p' was and write everything again, after what is there? [y/N]")
    assert "nobody answered, so nothing was changed" in outcome.err


def test_looking_at_pipelines_does_not_need_spark() -> None:
    verbs = ", ".join(f"ottla.cli.pipeline.{verb}" for verb in ("run", "check", "show", "logs", "delete"))
    code = f"import sys, ottla.spark.pipeline.loading, {verbs};"
    code += "sys.exit('pyspark' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=Cli().variables()).returncode == 0


def test_without_pyspark_one_sentence_says_how_to_get_it(cli: Cli, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    # Runs before everything else in the child: there, no PySpark can be found.
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u; f = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pyspark' else f(name, *more)\n"
    )
    path = f"{hidden}:{cli.variables()['PYTHONPATH']}"
    without = Cli(cli.bootstrap, {**(cli.environment or {}), "PYTHONPATH": path})
    assert "pip install 'ottla[spark]'" in without.fails(1, "pipeline", "run", tmp_path / "any.py")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_of_two_runners_with_one_checkpoint_one_ends_and_the_other_writes_everything_once(
    servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "copy.py"
    file.write_text(PIPELINE.format(name=name, source=source, target=target))
    send(servers, source, [order("one", 1)])
    # Two machines with a folder in common: each has a lock of its own.
    arguments = ("pipeline", "run", file, "--master", "local[1]", "--checkpoint", tmp_path / "shared")
    machines = [Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / machine)}) for machine in ("first", "second")]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for machine in machines:
            running.append(machine.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            next(one for one in _events(running[-1]) if one["event"] == "running")
        written = ["one"]
        # Which one ends depends on who takes the next batch first; it may take some batches until they meet.
        while all(process.poll() is None for process in running):
            assert len(written) < 30
            written.append(f"c{len(written)}")
            send(servers, source, [order(written[-1], 1)])
            eventually(lambda: len(customers(servers, target)) >= len(written))
        (ended,) = [process for process in running if process.poll() is not None]
        assert ended.returncode == 1
        err = ended.communicate()[1].decode()
        assert "another writer has taken over" in err or "another runner uses the same checkpoint" in err
        send(servers, source, [order("last", 1)])
        eventually(lambda: customers(servers, target) == [*written, "last"])
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_jvm_that_is_killed_is_started_again_and_functions_beside_the_file_work_in_both(
    cli: Cli, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "loud.py"
    file.write_text(WITH_UDF.format(name=name, source=source, target=target))
    (tmp_path / "beside.py").write_text(BESIDE)
    send(servers, source, [order("one", 1)])
    process = cli.start("pipeline", "run", file, "--master", "local[1]", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said = _events(process)
        next(one for one in said if one["event"] == "batch")
        (jvm,) = [one for one in descendants(process.pid) if "org.apache.spark.deploy" in command_of(one)]
        os.kill(jvm, signal.SIGKILL)
        assert next(one for one in said if one["event"] == "restarting")["problem"] == "Spark's JVM is gone."
        send(servers, source, [order("two", 1)])
        eventually(lambda: customers(servers, target) == ["ONE", "TWO"])
        assert cli.ok("pipeline", "stop", name).out == f"stopped {name}\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
