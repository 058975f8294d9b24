"""An application on a real cluster, whose executors have neither Ottla nor the application's file: state is kept in
them, and read by others when these are gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.streams.test_application import by_key, produce
from tests.support.spark_cluster import SparkCluster

APP = """
from beside import loud
from ottla.streams import Application, StreamsBuilder, TimeWindows, serdes

builder = StreamsBuilder(key=serdes.string, value=serdes.string)
words = builder.stream({source!r}).map_values(loud)
words.group_by(lambda key, word: word).count(store="counts").to_stream().map_values(str).to({target!r})
windows = words.group_by_key().windowed_by(TimeWindows.of(100)).count(store="windows")
windows.to_stream(lambda window, count: f"{{window.key}}@{{window.window.start}}").map_values(str).to({target!r})
app = Application("on-a-cluster", builder)
"""
BESIDE = "def loud(word):\n    return word.upper()\n"
CONF = ("spark.executor.memory=600m", "spark.executor.cores=1", "spark.driver.host=127.0.0.1")


@pytest.mark.slow  # a cluster is several JVMs
@pytest.mark.spark
@pytest.mark.timeout(2400)
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_state_goes_on_in_other_executors_of_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    (tmp_path / "beside.py").write_text(BESIDE)
    with Broker() as broker, SparkCluster(tmp_path / "cluster") as cluster:
        servers = broker.bootstrap_servers
        source, target = kafka.create(servers, 2), kafka.create(servers, 2)
        file.write_text(APP.format(source=source, target=target))
        cli = Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "home"), "PYSPARK_PYTHON": str(cluster.python)})
        settings = [word for one in CONF for word in ("--conf", one)]
        for turn in range(2):
            rows = [(source, key, word, 10 + 50 * turn) for key in "kl" for word in ("a", "b", "a")]
            produce(servers, rows, {"k": 0, "l": 1})
            done = cli("streams", "run", file, "--once", "--master", cluster.master, *settings, timeout_s=900)
            assert done.status == 0, done
            assert json.loads(done.lines[-1])["event"] == "finished"
        found = {key: [value for value, _ in values] for key, values in by_key(servers, target).items()}
        executors = cluster.executors_started()
    up_to_8, up_to_4, up_to_6 = ([str(number + 1) for number in range(count)] for count in (8, 4, 6))
    assert found == {"A": up_to_8, "B": up_to_4, "k@0": up_to_6, "l@0": up_to_6}
    assert executors == 4, "two for each run"
