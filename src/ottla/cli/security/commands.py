"""`ottla security init`, `add-broker`, `add-client`, `renew` and `show`."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import notice, paint, show, table
from ottla.cli.security.folder import CA_DAYS, SecurityFolder
from ottla.cli.security.plan import ADMIN, BrokerPlan, ClientPlan, Plan, check_client_name, check_hosts, check_zookeeper
from ottla.cli.settings import OUTPUTS, Settings, at_least
from ottla.common.errors import OttlaError
from ottla.metadata.scram import salted

DAYS = 397
PORT = 9093
_PORT_MAX = 65_533
_ITERATIONS = 8192
_SOON_DAYS = 30
_PASSWORD_BYTES = 24

_dir = click.option(
    "--dir",
    "directory",
    required=True,
    metavar="DIR",
    type=GivenPath(file_okay=False),
    help="The folder of certificates and settings.",
)
_hosts = click.option(
    "--host",
    "hosts",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A name or address of the broker; the first is what clients are told; repeatable.",
)
_days = click.option(
    "--days", type=at_least(1, CA_DAYS), default=str(DAYS), help=f"How long certificates are good [{DAYS}]."
)


def _verb(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command about files of this machine: it takes neither -b nor --dry-run."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def call(settings: Settings, /, directory: Path, output: str | None, **more: Any) -> None:
            settings.refuse_dry_run(f"security {name}")
            settings.output = output or settings.output
            function(settings, SecurityFolder(directory), **more)

        call.__doc__ = function.__doc__
        call.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        output = click.option("--output", type=click.Choice(OUTPUTS), help="How to print [table].")
        return click.command(name)(_dir(output(click.pass_obj(call))))

    return decorate


@_verb("init")
@_hosts
@click.option(
    "--port", type=at_least(1, _PORT_MAX), default=str(PORT), help=f"For users; the next ones are taken too [{PORT}]."
)
@click.option("--id", "broker_id", type=at_least(0), default="1", help="Of the first broker [1].")
@click.option("--zookeeper", metavar="HOST:PORT/PATH", help="For a cluster: where its metadata is.")
@_days
def init(
    settings: Settings,
    folder: SecurityFolder,
    hosts: tuple[str, ...],
    port: int,
    broker_id: int,
    zookeeper: str | None,
    days: int,
) -> None:
    """Make a certificate authority, certificates for a broker and a client, an admin with a random password, and ready
    settings for the broker, Java, librdkafka, Python, Spark and `ottla`.

    Prints three lines that start the broker and prove that it works.

    \b
      ottla security init --dir ~/ottla --host localhost
      ottla security init --dir /etc/ottla --host broker-1.example.com --zookeeper zk-1:2181,zk-2:2181/ottla
    """
    if port > _PORT_MAX:
        raise click.UsageError(f"--port takes three ports in a row, and there are none above {_PORT_MAX}.")
    first, password = BrokerPlan(broker_id, check_hosts(hosts)), secrets.token_urlsafe(_PASSWORD_BYTES)
    admin, certificate = ClientPlan(ADMIN, ADMIN, password), ClientPlan(f"{ADMIN}-certificate", ADMIN)
    plan = Plan(port, _first_user(password), [first], [admin, certificate], check_zookeeper(zookeeper), days=days)
    if zookeeper is not None:
        plan.zookeeper_login = f"ottla:{secrets.token_urlsafe(_PASSWORD_BYTES)}"
    with folder.locked():
        if folder.exists:
            raise OttlaError(
                f"{folder.path} is in use already: add to it with `ottla security add-broker` or `add-client`, or "
                "choose another --dir."
            )
        folder.make_authority()
        folder.issue_to_broker(first, days)
        folder.issue_to_client(certificate, days)
        folder.keep(plan)
    steps = folder.first_steps(first, admin)
    data: Any = {
        "directory": str(folder.path),
        "server_properties": str(folder.server_properties(first)),
        "profiles": str(folder.profiles),
        "clients": {one.name: str(folder.client(one)) for one in plan.clients},
        "steps": steps,
    }
    notice(f"made {folder.path}: settings of clients are in clients/, the admin's password is in clients/{ADMIN}.")
    notice("keep ca.key somewhere safe. To start the broker, and to see that it works:")
    show(settings, data, lambda: steps)


def _first_user(password: str) -> str:
    """Without the password itself: a broker needs to check one, not to know it."""
    mechanism, salt = "SCRAM-SHA-512", secrets.token_bytes(24)
    key = base64.b64encode(salted(mechanism, password, salt, _ITERATIONS)).decode()
    shown = base64.b64encode(salt).decode()
    return f'{mechanism}=[name={ADMIN},salt="{shown}",saltedpassword="{key}",iterations={_ITERATIONS}]'


@_verb("add-broker")
@click.argument("broker_id", metavar="ID", type=at_least(0))
@_hosts
@_days
def add_broker(settings: Settings, folder: SecurityFolder, broker_id: int, hosts: tuple[str, ...], days: int) -> None:
    """Make a certificate and a server.properties for another broker of the cluster.

    Copy its folder and ca.pem to the same place on its machine.

    \b
      ottla security add-broker 2 --dir /etc/ottla --host broker-2.example.com
    """
    with folder.locked():
        plan = folder.plan()
        if not plan.is_cluster:
            raise OttlaError(
                f"{folder.path} is of a single broker: a cluster is made with `ottla security init --zookeeper "
                "HOST:PORT/PATH`."
            )
        if any(one.id == broker_id for one in plan.brokers):
            raise OttlaError(f"there is a broker {broker_id} already: `ottla security renew` renews its certificate.")
        folder.check_days(days)
        added = BrokerPlan(broker_id, check_hosts(hosts))
        plan.brokers.append(added)
        folder.issue_to_broker(added, days)
        folder.keep(plan)
    file = folder.server_properties(added)
    data: Any = {"broker": broker_id, "server_properties": str(file)}
    show(settings, data, lambda: [f"ottla start --config {file}"])


@_verb("add-client")
@click.argument("name")
@_days
def add_client(settings: Settings, folder: SecurityFolder, name: str, days: int) -> None:
    """Make a certificate and settings for a client, which comes in as User:NAME without a password.

    \b
      ottla security add-client billing --dir /etc/ottla
      ottla acl add --allow billing --consumer --topic orders --group billing
    """
    check_client_name(name)
    with folder.locked():
        plan = folder.plan()
        if any(name in (one.name, one.user) for one in plan.clients):
            raise OttlaError(f"there is a client '{name}' already: `ottla security renew {name}` gives it a new one.")
        folder.check_days(days)
        added = ClientPlan(name, name)
        plan.clients.append(added)
        folder.issue_to_client(added, days)
        folder.keep(plan)
    data: Any = {"client": name, "principal": f"User:{name}", "directory": str(folder.client(added))}
    said = f"made {folder.client(added)} for User:{name}, who may do nothing yet: see `ottla acl add --help`"
    show(settings, data, lambda: [said])


@_verb("renew")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--ca", "new_ca", is_flag=True, help="A new authority; the old one is trusted as well.")
@click.option("--forget-old-ca", "forget", is_flag=True, help="Trust only the newest authority.")
@_days
def renew(
    settings: Settings, folder: SecurityFolder, names: tuple[str, ...], new_ca: bool, forget: bool, days: int
) -> None:
    """Make new certificates, for all or for those that are named (broker-1, or the name of a client).

    A broker takes up the new file by itself. To replace the authority too: `renew --ca`, give the new ca.pem to
    everybody, `renew`, give everybody their new certificate, `renew --forget-old-ca`, and ca.pem to everybody again.
    """
    if (new_ca and forget) or (names and (new_ca or forget)):
        raise click.UsageError("--ca and --forget-old-ca are steps of their own: give nothing else with them.")
    with folder.locked():
        plan = folder.plan()
        renewed: list[tuple[str, datetime]] = []
        if new_ca:
            folder.make_authority()
            said = f"made a new authority; give {folder.ca} to all brokers and clients, then `ottla security renew`"
        elif forget:
            count = folder.forget_old_authorities()
            said = f"forgot {count} old authorities; give {folder.ca} to all brokers and clients"
        else:
            folder.check_days(days)
            renewed = _renew(folder, plan, names, days)
            said = ""
        folder.keep(plan)
    rows = [(name, f"{end:%Y-%m-%d}") for name, end in renewed]
    data: Any = {"renewed": [{"name": name, "expires": end} for name, end in rows]}
    show(settings, data, lambda: [said] if said else table(["RENEWED", "EXPIRES"], rows))


def _renew(folder: SecurityFolder, plan: Plan, names: tuple[str, ...], days: int) -> list[tuple[str, datetime]]:
    brokers = {one.name: one for one in plan.brokers}
    clients = {one.name: one for one in plan.clients if one.password is None}
    for name in names:
        if name not in brokers and name not in clients:
            raise OttlaError(f"there is no certificate of '{name}': there are {', '.join([*brokers, *clients])}.")
    return [
        *((name, folder.issue_to_broker(one, days)) for name, one in brokers.items() if not names or name in names),
        *((name, folder.issue_to_client(one, days)) for name, one in clients.items() if not names or name in names),
    ]


@_verb("show")
def show_(settings: Settings, folder: SecurityFolder) -> None:
    """The certificates that there are, and until when they are good; exit status 1 if one has expired."""
    now = datetime.now(UTC)
    found = list(folder.expiry())
    data: Any = [{"name": name, "file": str(file), "expires": end.isoformat()} for name, file, end in found]
    rows = [(name, f"{end:%Y-%m-%d}", _left((end - now).days), str(file)) for name, file, end in found]
    show(settings, data, lambda: table(["NAME", "EXPIRES", "LEFT", "FILE"], rows))
    if any(end <= now for _, _, end in found):
        raise click.exceptions.Exit(1)


def _left(days: int) -> str:
    if days < 0:
        return paint("expired", "red")
    return paint(f"{days} d", "yellow" if days < _SOON_DAYS else None)
