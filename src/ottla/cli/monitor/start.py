"""`ottla monitor start`: the lag monitor in the foreground, until SIGTERM, SIGHUP or Ctrl-C."""

from __future__ import annotations

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import notice
from ottla.cli.serving_options import log_format_option, log_level_option
from ottla.cli.settings import INT64_MAX, Settings, at_least, command
from ottla.cli.streams import forget_stdout
from ottla.common.errors import OttlaError


@command("start")
@click.option(
    "--listen",
    type=ListenAddress(any_host=True),
    default="127.0.0.1:9410",
    help="Where to listen [127.0.0.1:9410].",
)
@click.option("--interval", type=at_least(0.1), default=10.0, metavar="SECONDS", help="Between two looks [10].")
@click.option("--window", type=at_least(3), default=10, metavar="N", help="Looks by which is judged [10].")
@click.option(
    "--allowed-lag", type=at_least(0, INT64_MAX), default=0, metavar="N", help="Up to this much all is well [0]."
)
@click.option("--webhook", "webhooks", multiple=True, metavar="URL", help="POST changes of a status there; repeatable.")
@click.option(
    "--users", "users_file", metavar="FILE", type=GivenPath(str), help="Who may log in [everybody is let in]."
)
@click.option("--certificate", metavar="FILE", type=GivenPath(str), help="PEM: serve HTTPS.")
@click.option("--key", metavar="FILE", type=GivenPath(str), help="PEM: the certificate's key.")
@log_level_option
@log_format_option
def start(
    settings: Settings,
    listen: str,
    interval: float,
    window: int,
    allowed_lag: int,
    webhooks: tuple[str, ...],
    users_file: str | None,
    certificate: str | None,
    key: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Watch all consumer groups of a cluster, and tell what is wrong with them.

    Each partition of each group is judged by Burrow's rules: OK, WARN (falls behind), STALL (commits, and gets
    nowhere), STOP (commits no more), REWIND (went back). /metrics is for Prometheus, /v1/groups is JSON. stdout gets
    the one line `ready ...`, the log goes to stderr.

    \b
      ottla monitor start -b kafka-1:9092
      ottla monitor start --interval 30 --webhook https://chat.example.com/hooks/kafka
      ottla monitor start --listen 0.0.0.0:9410 --users users.toml --certificate monitor.pem --key monitor.key
    """
    import asyncio
    import logging

    from ottla.client.access.security_settings import parse_security
    from ottla.client.address import ClusterAddress
    from ottla.common.logging_setup import set_up_logging
    from ottla.exposition.address import parse_address
    from ottla.exposition.protection import protection
    from ottla.http.until_signal import LEAVE_S_MAX, run_until_signal
    from ottla.monitoring.burrow import Rules
    from ottla.monitoring.monitor import MonitorSettings
    from ottla.monitoring.service import MonitorService

    if key is not None and certificate is None:
        raise click.UsageError("--key is given without --certificate.")
    host, port = parse_address(listen, what="--listen")
    client = settings.client_settings()
    address = ClusterAddress(client["bootstrap.servers"], parse_security(client))
    set_up_logging(log_level, log_format)
    given = MonitorSettings(interval_s=interval, window=window, rules=Rules(lag_allowed=allowed_lag))
    service = MonitorService(address, host, port, given, webhooks, protection(certificate, key, users_file))
    log = logging.getLogger("ottla.monitor")
    asyncio.run(run_until_signal(service, _announce, log, leave_s_max=LEAVE_S_MAX))


def _announce(line: str) -> None:
    """It watches, whether or not somebody reads what it prints."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OttlaError):
        forget_stdout()
        notice(line)
