"""`ottla console`: the console in the foreground, until SIGTERM, SIGHUP or Ctrl-C."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import notice
from ottla.cli.serving_options import log_level_option
from ottla.cli.settings import Settings, command
from ottla.cli.streams import forget_stdout
from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address


@command("console")
@click.option("--listen", type=ListenAddress(), default="127.0.0.1:8080", help="Where to listen [127.0.0.1:8080].")
@click.option("--host-name", "host_names", multiple=True, metavar="NAME", help="A name it is reached by; repeatable.")
@click.option(
    "--registry",
    metavar="URL",
    envvar="OTTLA_REGISTRY_URL",
    help="Of a schema registry: schemas, and records that were written with them; user:password@ logs in.",
)
@click.option("--registry-ca", metavar="FILE", type=GivenPath(str), help="PEM: whom to trust, for https.")
@click.option(
    "--registry-bearer",
    metavar="FILE",
    type=GivenPath(str),
    help="Properties bearer.auth.*: a token logs in to the registry.",
)
@click.option(
    "--registry-certificate",
    metavar="FILE",
    type=GivenPath(str),
    help="PEM with its key: logs in to the registry, for https.",
)
@click.option(
    "--connect",
    multiple=True,
    metavar="URL",
    envvar="OTTLA_CONNECT_URL",
    help="Of Kafka Connect's REST API; user:password@ logs in; repeatable.",
)
@click.option(
    "--connect-ca",
    metavar="FILE",
    type=GivenPath(str),
    envvar="OTTLA_CONNECT_CA",
    help="PEM: whom to trust, for https.",
)
@click.option(
    "--connect-certificate",
    metavar="FILE",
    type=GivenPath(str),
    help="PEM with its key: logs in to Connect, for https.",
)
@click.option(
    "--metrics",
    multiple=True,
    metavar="URL",
    envvar="OTTLA_METRICS_URL",
    help="Of a broker's Prometheus endpoint; user:password@ logs in; repeatable.",
)
@click.option(
    "--metrics-ca",
    metavar="FILE",
    type=GivenPath(str),
    envvar="OTTLA_METRICS_CA",
    help="PEM: whom to trust, for https.",
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option(
    "--users", "users_file", metavar="FILE", type=GivenPath(str), help="Who may log in, with which rights: TOML."
)
@click.option("--login", type=click.Choice(("sasl",)), help="Users of the cluster log in with their passwords there.")
@click.option("--admin", "admins", multiple=True, metavar="USER", help="With --login sasl: may change connectors, too.")
@click.option("--open", "is_open", is_flag=True, help="Let everybody in, also where others can reach it.")
@click.option("--mask", "masks", multiple=True, metavar="TOPIC:FIELD,...", help="Fields that are hidden; repeatable.")
@click.option("--audit", "audit_file", type=GivenPath(), metavar="FILE", help="The broker's audit trail.")
@click.option("--pipelines", type=GivenPath(), metavar="DIR", help="Where pipelines live on this machine.")
@click.option(
    "--pipeline-files",
    type=GivenPath(),
    metavar="DIR",
    help="Pipelines and Streams applications that admins may start, on this machine [none].",
)
@click.option(
    "--process",
    "processes",
    type=GivenPath(),
    multiple=True,
    metavar="FILE",
    help="A business process to watch, as `ottla trace watch` takes it; repeatable.",
)
@click.option("--certificate", metavar="FILE", type=GivenPath(str), help="PEM: serve HTTPS.")
@click.option("--key", metavar="FILE", type=GivenPath(str), help="PEM: the certificate's key.")
@log_level_option
def console(
    settings: Settings,
    listen: str,
    host_names: tuple[str, ...],
    registry: str | None,
    registry_ca: str | None,
    registry_bearer: str | None,
    registry_certificate: str | None,
    connect: tuple[str, ...],
    connect_ca: str | None,
    connect_certificate: str | None,
    metrics: tuple[str, ...],
    metrics_ca: str | None,
    read_only: bool,
    users_file: str | None,
    login: str | None,
    admins: tuple[str, ...],
    is_open: bool,
    masks: tuple[str, ...],
    audit_file: Path | None,
    pipelines: Path | None,
    pipeline_files: Path | None,
    processes: tuple[Path, ...],
    certificate: str | None,
    key: str | None,
    log_level: str,
) -> None:
    """Show the cluster that -b names in the browser, and serve until Ctrl-C. Works with any Kafka cluster.

    stdout gets the one line `ready http://...`, the log goes to stderr.

    \b
      ottla console
      ottla console -b kafka-1:9092 --registry http://localhost:8081 --connect http://localhost:8083
      ottla console --listen 0.0.0.0:8080 --host-name console.example.com --users users.toml
      ottla console --mask 'payments*:card.number,headers.auth'
    """
    import asyncio
    import logging

    from ottla.common.logging_setup import set_up_logging

    with _needs_console():
        from ottla.console.server import ConsoleServer
        from ottla.console.settings import ConsoleSettings
        from ottla.http.until_signal import LEAVE_S_MAX, run_until_signal
    host, port = parse_address(listen, what="--listen")
    if key is not None and certificate is None:
        raise click.UsageError("--key is given without --certificate.")
    if users_file is not None and login is not None:
        raise click.UsageError("--users and --login sasl are two ways to log in: choose one.")
    if admins and login is None:
        raise click.UsageError('--admin belongs to --login sasl; in a file of users it is role = "admin".')
    if not (users_file or login or is_open or _is_of_this_machine(host)):
        raise click.UsageError(
            f"others can reach {listen}: give --users FILE or --login sasl, or --open to let everybody in."
        )
    client = settings.client_settings()
    bootstrap = client.pop("bootstrap.servers")
    set_up_logging(log_level, "text")
    given = ConsoleSettings(
        bootstrap=bootstrap,
        client=client,
        host=host,
        port=port,
        host_names=host_names,
        registry=registry,
        registry_ca=registry_ca,
        registry_bearer=registry_bearer,
        registry_certificate=registry_certificate,
        connect=connect,
        connect_ca=connect_ca,
        connect_certificate=connect_certificate,
        metrics=metrics,
        metrics_ca=metrics_ca,
        is_read_only=read_only,
        users_file=users_file,
        has_sasl_login=login is not None,
        admins=admins,
        masks=masks,
        audit_file=audit_file,
        pipelines=pipelines,
        pipeline_files=pipeline_files,
        processes=processes,
        certificate=certificate,
        key=key,
    )
    log = logging.getLogger("ottla.console")
    asyncio.run(run_until_signal(ConsoleServer(given), _announce, log, leave_s_max=LEAVE_S_MAX))


class _needs_console:
    """What it needs beyond the core is installed with an extra; who has not gets one sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("ottla"):
            raise OttlaError(f"this needs {error.name}: run `pip install 'ottla[console]'`.") from None


def _is_of_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _announce(line: str) -> None:
    """It serves, whether or not somebody reads what it prints."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OttlaError):
        forget_stdout()
        notice(line)
