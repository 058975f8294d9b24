"""`-w`: the same look again and again, in place on a terminal, one after the other in a pipe, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NoReturn

import click

from ottla.cli.output import coloured
from ottla.cli.settings import Settings, at_least

HOME_AND_CLEAR = "\x1b[H\x1b[J"
INTERVAL_S = 2.0

watch_option = click.option("-w", "--watch", is_flag=True, help="Again every --interval seconds, until Ctrl-C.")
interval_option = click.option(
    "--interval", type=at_least(0.1), default=INTERVAL_S, metavar="SECONDS", help="For -w [2]."
)


def watch_until_interrupted(settings: Settings, look: Callable[[], None], interval_s: float) -> NoReturn:
    in_place = settings.output == "table" and coloured(sys.stdout)
    while True:
        if in_place:
            sys.stdout.write(HOME_AND_CLEAR)
        look()
        sys.stdout.flush()
        time.sleep(interval_s)
        if not in_place and settings.output == "table":
            sys.stdout.write("\n")
