"""`ottla registry start`: an instance of the registry in the foreground, until SIGTERM, SIGHUP or Ctrl-C."""

from __future__ import annotations

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import notice
from ottla.cli.registry.extra import needs_registry
from ottla.cli.serving_options import log_level_option
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.streams import forget_stdout
from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address

LEVELS = ("none", "backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive")


@command("start")
@click.option("--listen", type=ListenAddress(), default="127.0.0.1:8081", help="Where to listen [127.0.0.1:8081].")
@click.option("--advertise", metavar="HOST", help="What other instances reach this one by [what --listen says].")
@click.option("--topic", default="_schemas", metavar="TOPIC", help="Where schemas are kept [_schemas].")
@click.option("--group", default="schema-registry", metavar="GROUP", help="Of the instances that belong together.")
@click.option(
    "--compatibility", type=click.Choice(LEVELS), default="backward", help="Where nothing else is set [backward]."
)
@click.option("--read-only", is_flag=True, help="Answer questions, refuse every change.")
@click.option(
    "--users",
    "users_file",
    metavar="FILE",
    type=GivenPath(str),
    help="Passwords and rights, TOML [everybody may do everything].",
)
@click.option("--certificate", metavar="FILE", type=GivenPath(str), help="PEM: serve HTTPS.")
@click.option("--key", metavar="FILE", type=GivenPath(str), help="PEM: the certificate's key.")
@click.option(
    "--ca", metavar="FILE", type=GivenPath(str), help="PEM: whom to trust when forwarding to another instance."
)
@click.option(
    "--client-ca",
    metavar="FILE",
    type=GivenPath(str),
    help="PEM: clients may log in with its certificates; must without --users.",
)
@click.option(
    "--session-timeout",
    "session_timeout_ms",
    type=at_least(1),
    default=10_000,
    metavar="MS",
    help="Until a dead writer is replaced [10000].",
)
@log_level_option
def start(
    settings: Settings,
    listen: str,
    advertise: str | None,
    topic: str,
    group: str,
    compatibility: str,
    read_only: bool,
    users_file: str | None,
    certificate: str | None,
    key: str | None,
    ca: str | None,
    client_ca: str | None,
    session_timeout_ms: int,
    log_level: str,
) -> None:
    """Start a schema registry and serve until Ctrl-C. Any client of Confluent's registry works with it.

    Schemas are kept in a topic of the cluster that -b names. Several instances elect one that writes. stdout gets the
    one line `ready ...`, the log goes to stderr.

    \b
      ottla registry start
      ottla registry start --listen 0.0.0.0:8081 --advertise registry-1.example.com -b kafka-1:9092
      ottla registry start --users users.toml --certificate registry.pem --key registry.key
    """
    import asyncio
    import logging

    from ottla.common.logging_setup import set_up_logging

    with needs_registry():
        from ottla.http.until_signal import LEAVE_S_MAX, run_until_signal
        from ottla.registry.server import RegistryServer
        from ottla.registry.settings import RegistrySettings
    host, port = parse_address(listen, what="--listen")
    client = settings.client_settings()
    bootstrap = client.pop("bootstrap.servers")
    if key is not None and certificate is None:
        raise click.UsageError("--key is given without --certificate.")
    if client_ca is not None and certificate is None:
        raise click.UsageError("--client-ca is given without --certificate: clients show theirs over HTTPS only.")
    set_up_logging(log_level, "text")
    given = RegistrySettings(
        bootstrap=bootstrap,
        client=client,
        host=host,
        port=port,
        advertised_host=advertise,
        topic=topic,
        group=group,
        default_level=compatibility.upper(),
        is_read_only=read_only,
        users_file=users_file,
        certificate=certificate,
        key=key,
        ca=ca,
        client_ca=client_ca,
        session_timeout_ms=session_timeout_ms,
        heartbeat_ms=max(100, session_timeout_ms // 3),
    )
    log = logging.getLogger("ottla.registry")
    asyncio.run(run_until_signal(RegistryServer(given), _announce, log, leave_s_max=LEAVE_S_MAX))


def _announce(line: str) -> None:
    """It serves, whether or not somebody reads what it prints."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OttlaError):
        forget_stdout()
        notice(line)
