"""`ottla streams delete`: what is left of applications that do not run any more, here and in the cluster."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.output import Planned, plural, table
from ottla.cli.pipeline.run import data_dir_option, require_spark
from ottla.cli.settings import Settings, command
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home, data_folder, home_of
from ottla.spark.sink.checkpoint import local_path, remove_folder


@command("delete", changes=True, asks=True)
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@data_dir_option
def delete(settings: Settings, names: tuple[str, ...], data_dir: Path | None) -> None:
    """Delete applications that do not run: checkpoint, status, log, and in the cluster their changelogs, repartition
    topics and markers.

    An application of the same id then starts at the beginning. What was written to other topics stays.
    """
    require_spark()
    chosen = {
        home: shape_of_stopped(home)
        for home in (home_of(data_folder(data_dir), name, exactly=True) for name in dict.fromkeys(names))
    }
    for home in chosen:
        _refuse_other_versions(home)
    planned = Planned(
        settings,
        [{"name": home.name, "deleted": not settings.dry_run} for home in chosen],
        table(("ID", "STATE", "BATCH", "TOPICS"), [_row(home, shape) for home, shape in chosen.items()]),
    )
    if not planned.agreed(f"Delete {plural(len(chosen), 'application')} with all state?", "nothing to do"):
        return
    for home, shape in chosen.items():
        _delete(settings, home, shape)
    planned.done(f"deleted {', '.join(home.name for home in chosen)}")


def checkpoint_of(home: Home) -> Path:
    named = home.read().checkpoint
    if named and local_path(named) is None:
        raise OttlaError(
            f"the checkpoint {named} of '{home.name}' is not on this machine: run its file with --reset, which deletes "
            "the state as well."
        )
    return (local_path(named) if named else None) or home.checkpoint


def shape_of_stopped(home: Home) -> dict[str, object]:
    """What the application has made in the cluster, as its checkpoint says."""
    from ottla.streams.engine.identity import shape_in

    if home.is_running():
        raise OttlaError(
            f"application '{home.name}' is running (pid {home.pid() or 'unknown'}): "
            f"stop it first, with `ottla streams stop {home.name}`."
        )
    shape = shape_in(checkpoint_of(home))
    if shape is None:
        raise OttlaError(
            f"'{home.name}' has no application in its checkpoint: is it a pipeline? Then `ottla pipeline delete` "
            "deletes it."
        )
    return shape


def _row(home: Home, shape: dict[str, object]) -> tuple[str, str, int | None, str]:
    from ottla.streams.engine.identity import own_topics

    status = home.read()
    return home.name, status.state, status.batch, ", ".join(own_topics(shape))


def _delete(settings: Settings, home: Home, shape: dict[str, object]) -> None:
    from ottla.client.settings import parse_named
    from ottla.spark.sink.progress import published
    from ottla.streams.engine.preparing import reset

    client = settings.client_settings()
    servers = settings.bootstrap or home.read().bootstrap or client["bootstrap.servers"]
    client["bootstrap.servers"] = servers
    with home.locked():
        # A cluster that does not answer is told of while there is still a checkpoint.
        published(name=home.name, bootstrap=servers, kafka=client)
        remove_folder(checkpoint_of(home))
        reset(shape, parse_named(servers, client), servers, client)
        home.remove()
    _forget_version(home)


def _refuse_other_versions(home: Home) -> None:
    from ottla.streams.engine.versions import read_versions

    others = [id for id in read_versions(home).topics if id != home.name]
    if others:
        raise OttlaError(
            f"application '{home.name}' has other runs ({', '.join(others)}): delete those first, or let "
            f"`ottla streams switch {home.name} --drop-old` delete the old ones."
        )


def _forget_version(home: Home) -> None:
    from ottla.streams.engine.versions import versions_with, write_versions

    found = versions_with(home.folder.parent, home.name)
    if found is not None:
        write_versions(found[0], found[1].without(home.name))
