"""`ottla user`: who may log in by SCRAM."""

from __future__ import annotations

import secrets
from typing import Any

import click

from ottla.cli.lazy import Lazy, Section
from ottla.cli.output import confirm, done, show, table
from ottla.cli.passwords import password_file_option, read_password
from ottla.cli.settings import Settings, VerbGroup, at_least, command
from ottla.cli.txn.show import cluster_of
from ottla.client.admin.users import NUMBERS, delete_user, describe_users, set_password
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError

MECHANISMS = tuple(NUMBERS)
DEFAULT_MECHANISM = "SCRAM-SHA-512"
ITERATIONS = 8192
_GENERATED_BYTES = 24

user = VerbGroup(
    "user",
    help="Users who log in by SCRAM: list, create, passwd, delete.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("list", "user:list_users", "List users and their mechanisms."),
                Lazy("create", "user:create", "Add a user."),
                Lazy("passwd", "user:passwd", "Change a user's password."),
                Lazy("delete", "user:delete", "Remove users."),
            ),
        ),
    ),
)

_name = click.argument("name")
_mechanisms = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    metavar="MECHANISM",
    help=f"{' or '.join(MECHANISMS)} [{DEFAULT_MECHANISM}, or those of the user]; repeatable.",
)
_iterations = click.option(
    "--iterations",
    type=at_least(4096, 16_384),
    default=str(ITERATIONS),
    help=f"Of the hash, 4096 to 16384 [{ITERATIONS}].",
)
_generate = click.option("--generate", is_flag=True, help="Make a random password, and print it.")


@command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def list_users(settings: Settings, names: tuple[str, ...]) -> None:
    """Who may log in by SCRAM, and by which mechanisms. Users of PLAIN and of tokens are not kept by the cluster."""
    with cluster_of(settings) as cluster:
        found = describe_users(cluster, names or None)
    for name in names:
        if name not in found:
            raise _nobody(name)
    data: list[Any] = [
        {"user": name, "mechanisms": [{"name": one, "iterations": count} for one, count in sorted(of_user.items())]}
        for name, of_user in found.items()
    ]
    rows = [(name, ", ".join(sorted(of_user)), max(of_user.values(), default=0)) for name, of_user in found.items()]
    show(settings, data, lambda: table(["USER", "MECHANISMS", "ITERATIONS"], rows) if rows else ["there are no users"])


@command("create", changes=True)
@_name
@password_file_option
@_generate
@_mechanisms
@_iterations
def create(
    settings: Settings,
    name: str,
    password_file: str | None,
    generate: bool,
    mechanisms: tuple[str, ...],
    iterations: int,
) -> None:
    """Add a user who logs in by SCRAM-SHA-512, or by what --mechanism says.

    The password is asked for, or comes from a file or standard input. Nobody but super users may do anything until an
    ACL allows it: `ottla acl add`.

    \b
      ottla user create ada
      ottla user create ada --password-file ada.txt
      ottla user create billing --generate
    """
    with cluster_of(settings) as cluster:
        if describe_users(cluster, [name]):
            raise OttlaError(f"there is a user '{name}' already: change the password with `ottla user passwd {name}`.")
        wanted = dict.fromkeys(mechanisms or (DEFAULT_MECHANISM,), iterations)
        _set(settings, cluster, name, wanted, password_file, generate, "created")


@command("passwd", changes=True)
@_name
@password_file_option
@_generate
@_mechanisms
@_iterations
def passwd(
    settings: Settings,
    name: str,
    password_file: str | None,
    generate: bool,
    mechanisms: tuple[str, ...],
    iterations: int,
) -> None:
    """Change the password of a user, for all mechanisms that the user has.

    Connections that are open stay until their sessions end (connections.max.reauth.ms).
    """
    with cluster_of(settings) as cluster:
        known = describe_users(cluster, [name]).get(name)
        if known is None:
            raise _nobody(name)
        wanted = dict.fromkeys(mechanisms or sorted(known), iterations)
        _set(settings, cluster, name, wanted, password_file, generate, "changed the password of")


def _set(
    settings: Settings,
    cluster: ClusterClient,
    name: str,
    mechanisms: dict[str, int],
    password_file: str | None,
    generate: bool,
    verb: str,
) -> None:
    if generate and password_file is not None:
        raise click.UsageError("--generate and --password-file exclude each other.")
    password = secrets.token_urlsafe(_GENERATED_BYTES) if generate else read_password(password_file, name)
    if not settings.dry_run:
        set_password(cluster, name, password, mechanisms)
    said = f"{'would have ' if settings.dry_run else ''}{verb} user {name} ({', '.join(mechanisms)})"
    data: dict[str, Any] = {"user": name, "mechanisms": list(mechanisms), "changed": not settings.dry_run}
    if generate and not settings.dry_run:
        data["password"] = password
        said += f", password {password}"
    done(settings, data, said)


@command("delete", changes=True, asks=True)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def delete(settings: Settings, names: tuple[str, ...]) -> None:
    """Remove users, so that they cannot log in any more. Their ACLs stay: `ottla acl remove --allow NAME`."""
    with cluster_of(settings) as cluster:
        found = describe_users(cluster, names)
        for name in names:
            if name not in found:
                raise _nobody(name)
        listed = ", ".join(names)
        if not settings.dry_run:
            confirm(settings, f"delete {listed}?")
            for name in names:
                delete_user(cluster, name, found[name])
    data: Any = {"users": list(names), "changed": not settings.dry_run}
    done(settings, data, f"{'would have deleted' if settings.dry_run else 'deleted'} {listed}")


def _nobody(name: str) -> OttlaError:
    return OttlaError(f"there is no user '{name}': `ottla user list` shows who there is.")
