"""A pipeline on a real cluster, whose executors have neither Ottla nor the pipeline's file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import order
from tests.spark.pipeline.test_command import BESIDE, WITH_UDF
from tests.spark.pipeline.test_runner import customers, read, send
from tests.support.spark_cluster import SparkCluster


@pytest.mark.slow  # a cluster is several JVMs
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_a_pipeline_runs_on_a_cluster_with_functions_of_its_own(servers: str, name: str, tmp_path: Path) -> None:
    source, target = kafka.create(servers, 2), kafka.create(servers)
    file = tmp_path / "loud.py"
    file.write_text(WITH_UDF.format(name=name, source=source, target=target))
    (tmp_path / "beside.py").write_text(BESIDE)
    send(servers, source, [order(f"c{number}", 1) for number in range(20)] + [b"bad"])
    with SparkCluster(tmp_path / "cluster") as cluster:
        cli = Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines"), "PYSPARK_PYTHON": str(cluster.python)})
        conf = ("spark.executor.memory=600m", "spark.driver.host=127.0.0.1", "spark.sql.shuffle.partitions=2")
        settings = [word for one in conf for word in ("--conf", one)]
        outcome = cli("pipeline", "run", file, "--once", "--master", cluster.master, *settings, timeout_s=200)
    assert outcome.status == 0, outcome
    assert sorted(customers(servers, target)) == sorted(f"C{number}" for number in range(20))
    assert [value for _, value, _ in read(servers, f"{name}-dead-letters")] == [b"bad"]
