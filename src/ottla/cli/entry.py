"""Where the `ottla` command begins. Who presses Ctrl-C while its modules are imported has begun nothing yet, so the
process ends at once; `interrupts.py` says what happens later. What this module imports is as good as nothing: a signal
that comes before it is Python's own affair."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # what is imported for it would take longer than all the rest
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> NoReturn:
    end_at_once()
    from ottla.cli.main import main as command

    command()


def end_at_once() -> None:
    """For when there is nothing to put in order. An exception would come out of whatever is being imported, or torn
    down at the end of the process, as a traceback; and some of that swallows it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)
