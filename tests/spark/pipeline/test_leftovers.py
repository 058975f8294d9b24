"""`ottla pipeline logs` and `delete`: what a pipeline leaves behind. No Spark is started here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionalProducer
from ottla.common.ids import TopicPartition
from ottla.spark import published
from ottla.spark.pipeline.home import FAILED, Home, Status
from ottla.spark.sink.marker import MARKER_TOPIC, Marker, ensure_marker_topic, marker_batch
from tests.cli.command import Cli
from tests.support.kafka_jars import REPO_ROOT

HOLD = """
import sys
from pathlib import Path
from ottla.spark.pipeline.home import Home
with Home(Path(sys.argv[1]), sys.argv[2]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pipelines"


@pytest.fixture
def cli(servers: str, folder: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(folder)})


def left_behind(folder: Path, name: str, servers: str, checkpoint: str = "") -> Home:
    """As after a run that failed: a folder, and a marker in the cluster."""
    home = Home(folder, name)
    with home.locked():
        home.checkpoint.mkdir()
        home.write(Status(name, state=FAILED, bootstrap=servers, batch=3, checkpoint=checkpoint))
        for number in range(3):
            home.log(f"line {number}.")
    with ClusterClient(servers) as cluster, TransactionalProducer(cluster, name) as producer:
        ensure_marker_topic(cluster, MARKER_TOPIC)
        producer.start()
        with producer.transaction():
            producer.produce([(TopicPartition(MARKER_TOPIC, 0), marker_batch(name, Marker("id", 3)))])
    return home


def test_a_deleted_pipeline_is_forgotten_here_and_in_its_cluster(
    cli: Cli, servers: str, name: str, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "checkpoint"
    elsewhere.mkdir()
    home = left_behind(folder, name, servers, str(elsewhere))
    other = left_behind(folder, f"{name}-other", servers)
    assert "nobody answered, so nothing was changed" in cli("pipeline", "delete", name).err
    assert name in cli.ok("pipeline", "delete", name, "--dry-run").out
    assert home.checkpoint.exists() and published(name=name, bootstrap=servers) is not None

    # Its own cluster counts, not the one that is asked by default.
    away = Cli("127.0.0.1:1", cli.environment)
    assert away.ok("pipeline", "delete", name, "-y").out.endswith(f"deleted {name}\n")
    assert not home.folder.exists() and not elsewhere.exists()
    assert published(name=name, bootstrap=servers) is None
    assert other.checkpoint.exists() and published(name=other.name, bootstrap=servers) is not None
    assert f"no pipeline '{name}' was run in" in cli.fails(1, "pipeline", "delete", name)


def test_a_pipeline_whose_cluster_is_gone_can_be_deleted_too(cli: Cli, servers: str, name: str, folder: Path) -> None:
    home = left_behind(folder, name, servers)
    unreachable = ("pipeline", "delete", name, "-y", "-b", "127.0.0.1:1", "--output", "json")
    assert "cannot reach any broker at 127.0.0.1:1" in cli.fails(1, *unreachable)
    assert home.folder.exists(), "the next try finds it"
    assert cli.ok(*unreachable, "--local-only").data == [{"name": name, "deleted": True}]
    assert not home.folder.exists()


def test_a_pipeline_that_runs_is_not_deleted(cli: Cli, servers: str, name: str, folder: Path) -> None:
    home = left_behind(folder, name, servers)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(REPO_ROOT / "src")},
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        said = cli.fails(1, "pipeline", "delete", name, "-y")
        assert f"pipeline '{name}' is running (pid {holder.pid}): stop it first" in said
    finally:
        holder.communicate()
    assert home.checkpoint.exists()


def test_logs_are_the_last_lines_and_those_that_come(cli: Cli, servers: str, name: str, folder: Path) -> None:
    home = left_behind(folder, name, servers)
    assert [line[-7:] for line in cli.ok("pipeline", "logs", name).lines] == ["line 0.", "line 1.", "line 2."]
    assert [line[-7:] for line in cli.ok("pipeline", "logs", name, "-n", "1").lines] == ["line 2."]
    process = cli.start("pipeline", "logs", name, "-f", "-n", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(b"line 2.\n")
        home.log("a new line.")
        assert process.stdout.readline().endswith(b"a new line.\n")
        home.spark_log.replace(home.spark_log.with_suffix(".log.1"))
        home.log("short.")
        assert process.stdout.readline().endswith(b"short.\n")
    finally:
        process.kill()
        process.communicate()
    home.spark_log.unlink()
    assert "has no log" in cli.fails(1, "pipeline", "logs", name)
