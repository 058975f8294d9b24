"""`ottla pipeline` as a command: one Spark for the whole life of a pipeline, and mistakes that need none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import order
from tests.spark.pipeline.test_runner import customers, eventually, send

PIPELINE = """
from ottla.spark.pipeline import pipeline

@pipeline(name={name!r}, to={target!r}, key="customer", conf={{"spark.ui.enabled": False}})
def any_name(topics):
    return topics.stream({source!r}, "customer string not null, euro double")
"""


@pytest.fixture
def cli(servers: str, tmp_path: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines")})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_pipeline_is_run_listed_refused_a_second_time_and_stopped(
    cli: Cli, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "copy.py"
    file.write_text(PIPELINE.format(name=name, source=source, target=target))
    send(servers, source, [order("one", 1), b"bad"])
    process = cli.start("pipeline", "run", file, "--master", "local[1]", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
        assert cli.ok("pipeline", "stop", name).out == f"stopped {name}\n"
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
    said = cli.fails(1, "pipeline", "run", file, "-X", "security.protocol=SSL")
    assert "this client speaks PLAINTEXT only" in said


def test_a_broker_that_is_down_at_the_start_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "any.py"
    file.write_text(PIPELINE.format(name="p", source="in", target="out"))
    began = time.monotonic()
    assert "cannot reach any broker" in cli.fails(1, "pipeline", "run", file, "-b", "127.0.0.1:1")
    assert time.monotonic() - began < 20


def test_looking_at_pipelines_does_not_need_spark() -> None:
    code = "import sys, ottla.cli.pipeline_show, ottla.cli.pipeline_run, ottla.spark.pipeline.loading;"
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
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_runner_elsewhere_with_the_same_checkpoint_takes_over_and_the_first_one_ends(
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
            send(servers, source, [order(f"with {len(running)}", 1)])
            eventually(lambda: len(customers(servers, target)) == 1 + len(running))
        _, err = running[0].communicate(timeout=120)
        assert running[0].returncode == 1
        assert b"another writer has taken over" in err or b"another runner uses the same checkpoint" in err
        send(servers, source, [order("last", 1)])
        eventually(lambda: customers(servers, target) == ["one", "with 1", "with 2", "last"])
    finally:
        for process in running:
            process.kill()
            process.wait()
