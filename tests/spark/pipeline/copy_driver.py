"""A driver that runs a pipeline which only copies, once, and ends as a crash does when a batch comes to a seam."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ottla.spark.pipeline.definition import Pipeline, pipeline
from ottla.spark.pipeline.home import Home
from ottla.spark.pipeline.reporting import JsonLines
from ottla.spark.pipeline.runner import Runner, RunSettings
from ottla.spark.sink import load
from tests.spark.pipeline import seams
from tests.spark.pipeline.replay_driver import crash

RECORDS_PER_BATCH = 20


def copying(name: str, source: str, target: str, per_batch: int = RECORDS_PER_BATCH) -> Pipeline:
    @pipeline(name=name, to=target)
    def copied(topics: Any) -> Any:
        return topics.stream(source, maxOffsetsPerTrigger=per_batch)

    return copied


def main() -> None:
    settings = json.loads(sys.argv[1])
    name = settings["name"]
    home = Home(Path(settings["folder"]), name)
    if not settings["encodes_few_rows"]:
        load.SMALL_BYTES = 0
    if settings["seam"] is not None:
        seams.install(settings["seam"], setattr, crash, settings["times"], home.checkpoint)
    client = {"kafka.bootstrap.servers": settings["servers"]}
    run = RunSettings(client=client, once=True, master="local[2]", conf={"spark.ui.enabled": "false"})
    made = copying(name, settings["source"], settings["target"], settings["per_batch"])
    Runner(made, run, home, JsonLines(sys.stdout, name)).run()
    os._exit(0)


if __name__ == "__main__":
    main()
