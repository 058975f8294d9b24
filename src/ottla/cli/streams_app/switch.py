"""`ottla streams switch`: from the old run of an application to the one that has done its work again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.given import GivenName
from ottla.cli.output import Planned, plural, table
from ottla.cli.pipeline.run import data_dir_option, require_spark
from ottla.cli.pipeline.show import STOP_S_MAX, stop_home
from ottla.cli.settings import Settings, command
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home, data_folder, home_of
from ottla.spark.sink.checkpoint import remove_folder

if TYPE_CHECKING:
    from ottla.streams.engine.versions import Versions

Offsets = dict[tuple[str, int], int]


@command("switch", changes=True, asks=True)
@click.argument("application", metavar="ID")
@click.option("--to", "wanted", metavar="ID", help="Another run than the newest, such as the one before.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    type=GivenName(),
    help="Moves this consumer group to the new topics.",
)
@click.option("--drop-old", is_flag=True, help="Deletes the other runs: output topics, state and checkpoints.")
@data_dir_option
def switch(
    settings: Settings,
    application: str,
    wanted: str | None,
    groups: tuple[str, ...],
    drop_old: bool,
    data_dir: Path | None,
) -> None:
    """Let the run that `ottla streams run --reprocess` started take the place of the old one.

    The old run is stopped if it runs on this machine; its topics stay until --drop-old deletes them. From then on the
    application's name means the new run, and consumers have to read its topics: the table says which.

    \b
      ottla streams switch word-count
      ottla streams switch word-count --group dashboards
      ottla streams switch word-count --to word-count-v1
      ottla streams switch word-count --drop-old
    """
    require_spark()
    from ottla.streams.engine.versions import read_versions, write_versions

    folder = data_folder(data_dir)
    home = home_of(folder, application, exactly=True)
    versions = read_versions(home)
    target = _target(versions, wanted, drop_old)
    old = versions.in_charge
    renamed = _renamed(versions, old, target)
    _refuse_nothing_written(Home(folder, target))
    moves = _Moves(settings, folder, target, renamed, groups)
    dropped = [id for id in versions.topics if id != target] if drop_old else []
    planned = Planned(
        settings, _data(target, renamed, moves, versions, dropped), _lines(folder, target, renamed, moves)
    )
    planned.lines.extend(f"deleted: {id} with {_topics(versions, id)}" for id in dropped)
    question = f"Let '{target}' answer for '{application}'" if target != old else f"Keep '{target}'"
    question += f", and delete {', '.join(dropped)} with what they wrote?" if dropped else "?"
    if not planned.agreed(question, "nothing to do"):
        return
    if target != old and stop_home(Home(folder, old), STOP_S_MAX):
        planned.lines.append(f"stopped {old}")
    moves.commit()
    versions = replace(versions, in_charge=target)
    write_versions(home, versions)
    for id in dropped:
        _drop(settings, home, Home(folder, id), versions)
        versions = versions.without(id)
        write_versions(home, versions)
    reads = ", ".join(f"{new} instead of {before}" for before, new in renamed.items())
    planned.done(f"{application}: {target} is in charge" + (f"; consumers now read {reads}" if reads else ""))


def _target(versions: Versions, wanted: str | None, drop_old: bool) -> str:
    from ottla.streams.program import version_id

    if wanted is not None:
        wanted = versions.application if wanted == version_id(versions.application, 1) + "-v1" else wanted
        if wanted not in versions.topics:
            known = ", ".join(versions.topics) or "none besides itself"
            raise OttlaError(f"'{versions.application}' has no run '{wanted}' (there are: {known}).")
        return wanted
    if versions.waiting is not None:
        return versions.waiting
    if drop_old and len(versions.topics) > 1:
        return versions.in_charge
    raise OttlaError(
        f"there is no run to switch '{versions.application}' to: start one with `ottla streams run FILE --reprocess`."
    )


def _renamed(versions: Versions, old: str, target: str) -> dict[str, str]:
    """Of topics that both write; a program may have changed what it writes."""
    before, after = versions.topics.get(old, {}), versions.topics[target]
    return {before[name]: after[name] for name in after if name in before and before[name] != after[name]}


def _topics(versions: Versions, id: str) -> str:
    return ", ".join(versions.deletable(id)) or "no topics"


def _refuse_nothing_written(home: Home) -> None:
    if home.read().batch is None:
        raise OttlaError(f"the run '{home.name}' has not processed anything yet: let it catch up first.")


@dataclass
class _Moves:
    """Where consumer groups go on."""

    settings: Settings
    folder: Path
    target: str
    renamed: dict[str, str]
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        self.offsets: dict[str, Offsets] = {}
        if not self.groups:
            return
        from ottla.cli.group.change import require_no_members
        from ottla.cli.group.group_offsets import committed_offsets, describe_groups
        from ottla.client.settings import parse_named
        from ottla.streams.engine.moving_groups import equivalent_offsets

        client = self.settings.client_settings()
        cluster = Cluster(self.settings)
        for group in self.groups:
            require_no_members(group, describe_groups(cluster, [group])[group].members)
            committed = committed_offsets(cluster, group)
            found = equivalent_offsets(parse_named(client["bootstrap.servers"], client), committed, self.renamed)
            if not found:
                raise OttlaError(f"group '{group}' has committed nothing of {', '.join(self.renamed) or 'any topic'}.")
            self.offsets[group] = found

    def commit(self) -> None:
        from ottla.cli.group.change import commit_offsets

        for group, offsets in self.offsets.items():
            commit_offsets(Cluster(self.settings), group, offsets)


def _data(
    target: str, renamed: dict[str, str], moves: _Moves, versions: Versions, dropped: Iterable[str]
) -> list[dict[str, Any]]:
    groups = [
        {"group": group, "topic": topic, "partition": number, "offset": offset}
        for group, offsets in moves.offsets.items()
        for (topic, number), offset in offsets.items()
    ]
    return [
        {
            "in_charge": target,
            "before": versions.in_charge,
            "topics": dict(renamed),
            "groups": groups,
            "dropped": list(dropped),
        }
    ]


def _lines(folder: Path, target: str, renamed: dict[str, str], moves: _Moves) -> list[str]:
    status = Home(folder, target).read()
    behind = "lag unknown" if status.lag is None else f"{plural(status.lag, 'record')} behind"
    lines = [f"{target}: {status.state}, {behind}"]
    lines += table(("TOPIC BEFORE", "TOPIC NOW"), list(renamed.items()))
    for group, offsets in moves.offsets.items():
        rows = [(group, topic, number, offset) for (topic, number), offset in sorted(offsets.items())]
        lines += table(("GROUP", "TOPIC", "PARTITION", "GOES ON AT"), rows)
    return lines


def _drop(settings: Settings, base: Home, home: Home, versions: Versions) -> None:
    """Its state, its checkpoint, what it wrote. The folder of the first run stays: it says which run is in charge."""
    from ottla.cli.streams_app.delete import checkpoint_of, shape_of_stopped
    from ottla.client.admin.own_topics import delete_topics
    from ottla.client.lookup import ClusterReader
    from ottla.client.settings import parse_named
    from ottla.streams.engine.preparing import reset

    shape, checkpoint = shape_of_stopped(home), checkpoint_of(home)
    client = settings.client_settings()
    servers = client["bootstrap.servers"]
    with home.locked():
        remove_folder(checkpoint)
        reset(shape, parse_named(servers, client), servers, client)
        with ClusterReader(parse_named(servers, client)) as reader:
            delete_topics(reader, versions.deletable(home.name))
        if home.name == base.name:
            (home.folder / "status.json").unlink(missing_ok=True)
            home.spark_log.unlink(missing_ok=True)
        else:
            home.remove()
