"""`ottla top`: brokers, topics by rate and groups by lag, live in a terminal. Works on any Kafka cluster."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from ottla.cli.output import show
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.top.figures import Figures, figures
from ottla.cli.top.screen import VIEWS, plain_lines
from ottla.common.errors import OttlaError

ONCE_S = 1.0


@command("top")
@click.option("--view", type=click.Choice(VIEWS), default="topics", help="What to begin with [topics].")
@click.option("--interval", type=at_least(0.2), default=2.0, metavar="SECONDS", help="Between two looks [2].")
@click.option("--once", is_flag=True, help="Two looks, a second apart; print all of it, and end.")
def top(settings: Settings, view: str, interval: float, once: bool) -> None:
    """Brokers, topics by rate and groups by lag, live.

    Rates are reckoned from offsets, so they are known of every Kafka cluster. Keys: tab or left and right for another
    view, up and down to scroll, s for another order, r to turn it around, q to leave.

    \b
      ottla top
      ottla top --once --output json
    """
    from ottla.client.access.security_settings import parse_security
    from ottla.client.address import ClusterAddress
    from ottla.monitoring.monitor import Monitor, MonitorSettings
    from ottla.monitoring.sampling import ClusterSampler

    client = settings.client_settings()
    address = ClusterAddress(client["bootstrap.servers"], parse_security(client))
    sampler = ClusterSampler(address, client_id="ottla-cli")
    monitor = Monitor(MonitorSettings(interval_s=interval))
    looks: list[Any] = []

    def look() -> Figures:
        looks.append(sampler.look(all_ends=True))
        report = monitor.take(looks[-1])
        return figures(looks[-2] if len(looks) > 1 else None, looks[-1], report)

    try:
        if once or settings.output != "table" or not (sys.stdin.isatty() and sys.stdout.isatty()):
            look()
            time.sleep(ONCE_S)
            found = look()
            show(settings, found.to_json(), lambda: plain_lines(found))
            return
        from ottla.cli.top.terminal import run_in_terminal

        def looked() -> Figures:
            del looks[:-1]
            return look()

        run_in_terminal(looked, interval, view)
    except OSError as error:
        raise OttlaError(f"{client['bootstrap.servers']} does not answer: {error}.") from None
    finally:
        sampler.close()
