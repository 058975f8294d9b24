"""`ottla pipeline run`: a pipeline in the foreground, until it is done, stopped or beyond help."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import confirm
from ottla.cli.serving_options import metrics_option
from ottla.cli.settings import Settings, command, parse_assignment
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.spark.pipeline.definition import Pipeline
    from ottla.spark.pipeline.home import Home
    from ottla.spark.pipeline.reporting import Reporter
    from ottla.spark.pipeline.runner import Runner

data_dir_option = click.option(
    "--data-dir",
    metavar="DIR",
    type=GivenPath(),
    help="Where pipelines keep checkpoints and status [OTTLA_PIPELINES, or ~/.local/share/ottla/pipelines].",
)

conf_option = click.option(
    "--conf", "conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; repeatable."
)


@command("run", asks=True)
@click.argument("file", type=GivenPath())
@click.option("--once", is_flag=True, help="Process all that is there now, then stop.")
@click.option("--master", default="local[*]", metavar="URL", help="Of a Spark cluster [local[*], this machine].")
@click.option("--name", metavar="NAME", help="Another name than that in the file.")
@click.option("--reset", is_flag=True, help="Forget how far it was and start over; asks first.")
@click.option("--checkpoint", metavar="URL", help="Of a shared folder, for a cluster [in --data-dir].")
@metrics_option
@conf_option
@data_dir_option
def run(
    settings: Settings,
    file: Path,
    once: bool,
    master: str,
    name: str | None,
    reset: bool,
    checkpoint: str | None,
    metrics: str | None,
    conf: tuple[str, ...],
    data_dir: Path | None,
) -> None:
    """Run the pipeline in FILE (.py or .sql) until Ctrl-C.

    \b
      ottla pipeline run orders.py
      ottla pipeline run orders.sql --once
      ottla pipeline run orders.py --master spark://host:7077 --checkpoint s3a://bucket/orders
    """
    require_spark()
    from dataclasses import replace

    from ottla.spark.pipeline.home import Home, data_folder
    from ottla.spark.pipeline.loading import load
    from ottla.spark.pipeline.runner import Runner, RunSettings

    def loaded() -> Pipeline:
        found = load(file)
        return found if name is None else replace(found, name=name)

    pipeline = loaded()
    home = Home(data_folder(data_dir), pipeline.name)
    run_settings = RunSettings(
        client={f"kafka.{key}": value for key, value in settings.client_settings().items()},
        master=master,
        once=once,
        checkpoint=checkpoint,
        file=str(file.resolve()),
        conf=dict(parse_assignment(setting, "--conf") for setting in conf),
    )
    reporter = reporter_for(pipeline.name)
    runner = Runner(pipeline, run_settings, home, reporter, reload=loaded)
    if reset:
        confirm(settings, f"Forget how far '{pipeline.name}' was and write everything again, after what is there?")
        runner.reset()
    with stopped_by_signals(runner), serving_metrics(home, metrics, reporter):
        runner.run()


def require_spark() -> None:
    from importlib.util import find_spec

    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise OttlaError("pipelines need Spark, which is not installed: run `pip install 'ottla[spark]'`.")


def reporter_for(name: str) -> Reporter:
    from ottla.spark.pipeline.reporting import JsonLines, LiveLine

    return LiveLine(sys.stdout) if sys.stdout.isatty() else JsonLines(sys.stdout, name)


@contextmanager
def serving_metrics(home: Home, address: str | None, reporter: Reporter) -> Iterator[None]:
    if address is None:
        yield
        return
    from ottla.spark.pipeline.metrics import serve_pipeline_metrics

    url, endpoint = serve_pipeline_metrics(home, address)
    with endpoint:
        reporter.event("metrics", f"{home.name}: metrics at {url}/metrics", address=url)
        yield


@contextmanager
def stopped_by_signals(runner: Runner) -> Iterator[None]:
    """The first SIGTERM or Ctrl-C asks for a stop after the batch; a second one does not wait for it."""
    asked: list[int] = []

    def handle(signum: int, frame: FrameType | None) -> None:
        if asked:
            sys.exit(128 + signum)
        asked.append(signum)
        runner.request_stop()

    before: dict[int, Any] = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
