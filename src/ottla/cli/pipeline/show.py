"""`ottla pipeline list`, `status` and `stop`: what runners wrote about themselves, and a signal to one of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.output import done, facts, human_ms, show, table
from ottla.cli.pipeline.run import data_dir_option
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.watch import interval_option, watch_option, watch_until_interrupted
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home, data_folder, home_of, homes, status_data

if TYPE_CHECKING:
    from ottla.spark.pipeline.home import Status

STOP_S_MAX = 120.0


@command("list")
@data_dir_option
@watch_option
@interval_option
def list_pipelines(settings: Settings, data_dir: Path | None, watch: bool, interval: float) -> None:
    """List the pipelines that were run on this machine."""
    folder = data_folder(data_dir)

    def look() -> None:
        found = [home.read() for home in homes(folder)]
        data: Any = [status_data(status) for status in found]
        show(settings, data, lambda: _rows(found) if found else [f"no pipeline was run in {folder}"])

    if watch:
        watch_until_interrupted(settings, look, interval)
    look()


def _rows(found: list[Status]) -> list[str]:
    headings = ("NAME", "STATE", "BATCH", "ROWS IN", "ROWS OUT", "DEAD LETTERS", "LATE", "LAG", "BATCH MS", "UPDATED")
    return table(
        headings,
        [
            (
                status.name,
                status.state,
                status.batch,
                status.rows_in,
                status.rows_out,
                status.dead_letters,
                status.late_rows,
                status.lag,
                status.batch_ms,
                _ago(status.updated),
            )
            for status in found
        ],
    )


def _ago(moment: float) -> str | None:
    return f"{human_ms(max(0, int(time.time() - moment)) * 1000)} ago" if moment else None


@command("status")
@click.argument("name")
@data_dir_option
@watch_option
@interval_option
def status(settings: Settings, name: str, data_dir: Path | None, watch: bool, interval: float) -> None:
    """How far the pipeline NAME is, and what was last wrong with it."""
    home = home_of(data_folder(data_dir), name)

    def look() -> None:
        found = home.read()
        show(settings, status_data(found), lambda: _facts(home, found))

    if watch:
        watch_until_interrupted(settings, look, interval)
    look()


def _facts(home: Home, found: Status) -> Iterator[str]:
    pairs: list[tuple[str, Any]] = [
        ("pipeline", found.name),
        ("state", found.state),
        ("file", found.file or None),
        ("writes to", ", ".join(found.topics) or None),
        ("cluster", found.bootstrap or None),
        ("spark", found.master or None),
        ("pid", found.pid or None),
        ("updated", _ago(found.updated)),
        ("batch", found.batch),
        ("rows in", f"{found.rows_in:,} ({found.input_rows_per_s:,.0f}/s)"),
        ("rows out", f"{found.rows_out:,}"),
        ("dead letters", f"{found.dead_letters:,}"),
        ("late rows", f"{found.late_rows:,}"),
        ("lag", found.lag),
        ("batch time", f"{found.batch_ms:,} ms"),
        ("restarts", found.restarts),
        ("folder", str(home.folder)),
    ]
    if found.dropped:
        pairs.append(("dropped", f"{found.dropped:,}"))
    if found.state_entries:
        pairs.append(("state", f"{found.state_entries:,} entries"))
    if found.problem:
        pairs.append(("problem", found.problem))
    yield from facts(pairs)


@command("stop")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--timeout", type=at_least(0.1), default=STOP_S_MAX, metavar="SECONDS", help="To wait for each [120].")
@data_dir_option
def stop(settings: Settings, names: tuple[str, ...], timeout: float, data_dir: Path | None) -> None:
    """Stop pipelines of this machine; each finishes the batch it is at."""
    chosen = [home_of(data_folder(data_dir), name) for name in names]
    for home in chosen:
        stopped = stop_home(home, timeout)
        sentence = f"stopped {home.name}" if stopped else f"{home.name} was not running"
        done(settings, {"name": home.name, "stopped": stopped}, sentence)


def stop_home(home: Home, timeout_s: float) -> bool:
    pid = home.pid()
    if not home.is_running() or pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise OttlaError(f"pipeline '{home.name}' (pid {pid}) is run by another user: ask them to stop it.") from None
    deadline = time.monotonic() + timeout_s
    while home.is_running():
        if time.monotonic() > deadline:
            raise OttlaError(
                f"pipeline '{home.name}' (pid {pid}) has not stopped after {timeout_s:g} s: it goes on trying."
            )
        time.sleep(0.05)
    return True
