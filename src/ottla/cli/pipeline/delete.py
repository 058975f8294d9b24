"""`ottla pipeline delete`: what is left of pipelines that do not run any more, here and in the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.output import Planned, notice, plural, table
from ottla.cli.pipeline.run import data_dir_option, require_spark
from ottla.cli.settings import Settings, command
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home, data_folder, home_of
from ottla.spark.sink.checkpoint import local_path, remove_folder

if TYPE_CHECKING:
    from ottla.spark.pipeline.home import Status


@command("delete", changes=True, asks=True)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--local-only", is_flag=True, help="Leave the cluster alone, as when there is none any more.")
@data_dir_option
def delete(settings: Settings, names: tuple[str, ...], local_only: bool, data_dir: Path | None) -> None:
    """Delete pipelines that do not run: checkpoint, status, log, and the marker in their cluster. Of an application of
    Ottla Streams also its state there: changelogs and repartition topics.

    A pipeline of the same name then starts at the beginning. What was written stays, and so do topics and groups:
    `ottla topic delete` and `ottla group delete` remove those.
    """
    if not local_only:
        require_spark()
    chosen = [home_of(data_folder(data_dir), name) for name in dict.fromkeys(names)]
    for home in chosen:
        if home.is_running():
            raise OttlaError(
                f"pipeline '{home.name}' is running (pid {home.pid() or 'unknown'}): "
                f"stop it first, with `ottla pipeline stop {home.name}`."
            )
    found = [home.read() for home in chosen]
    rows = [
        (
            status.name,
            status.state,
            status.batch,
            str(home.folder),
            str(_checkpoint(home, status) or f"{status.checkpoint} (stays)"),
        )
        for home, status in zip(chosen, found, strict=True)
    ]
    planned = Planned(
        settings,
        [{"name": status.name, "deleted": not settings.dry_run} for status in found],
        table(("NAME", "STATE", "BATCH", "FOLDER", "CHECKPOINT"), rows),
    )
    if not planned.agreed(f"Delete {plural(len(found), 'pipeline')} and forget how far they were?", "nothing to do"):
        return
    for home, status in zip(chosen, found, strict=True):
        _delete(settings, home, status, local_only=local_only)
    planned.done(f"deleted {', '.join(status.name for status in found)}")


def _delete(settings: Settings, home: Home, status: Status, *, local_only: bool) -> None:
    with home.locked():
        # A cluster that does not answer is told of while there is still a checkpoint.
        servers, client, has_marker = ("", {}, False) if local_only else _marker(settings, status)
        folder = _checkpoint(home, status)
        shape = None if local_only else _application(folder, status, servers, client)
        # In this order: a checkpoint that is gone while the marker is there is refused, the other way round is not.
        if folder is not None:
            remove_folder(folder)
        else:
            notice(f"the checkpoint {status.checkpoint} is not on this machine: remove it there.")
        if shape is not None:
            from ottla.client.settings import parse_named
            from ottla.streams.engine.preparing import reset

            reset(shape, parse_named(servers, client), servers, client)
        elif has_marker:
            from ottla.spark.sink.progress import forget

            forget(name=status.name, bootstrap=servers, kafka=client)
        home.remove()


def _application(folder: Path | None, status: Status, servers: str, client: dict[str, str]) -> dict[str, object] | None:
    """What an application of Ottla Streams has made in the cluster, as its checkpoint says; None of a pipeline."""
    from ottla.client.lookup import ClusterReader
    from ottla.client.settings import parse_named
    from ottla.streams.engine.identity import shape_in, task_topic

    if folder is not None:
        return shape_in(folder)
    tasks = task_topic(status.name)
    with ClusterReader(parse_named(servers, client)) as reader:
        if reader.partitions([tasks]):
            raise OttlaError(
                f"'{status.name}' is an application with state in the cluster (the topic '{tasks}'), and what belongs "
                f"to it stands in the checkpoint {status.checkpoint}, which is not on this machine: run its file with "
                "--reset, which deletes the state, or use --local-only, which leaves it there."
            )
    return None


def _checkpoint(home: Home, status: Status) -> Path | None:
    """Where it is on this machine, if it is: here, or where `--checkpoint` put it."""
    if not status.checkpoint:
        return home.checkpoint
    # Without a scheme: its pipeline has never got as far as Spark, which knows where that is.
    return local_path(status.checkpoint) or (None if ":" in status.checkpoint else Path(status.checkpoint))


def _marker(settings: Settings, status: Status) -> tuple[str, dict[str, str], bool]:
    """The cluster where it ran, unless somebody says otherwise, and whether it knows the pipeline."""
    from ottla.spark.sink.progress import published

    client = settings.client_settings()
    servers = client["bootstrap.servers"] = settings.bootstrap or status.bootstrap or client["bootstrap.servers"]
    return servers, client, published(name=status.name, bootstrap=servers, kafka=client) is not None
