"""`ottla start`: a broker in the foreground, or several, until SIGTERM, SIGHUP or Ctrl-C.

The verb that runs a broker instead of talking to one. `-X` are broker properties here, under Kafka's names; a file
is overridden by -X, and both by the flags. stdout gets the one line `ready ...`, the log goes to stderr.
"""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import notice
from ottla.cli.serving_options import log_format_option, log_level_option, metrics_option
from ottla.cli.settings import BROKERS_MAX, Settings, at_least, parse_assignment
from ottla.cli.streams import forget_stdout
from ottla.common.errors import OttlaError


@click.command("start")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen [listeners of the file, or port 9092].")
@click.option(
    "--advertise",
    metavar="HOST[:PORT]",
    help="What clients are told to connect to [what --listen says, or the host name].",
)
@click.option(
    "--data-dir",
    "data_dirs",
    multiple=True,
    metavar="DIR",
    type=GivenPath(),
    help="Where records are kept [/tmp/ottla-logs]; repeatable.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=GivenPath(),
    help="A server.properties, as Kafka has it.",
)
@click.option(
    "--brokers",
    type=at_least(1, BROKERS_MAX),
    help="So many, on consecutive ports: one for each core [1, in this process].",
)
@metrics_option
@click.option("-X", "overrides", multiple=True, metavar="KEY=VALUE", help="A broker property; repeatable.")
@log_level_option
@log_format_option
@click.pass_obj
def start(
    settings: Settings,
    listen: str | None,
    advertise: str | None,
    data_dirs: tuple[Path, ...],
    config_file: Path | None,
    brokers: int | None,
    metrics: str | None,
    overrides: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Start a broker and serve until Ctrl-C.

    \b
      ottla start
      ottla start --listen 127.0.0.1:19092 --data-dir /var/lib/ottla
      ottla start --listen 0.0.0.0:9092 --advertise broker.example.com
      ottla start --metrics 127.0.0.1:9404
      ottla start --config server.properties -X num.partitions=6
      ottla start --brokers 4 -X zookeeper.connect=zk-1:2181,zk-2:2181/ottla
    """
    settings.refuse_dry_run("start")
    if settings.bootstrap is not None:
        raise click.UsageError("start runs a broker and has no -b: say where to listen with --listen HOST:PORT.")
    import asyncio

    from ottla.common.config import load_from_cli
    from ottla.common.logging_setup import set_up_logging
    from ottla.server.server import run_until_signal

    given = settings.overrides | dict(parse_assignment(override, "-X") for override in overrides)
    properties = {name: value.strip() for name, value in given.items()}
    if metrics is not None:
        properties["ottla.metrics.listen"] = metrics
    config = load_from_cli(config_file, data_dirs, listen, properties, advertise)
    set_up_logging(log_level, log_format)
    if brokers is not None:
        from ottla.cli.several_brokers import run_several

        arguments = ["--log-level", log_level, "--log-format", log_format]
        arguments += ["--config", str(config_file)] if config_file is not None else []
        run_several(brokers, config, properties, arguments, _announce, logs_json=log_format == "json")
        return
    asyncio.run(run_until_signal(config, _announce))


def _announce(line: str) -> None:
    """A broker serves, whether or not somebody reads what it prints."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OttlaError):
        forget_stdout()
        notice(line)
