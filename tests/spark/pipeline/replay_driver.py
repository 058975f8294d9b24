"""A driver that runs the pipeline of the replay proof once, and ends as a crash does when a batch comes to a seam."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from ottla.spark.pipeline.home import Home
from ottla.spark.pipeline.reporting import JsonLines
from ottla.spark.pipeline.runner import Runner, RunSettings
from ottla.spark.sink import load
from tests.spark.pipeline import seams
from tests.spark.pipeline.replay_scene import Names, joining


def crash() -> None:
    """The JVM first: it would end by itself, but a moment later."""
    from pyspark import SparkContext

    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)  # type: ignore[union-attr]
    os._exit(9)


def main() -> None:
    settings = json.loads(sys.argv[1])
    servers, name, names = settings["servers"], settings["name"], Names(*settings["names"])
    home = Home(Path(settings["folder"]), name)
    if not settings["encodes_few_rows"]:
        load.SMALL_BYTES = 0
    if settings["seam"] is not None:
        seams.install(settings["seam"], setattr, crash, settings["times"], home.checkpoint)
    run = RunSettings(
        client={"kafka.bootstrap.servers": servers}, once=True, master="local[2]", conf={"spark.ui.enabled": "false"}
    )
    Runner(joining(name, names, by=settings["by"]), run, home, JsonLines(sys.stdout, name)).run()
    os._exit(0)


if __name__ == "__main__":
    main()
