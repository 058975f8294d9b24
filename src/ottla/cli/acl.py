"""`ottla acl`: who may do what to which resource."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import click

from ottla.cli.lazy import Lazy, Section
from ottla.cli.output import Planned, plural, show, table
from ottla.cli.settings import Settings, VerbGroup, command
from ottla.cli.txn.show import cluster_of
from ottla.client.admin.acls import create_acls, delete_acls, describe_acls
from ottla.metadata.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

acl = VerbGroup(
    "acl",
    help="Who may do what: list, add, remove.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("list", "acl:list_acls", "List ACLs."),
                Lazy("add", "acl:add", "Allow or deny something."),
                Lazy("remove", "acl:remove", "Remove ACLs; shows them first."),
            ),
        ),
    ),
)

_KINDS = (
    ("topics", ResourceType.TOPIC),
    ("groups", ResourceType.GROUP),
    ("transactional_ids", ResourceType.TRANSACTIONAL_ID),
    ("users", ResourceType.USER),
)
# What Kafka's kafka-acls means by --producer and --consumer.
_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER = {ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE), ResourceType.GROUP: (Operation.READ,)}
_OPERATIONS = tuple(operation for operation in Operation if operation not in (Operation.UNKNOWN, Operation.ANY))
_POSSIBLE = {
    ResourceType.TOPIC: "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.GROUP: "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.CLUSTER: "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE",
    ResourceType.TRANSACTIONAL_ID: "DESCRIBE WRITE TWO_PHASE_COMMIT",
    ResourceType.USER: "CREATE_TOKENS DESCRIBE_TOKENS",
}


@dataclass
class Wanted:
    """What the options of a command name."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    users: tuple[str, ...]
    is_cluster: bool
    prefixed: bool
    operations: tuple[Operation, ...]
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    hosts: tuple[str, ...]

    def resources(self) -> Iterable[tuple[ResourceType, str]]:
        for field, kind in _KINDS:
            for name in getattr(self, field):
                yield kind, name
        if self.is_cluster:
            yield ResourceType.CLUSTER, CLUSTER_NAME

    @property
    def pattern(self) -> PatternType:
        return PatternType.PREFIXED if self.prefixed else PatternType.LITERAL


def _operation(text: str) -> Operation:
    """As Kafka names them, with - or _ between words, or as one: ClusterAction."""
    plain = text.replace("-", "").replace("_", "").lower()
    for operation in _OPERATIONS:
        if operation.name.replace("_", "").lower() == plain:
            return operation
    names = [operation.name.lower().replace("_", "-") for operation in _OPERATIONS]
    near = difflib.get_close_matches(text.lower(), names, 1)
    hint = f"did you mean {near[0]}?" if near else f"choose of {', '.join(names)}."
    raise click.BadParameter(f"there is no operation '{text}': {hint}")


def _principal(text: str) -> str:
    """`ada` is `User:ada`, the only kind that there is."""
    return text if ":" in text else f"User:{text}"


_operation.__name__ = _principal.__name__ = "TEXT"


