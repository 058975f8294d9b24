"""`ottla pipeline logs`: what Spark and the runner of a pipeline said."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path

import click

from ottla.cli.pipeline.run import data_dir_option
from ottla.cli.settings import Settings, at_least, command
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import data_folder, home_of

LOOK_S = 0.2


@command("logs")
@click.argument("name")
@click.option("-n", "--lines", type=at_least(0), default=100, help="So many of the last ones [100].")
@click.option("-f", "--follow", is_flag=True, help="And what comes, until Ctrl-C.")
@data_dir_option
def logs(settings: Settings, name: str, lines: int, follow: bool, data_dir: Path | None) -> None:
    """What Spark said while the pipeline NAME ran, and what became of it: starts, failures, stops."""
    path = home_of(data_folder(data_dir), name).spark_log
    if not path.exists():
        raise OttlaError(f"pipeline '{name}' has no log: it has never got as far as to start.")
    with path.open(errors="replace") as log:
        sys.stdout.writelines(deque(log, lines))
        at = log.tell()
    while follow:
        at = _show_from(path, at)
        sys.stdout.flush()
        time.sleep(LOOK_S)


def _show_from(path: Path, position: int) -> int:
    """A start puts a large log aside and begins another one, which is shorter."""
    if not path.exists():
        return 0
    with path.open(errors="replace") as log:
        if os.fstat(log.fileno()).st_size < position:
            position = 0
        log.seek(position)
        sys.stdout.write(log.read())
        return log.tell()
