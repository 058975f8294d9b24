"""`ottla pipeline check`: finds what is wrong with pipelines, on one Spark for all files and all tries."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import notice, show
from ottla.cli.pipeline.run import conf_option, require_spark
from ottla.cli.settings import Settings, command, parse_assignment
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 0.2


@command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=GivenPath())
@click.option("-w", "--watch", is_flag=True, help="Again whenever something in their folders changes, until Ctrl-C.")
@conf_option
def check(settings: Settings, files: tuple[Path, ...], watch: bool, conf: tuple[str, ...]) -> None:
    """Find what is wrong with the pipelines in FILE... without running them.

    Nothing is read, written or created. Spark is started once, for all files and, with -w, for every try.

    \b
      ottla pipeline check orders.py sales.sql
      ottla pipeline check orders.py -w          # in a terminal beside the editor
    """
    require_spark()
    client = {f"kafka.{key}": value for key, value in settings.client_settings().items()}
    with _Checker(client, dict(parse_assignment(setting, "--conf") for setting in conf)) as checker:
        while True:
            seen = _state(files)
            found = [checker.look(file) for file in files]
            if not watch:
                break
            _show(settings, found)
            for checked in found:
                if checked["problem"]:
                    notice(checked["problem"], "red")
            sys.stdout.flush()
            while _state(files) == seen:
                time.sleep(LOOK_S)
    _show(settings, found)
    problems = [checked["problem"] for checked in found if checked["problem"]]
    if problems:
        sys.stdout.flush()
        raise OttlaError("\nottla: ".join(problems))


def _show(settings: Settings, found: list[dict[str, Any]]) -> None:
    show(settings, found, lambda: [_sentence(checked) for checked in found if not checked["problem"]])


def _sentence(found: dict[str, Any]) -> str:
    tables = f" with {', '.join(found['tables'])}" if found["tables"] else ""
    writes = ", ".join(found["writes"]) or "the topics that its rows name"
    return f"{found['file']}: {found['name']} is right, from {', '.join(found['streams'])}{tables} to {writes}"


def _state(files: tuple[Path, ...]) -> dict[Path, int]:
    """When what pipelines are made of was last changed. An editor may be in the middle of replacing a file."""
    found = {}
    for folder in {file.resolve().parent for file in files}:
        for path in folder.glob("*"):
            if path.suffix in (".py", ".sql"):
                try:
                    found[path] = path.stat().st_mtime_ns
                except FileNotFoundError:
                    continue
    return found


class _Checker:
    def __init__(self, client: dict[str, str], conf: dict[str, str]) -> None:
        self._client = client
        self._conf = conf
        self._spark: SparkSession | None = None

    def __enter__(self) -> _Checker:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._spark is not None:
            from ottla.spark.pipeline.spark_process import close_session

            close_session(self._spark)

    def look(self, file: Path) -> dict[str, Any]:
        """What `--output json` shows of a file."""
        from ottla.spark.pipeline.loading import load

        found: dict[str, Any] = {
            "file": str(file), "name": None, "problem": None, "streams": [], "tables": [], "writes": [],
            "dead_letters": None,
        }  # fmt: skip
        try:
            pipeline = load(file)
            found["name"] = pipeline.name
            found |= self._checked(pipeline)
        except Exception as error:
            found["problem"] = _problem(file, error)
        return found

    def _checked(self, pipeline: Any) -> dict[str, Any]:
        from dataclasses import asdict

        from ottla.client.settings import parse_settings
        from ottla.spark.pipeline.checking import check
        from ottla.spark.pipeline.cluster_checks import require_topics

        # What needs no Spark is told before it has started.
        require_topics(parse_settings(self._client).address, [pipeline.to] if pipeline.to else [])
        if self._spark is None:
            self._spark = _open({**pipeline.conf, **self._conf})
        return asdict(check(self._spark, pipeline, self._client))


def _problem(file: Path, error: Exception) -> str:
    from ottla.spark.pipeline.loading import line_of
    from ottla.spark.pipeline.verdicts import judge

    sentence = judge(error).sentence
    return sentence if str(file) in sentence else f"{file}{line_of(error, file)}: {sentence}"


def _open(conf: dict[str, str]) -> SparkSession:
    from ottla.spark.pipeline.spark_process import open_session

    if sys.stderr.isatty():
        notice("starting Spark ...")
    with _unless_it_fails(Path(tempfile.mkdtemp(prefix="ottla-check-")) / "spark.log") as log:
        return open_session("ottla-check", "local[1]", {"spark.ui.enabled": "false", **conf}, log)


@contextmanager
def _unless_it_fails(log: Path) -> Iterator[Path]:
    """Nobody reads Spark's log if it has started."""
    try:
        yield log
    except Exception as error:
        raise OttlaError(f"Spark has not started ({type(error).__name__}): {log} says why.") from None
    log.unlink(missing_ok=True)
    log.parent.rmdir()