def _selection(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which resources and whose."""
    options = [
        click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic; * is all; repeatable."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A group; * is all; repeatable."),
        click.option(
            "--transactional-id",
            "transactional_ids",
            multiple=True,
            metavar="ID",
            help="A transactional id; * is all; repeatable.",
        ),
        click.option("--user", "users", multiple=True, metavar="NAME", help="Whose tokens (User:NAME); repeatable."),
        click.option("--cluster", "is_cluster", is_flag=True, help="The cluster itself."),
        click.option("--prefixed", is_flag=True, help="Names are how those of resources begin."),
        click.option(
            "--operation",
            "operations",
            multiple=True,
            type=_operation,
            metavar="OPERATION",
            help="read, write, create, delete, alter, describe, ..., all; repeatable.",
        ),
        click.option(
            "--allow",
            "allowed",
            multiple=True,
            type=_principal,
            metavar="USER",
            help="Who may; * is everybody; repeatable.",
        ),
        click.option(
            "--deny", "denied", multiple=True, type=_principal, metavar="USER", help="Who may not; repeatable."
        ),
        click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="From here only; repeatable."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _roles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Shorthands for what a producer or a consumer needs."""
    for option in (
        click.option("--idempotent", is_flag=True, help="With --producer: for clusters older than 2.8."),
        click.option("--consumer", is_flag=True, help="read and describe of --topic, read of --group."),
        click.option("--producer", is_flag=True, help="write, describe, create of --topic; of --transactional-id too."),
    ):
        function = option(function)
    return function


# -- list ----------------------------------------------------------------------------------------------------------


@command("list")
@_selection
@click.option("--matching", is_flag=True, help="All that have an effect on what is named: * and prefixes too.")
def list_acls(settings: Settings, matching: bool, **options: Any) -> None:
    """List ACLs, all or those of what is named.

    \b
      ottla acl list
      ottla acl list --topic orders --matching
      ottla acl list --allow ada
    """
    with cluster_of(settings) as cluster:
        found = _found(cluster, Wanted(**options), PatternType.MATCH if matching else None)
    show(settings, [_json(one) for one in found], lambda: _lines(found) if found else ["there are no such ACLs"])


def _found(cluster: Any, wanted: Wanted, pattern: PatternType | None) -> list[Acl]:
    """Those that meet one of each kind of thing that is named."""
    resources: list[tuple[ResourceType, str | None]] = list(wanted.resources()) or [(ResourceType.ANY, None)]
    patterns = pattern or (PatternType.PREFIXED if wanted.prefixed else PatternType.ANY)
    holders: list[tuple[str | None, Permission]] = [
        *((one, Permission.ALLOW) for one in wanted.allowed),
        *((one, Permission.DENY) for one in wanted.denied),
    ] or [(None, Permission.ANY)]
    found: dict[Acl, None] = {}
    for (kind, name), (holder, permission), host, operation in product(
        resources, holders, wanted.hosts or (None,), wanted.operations or (Operation.ANY,)
    ):
        asked = AclFilter(kind, name, patterns, holder, host, operation, permission)
        found.update(dict.fromkeys(describe_acls(cluster, asked)))
    return list(found)


# -- add -----------------------------------------------------------------------------------------------------------


@command("add", changes=True)
@_roles
@_selection
def add(settings: Settings, producer: bool, consumer: bool, idempotent: bool, **options: Any) -> None:
    """Allow users something, or deny it; what is denied is denied, whatever is allowed.

    \b
      ottla acl add --allow ada --producer --topic orders
      ottla acl add --allow ada --consumer --topic orders --group billing
      ottla acl add --allow etl --operation read --topic raw- --prefixed
      ottla acl add --deny mallory --operation all --topic '*' --host 10.0.0.7
    """
    acls = _to_add(Wanted(**options), producer, consumer, idempotent)
    plan = Planned(settings, [_json(one) for one in acls], _lines(acls))
    with cluster_of(settings) as cluster:
        if settings.dry_run:
            plan.agreed("", "")
            return
        create_acls(cluster, acls)
    show(settings, [_json(one) for one in acls], lambda: [*_lines(acls), f"added {plural(len(acls), 'ACL')}"])


def _to_add(wanted: Wanted, producer: bool, consumer: bool, idempotent: bool) -> list[Acl]:
    if not wanted.allowed and not wanted.denied:
        raise click.UsageError("say for whom: --allow USER or --deny USER.")
    grants = list(_grants(wanted, producer, consumer, idempotent))
    holders = [(one, Permission.ALLOW) for one in wanted.allowed] + [(one, Permission.DENY) for one in wanted.denied]
    found: dict[Acl, None] = {}
    for (kind, name, operation), (holder, permission), host in product(grants, holders, wanted.hosts or (WILDCARD,)):
        # There is one cluster, and no names that begin like its own.
        pattern = PatternType.LITERAL if kind is ResourceType.CLUSTER else wanted.pattern
        found[Acl(kind, name, pattern, holder, host, operation, permission)] = None
    return list(found)


def _grants(
    wanted: Wanted, producer: bool, consumer: bool, idempotent: bool
) -> Iterable[tuple[ResourceType, str, Operation]]:
    resources = list(wanted.resources())
    if not resources:
        raise click.UsageError("say to what: --topic, --group, --transactional-id, --user or --cluster.")
    if not (producer or consumer):
        if idempotent:
            raise click.UsageError("--idempotent belongs to --producer.")
        if not wanted.operations:
            raise click.UsageError("say what: --operation, or --producer or --consumer for what these need.")
        for kind, name in resources:
            for operation in wanted.operations:
                _require_possible(kind, operation)
                yield kind, name, operation
        return
    if wanted.operations:
        raise click.UsageError("--producer and --consumer say which operations: leave out --operation.")
    _require_roles_have_what_they_need(wanted, producer, consumer)
    for kind, name in resources:
        for operation in (*_PRODUCER.get(kind, ()) * producer, *_CONSUMER.get(kind, ()) * consumer):
            yield kind, name, operation
    if idempotent:
        yield ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE


def _require_roles_have_what_they_need(wanted: Wanted, producer: bool, consumer: bool) -> None:
    if not wanted.topics:
        raise click.UsageError("--producer and --consumer need a --topic.")
    if consumer and not wanted.groups:
        raise click.UsageError("--consumer needs a --group: whose offsets it commits.")
    if wanted.groups and not consumer:
        raise click.UsageError("a producer uses no --group.")
    if wanted.transactional_ids and not producer:
        raise click.UsageError("a consumer uses no --transactional-id.")
    if wanted.is_cluster or wanted.users:
        raise click.UsageError("--producer and --consumer are about topics, groups and transactional ids only.")


def _require_possible(kind: ResourceType, operation: Operation) -> None:
    possible = _POSSIBLE[kind].split()
    if operation is not Operation.ALL and operation.name not in possible:
        shown = ", ".join(name.lower().replace("_", "-") for name in possible)
        what = kind.name.lower().replace("_", " ")
        raise click.UsageError(f"a {what} knows no {operation.name.lower().replace('_', '-')}: choose of {shown}, all.")


# -- remove --------------------------------------------------------------------------------------------------------


@command("remove", changes=True, asks=True)
@_roles
@_selection
def remove(settings: Settings, producer: bool, consumer: bool, idempotent: bool, **options: Any) -> None:
    """Remove ACLs: exactly those that `add` with the same options makes, or, without operations, all that meet what is
    named. They are shown first.

    \b
      ottla acl remove --allow ada --producer --topic orders
      ottla acl remove --allow ada
      ottla acl remove --topic orders
    """
    wanted = Wanted(**options)
    if not (any(wanted.resources()) or wanted.allowed or wanted.denied):
        raise click.UsageError("say which: --allow USER, --topic NAME, ...; `ottla acl list` shows what there is.")
    with cluster_of(settings) as cluster:
        if producer or consumer:
            exact = set(_to_add(wanted, producer, consumer, idempotent))
            acls = [one for one in describe_acls(cluster, AclFilter()) if one in exact]
        else:
            pattern = wanted.pattern if any(wanted.resources()) else None
            acls = _found(cluster, wanted, pattern)
        plan = Planned(settings, [_json(one) for one in acls], _lines(acls))
        if plan.agreed(f"remove {plural(len(acls), 'ACL')}?", "there are no such ACLs"):
            removed = delete_acls(cluster, acls)
            plan.done(f"removed {plural(removed, 'ACL')}")


# -- printing ------------------------------------------------------------------------------------------------------


def _json(one: Acl) -> dict[str, Any]:
    return {
        "resource_type": one.resource_type.name.lower(),
        "resource": one.resource_name,
        "pattern": one.pattern_type.name.lower(),
        "permission": one.permission.name.lower(),
        "principal": one.principal,
        "host": one.host,
        "operation": one.operation.name.lower(),
    }


def _lines(acls: Sequence[Acl]) -> list[str]:
    rows = [
        (
            one.resource_type.name.lower().replace("_", " "),
            one.resource_name + (" (prefix)" if one.pattern_type is PatternType.PREFIXED else ""),
            one.permission.name.lower(),
            one.principal,
            one.operation.name.lower().replace("_", "-"),
            one.host,
        )
        for one in acls
    ]
    return table(["RESOURCE", "NAME", "PERMISSION", "PRINCIPAL", "OPERATION", "HOST"], rows)
