"""Executors of a cluster have what a session ships, and no Ottla: topologies run there all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import importlib, pkgutil
import ottla, ottla.streams
from ottla.streams import StreamsBuilder, TopologyTestDriver, serdes

assert ".zip" in ottla.__file__
for module in pkgutil.walk_packages(ottla.streams.__path__, "ottla.streams."):
    importlib.import_module(module.name)
builder = StreamsBuilder(key=serdes.string, value=serdes.string)
builder.stream("in").group_by(lambda key, word: word).count().to_stream().to("out")
with TopologyTestDriver(builder.build()) as driver:
    driver.input_topic("in").pipe("a")
    print(driver.output_topic("out").read_table())
"""


def test_what_a_session_ships_is_enough_for_a_topology(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from ottla.spark.ship import package_zip

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(package_zip())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'a': 1}\n"
