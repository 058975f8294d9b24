"""`ottla quota`: how much of a broker clients may use."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

import click

from ottla.cli.lazy import Lazy, Section
from ottla.cli.output import done, show, table
from ottla.cli.settings import Settings, VerbGroup, command, parse_assignment
from ottla.cli.txn.show import cluster_of
from ottla.client.admin.quotas import alter_quotas, describe_quotas
from ottla.common.errors import OttlaError

quota = VerbGroup(
    "quota",
    help="How much clients may use: describe, set, remove.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("describe", "quota:describe", "Show quotas."),
                Lazy("set", "quota:set_", "Set quotas of a user, client id or address."),
                Lazy("remove", "quota:remove", "Remove quotas, so that the next one that fits holds."),
            ),
        ),
    ),
)

# By what they limit, with what they are measured in.
KEYS = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "% of a core",
    "controller_mutation_rate": "partitions/s",
    "connection_creation_rate": "connections/s",
}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)(?:i?b)?", re.IGNORECASE)
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_ENTITIES = (("user", "user"), ("client_id", "client-id"), ("ip", "ip"))


def _entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, kind in reversed(_ENTITIES):
        what = {"user": "user", "client_id": "client id", "ip": "address"}[name]
        function = click.option(
            f"--{kind}-default", f"{name}_default", is_flag=True, help=f"Each {what} that has no quota of its own."
        )(function)
        function = click.option(f"--{kind}", name, metavar="NAME", help=f"This {what}.")(function)
    return function


def _entity(options: dict[str, Any]) -> dict[str, str | None]:
    """Kinds and names; None is the default."""
    entity: dict[str, str | None] = {}
    for name, kind in _ENTITIES:
        given, is_default = options[name], options[f"{name}_default"]
        if given is not None and is_default:
            raise click.UsageError(f"--{kind} and --{kind}-default exclude each other.")
        if given == "":
            raise click.UsageError(f"--{kind} is empty: --{kind}-default is for those without a quota of their own.")
        if given is not None or is_default:
            entity[kind] = given
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("--ip stands alone: quotas of addresses are not combined with others.")
    return entity


def _named(entity: dict[str, str | None]) -> str:
    words = {"user": "user", "client-id": "client id", "ip": "address"}
    return ", ".join(
        f"every other {words.get(kind, kind)}" if name is None else f"{words.get(kind, kind)} {name}"
        for kind, name in sorted(entity.items(), reverse=True)
    )


@command("describe")
@_entity_options
@click.option("--exact", is_flag=True, help="Not those where what is named is only a part.")
def describe(settings: Settings, exact: bool, **options: Any) -> None:
    """Show the quotas that are set, all or those of what is named."""
    with cluster_of(settings) as cluster:
        found = describe_quotas(cluster, _entity(options), others=not exact)
    data: list[Any] = [{"entity": one.entity, "quotas": one.values} for one in found]
    rows = [
        (_named(one.entity), key, _shown(value), KEYS.get(key, ""))
        for one in found
        for key, value in one.values.items()
    ]
    show(settings, data, lambda: table(["FOR", "QUOTA", "VALUE", "UNIT"], rows) if rows else ["no quotas are set"])


@command("set", changes=True)
@_entity_options
@click.argument("assignments", nargs=-1, required=True, metavar="QUOTA=VALUE...")
def set_(settings: Settings, assignments: tuple[str, ...], **options: Any) -> None:
    """Set quotas; they hold at once, on each broker. K, M and G behind a number mean 1024, 1024² and 1024³.

    \b
      ottla quota set --user ada producer_byte_rate=10M consumer_byte_rate=20M
      ottla quota set --user-default --client-id etl request_percentage=50
      ottla quota set --ip 10.0.0.7 connection_creation_rate=5
    """
    entity = _required(options)
    changes: dict[str, float | None] = {}
    for assignment in assignments:
        key, text = parse_assignment(assignment, "QUOTA=VALUE")
        changes[_key(key)] = _number(key, text)
    _alter(settings, entity, changes)


@command("remove", changes=True)
@_entity_options
@click.option("--all", "everything", is_flag=True, help="All that are set for it.")
@click.argument("keys", nargs=-1, metavar="[QUOTA]...")
def remove(settings: Settings, everything: bool, keys: tuple[str, ...], **options: Any) -> None:
    """Remove quotas of a user, client id or address."""
    entity = _required(options)
    if everything == bool(keys):
        raise click.UsageError("name the quotas to remove, or give --all.")
    changes: dict[str, float | None] = dict.fromkeys(map(_key, keys))
    if everything:
        with cluster_of(settings) as cluster:
            for one in describe_quotas(cluster, entity, others=False):
                changes.update(dict.fromkeys(one.values))
        if not changes:
            raise OttlaError(f"no quotas are set for {_named(entity)}.")
    _alter(settings, entity, changes)


def _alter(settings: Settings, entity: dict[str, str | None], changes: dict[str, float | None]) -> None:
    with cluster_of(settings) as cluster:
        alter_quotas(cluster, entity, changes, validate_only=settings.dry_run)
    words = [f"{key} removed" if value is None else f"{key}={_shown(value)}" for key, value in changes.items()]
    data: Any = {"entity": entity, "quotas": changes, "changed": not settings.dry_run}
    done(settings, data, f"{'would set' if settings.dry_run else 'set'} for {_named(entity)}: {', '.join(words)}")


def _required(options: dict[str, Any]) -> dict[str, str | None]:
    entity = _entity(options)
    if not entity:
        raise click.UsageError(
            "say for whom: --user, --client-id, both, or --ip; or their defaults, --user-default ..."
        )
    return entity


def _key(name: str) -> str:
    if name in KEYS:
        return name
    near = difflib.get_close_matches(name, KEYS, 1)
    hint = f"did you mean {near[0]}?" if near else f"choose of {', '.join(KEYS)}."
    raise click.UsageError(f"there is no quota '{name}': {hint}")


def _number(key: str, text: str) -> float:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise click.UsageError(f"{key} takes a number above 0, such as 1048576 or 10M, not '{text}'.")
    return float(match[1]) * _SIZES[match[2].lower()]


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
