"""`ottla config get|set|unset topic|broker|group NAME`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.config_entries import KINDS, SHOWN_SOURCES, change_entries, fetch_entries, human_value, unknown_setting
from ottla.cli.connection import Cluster
from ottla.cli.lazy import Lazy, Section
from ottla.cli.name_completion import complete_group, complete_topic
from ottla.cli.output import done, notice, show, table
from ottla.cli.settings import Settings, VerbGroup, command, parse_assignment
from ottla.common.errors import OttlaError

config = VerbGroup(
    "config",
    help="Settings of topics, brokers and groups: get, set, unset.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("get", "config:get", "Show settings."),
                Lazy("set", "config:set_", "Change settings."),
                Lazy("unset", "config:unset", "Back to the defaults."),
            ),
        ),
    ),
)


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind")
    if kind == "topic":
        return complete_topic(ctx, param, incomplete)
    return complete_group(ctx, param, incomplete) if kind == "group" else []


kind_argument = click.argument("kind", type=click.Choice(KINDS))
name_argument = click.argument("name", shell_complete=_complete_name)


@command("get")
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, metavar="[SETTING]...")
@click.option("-a", "--all", "with_defaults", is_flag=True, help="Defaults too, not only what was set.")
def get(settings: Settings, kind: str, name: str, keys: tuple[str, ...], with_defaults: bool) -> None:
    """What is set on a topic, a broker (by node id) or a group; or the named settings, or all with --all."""
    cluster = Cluster(settings)
    _require_exists(cluster, kind, name)
    entries = fetch_entries(cluster, kind, [name])[name]
    if keys:
        entries = _pick(entries, keys, kind)
    elif not with_defaults:
        entries = [entry for entry in entries if entry["source"] in SHOWN_SOURCES[kind]]
    data: list[Any] = list(entries)
    show(settings, data, lambda: _lines(data, kind, name))


def _require_exists(cluster: Cluster, kind: str, name: str) -> None:
    described = cluster.reach()
    if kind == "topic":
        cluster.topics([name])
    elif kind == "broker" and name.isdigit() and int(name) not in [node.id for node in described.nodes]:
        known = ", ".join(str(node.id) for node in described.nodes)
        raise OttlaError(f"there is no broker {name}: there is {known}.")


def _pick(entries: list[dict[str, Any]], keys: Iterable[str], kind: str) -> list[dict[str, Any]]:
    by_name = {entry["name"]: entry for entry in entries}
    for key in keys:
        if key not in by_name:
            near = difflib.get_close_matches(key, by_name, n=1)
            hint = f"did you mean '{near[0]}'?" if near else "--all shows all."
            raise OttlaError(f"a {kind} has no setting '{key}': {hint}")
    return [by_name[key] for key in keys]


def _lines(entries: list[dict[str, Any]], kind: str, name: str) -> Iterable[str]:
    if not entries:
        return [f"nothing is set on {kind} {name}; --all shows the defaults"]
    rows = [(entry["name"], _value(entry), entry["source"]) for entry in entries]
    return table(["SETTING", "VALUE", "FROM"], rows)


def _value(entry: dict[str, Any]) -> str | None:
    return "(hidden)" if entry["sensitive"] else human_value(entry["name"], entry["value"])


@command("set", changes=True)
@kind_argument
@name_argument
@click.argument("assignments", nargs=-1, required=True, metavar="SETTING=VALUE...")
def set_(settings: Settings, kind: str, name: str, assignments: tuple[str, ...]) -> None:
    """Change settings; they hold at once and survive restarts.

    \b
      ottla config set topic orders retention.ms=86400000
      ottla config set broker 1 log.cleaner.threads=2
    """
    changes: dict[str, str | None] = dict(parse_assignment(assignment, "SETTING=VALUE") for assignment in assignments)
    _change(settings, kind, name, changes)


@command("unset", changes=True)
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, required=True, metavar="SETTING...")
def unset(settings: Settings, kind: str, name: str, keys: tuple[str, ...]) -> None:
    """Remove what was set, so that the defaults hold again."""
    _change(settings, kind, name, dict.fromkeys(keys))


def _doubtful(changes: dict[str, str | None]) -> list[str]:
    """What was set, without settings of one listener: a broker takes any name, and does not list those."""
    return [name for name, value in changes.items() if value is not None and not name.startswith("listener.name.")]


def _change(settings: Settings, kind: str, name: str, changes: dict[str, str | None]) -> None:
    cluster = Cluster(settings)
    _require_exists(cluster, kind, name)
    change_entries(cluster, kind, name, changes, validate_only=settings.dry_run)
    if kind == "broker" and (doubt := unknown_setting(cluster, kind, name, _doubtful(changes))):
        notice(f"ottla: it was taken, but {doubt}", colour="yellow")
    words = [f"{key}={value}" if value is not None else f"{key} back to default" for key, value in changes.items()]
    data: Any = {"kind": kind, "name": name, "settings": changes, "changed": not settings.dry_run}
    done(settings, data, f"{'would set' if settings.dry_run else 'set'} on {kind} {name}: {', '.join(words)}")
