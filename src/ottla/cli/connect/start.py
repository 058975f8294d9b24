"""`ottla connect start`: a worker in the foreground, until SIGTERM, SIGHUP or Ctrl-C."""

from __future__ import annotations

import click

from ottla.cli.connect.extra import needs_connect
from ottla.cli.given import GivenPath
from ottla.cli.output import notice
from ottla.cli.serving_options import log_level_option, metrics_option
from ottla.cli.settings import Settings, command
from ottla.cli.streams import forget_stdout
from ottla.common.errors import OttlaError


@command("start")
@click.option("--config", "file", metavar="FILE", type=GivenPath(str), help="Kafka Connect's worker.properties.")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen [what the file says, or 127.0.0.1:8083].")
@click.option("--master", default="local[*]", metavar="URL", help="Of Spark [local[*]].")
@metrics_option
@log_level_option
def start(
    settings: Settings, file: str | None, listen: str | None, master: str, metrics: str | None, log_level: str
) -> None:
    """Start a worker of Ottla Connect and serve Kafka Connect's REST API until Ctrl-C.

    Connectors, their offsets and states are kept in topics of the cluster. Workers with the same group.id share them.
    stdout gets the one line `ready ...`, the log goes to stderr.

    \b
      ottla connect start
      ottla connect start --config worker.properties --listen 0.0.0.0:8083 -b kafka-1:9092
      ottla connect start --master spark://spark-1:7077
    """
    import asyncio
    import logging

    from ottla.common.logging_setup import set_up_logging

    with needs_connect():
        from ottla.connect.server import ConnectServer
        from ottla.connect.worker.properties import read_properties
        from ottla.connect.worker.settings import parse_worker
        from ottla.http.until_signal import run_until_signal
    set_up_logging(log_level, "text")
    given = read_properties(file) if file is not None else {}
    given |= metrics_of(metrics)
    worker = parse_worker(given | client_of(settings, given), listen=listen, master=master)
    asyncio.run(run_until_signal(ConnectServer(worker), announce, logging.getLogger("ottla.connect")))


def client_of(settings: Settings, given: dict[str, str]) -> dict[str, str]:
    """What the command line says of the cluster; it counts more than the file where it was really said."""
    said = settings.client_settings()
    if not settings.bootstrap and not settings.profile and "bootstrap.servers" in given:
        said.pop("bootstrap.servers")
    return said


def metrics_of(address: str | None) -> dict[str, str]:
    return {} if address is None else {"ottla.metrics.listen": address}


def announce(line: str) -> None:
    """It serves, whether or not somebody reads what it prints."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OttlaError):
        forget_stdout()
        notice(line)
