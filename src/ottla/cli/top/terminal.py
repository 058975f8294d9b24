"""`ottla top` in a terminal: the alternate screen, single keys, a size that may change. Leaves everything as it was."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.cli.output import printable
from ottla.cli.top.figures import Figures
from ottla.cli.top.screen import Shown, cut_to, screen
from ottla.common.errors import OttlaError

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
}
_WAIT_S = 0.1


class Looking:
    """Looks in a thread of its own, so that keys are answered while the cluster is not."""

    def __init__(self, look: Callable[[], Figures], interval_s: float) -> None:
        self._look = look
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self.found: Figures | None = None
        self.problem = ""
        self.count = 0
        self._thread = threading.Thread(target=self._run, name="ottla-top", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self.found, self.problem = self._look(), ""
            except (OttlaError, OSError) as error:
                self.problem = str(error)
            except Exception as error:  # an answer that nobody expected: a screen that stands still would not say so
                self.problem = f"the cluster's answer was not understood: {error!r}"
            self.count += 1
            # The second look comes soon: before, no rate is known.
            pause_s = min(1.0, self._interval_s) if self.count == 1 else self._interval_s
            self._stopping.wait(max(0.0, pause_s - (time.monotonic() - began)))


@contextmanager
def _own_screen() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    sys.stdout.write(_ENTER)
    try:
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def run_in_terminal(look: Callable[[], Figures], interval_s: float, view: str) -> None:
    shown, looking = Shown(view), Looking(look, interval_s)
    looking.start()
    drawn: object = None
    with _own_screen():
        try:
            while not shown.is_over:
                size = os.get_terminal_size(sys.stdout.fileno())  # not COLUMNS, which does not change with it
                now = (looking.count, shown, size, looking.problem)
                if now != drawn:
                    _draw(looking, shown, size.columns, size.lines)
                    drawn = now
                for key in _pressed(_WAIT_S):
                    shown = shown.pressed(key, page=max(1, size.lines - 6))
        finally:
            looking.stop()


def _draw(looking: Looking, shown: Shown, width: int, height: int) -> None:
    if looking.found is None:
        lines = [cut_to(width, printable(looking.problem) or "looking at the cluster ...")]
    else:
        lines = screen(looking.found, shown, width, height)
        if looking.problem:
            lines[1] = cut_to(width, f"! {printable(looking.problem)}")
    text = f"{_CLEAR_LINE}\n".join(lines)
    sys.stdout.write(f"{_HOME}{text}{_CLEAR_LINE}{_CLEAR_BELOW}")
    sys.stdout.flush()


def _pressed(wait_s: float) -> Iterator[str]:
    """The keys of what was typed, if anything."""
    if not select.select([sys.stdin], [], [], wait_s)[0]:
        return
    typed = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
    if not typed:
        yield "q"  # the terminal has gone
    while typed:
        sequence = next((known for known in _KEYS if typed.startswith(known)), None)
        yield _KEYS[sequence] if sequence is not None else typed[0]
        typed = typed[len(sequence) if sequence is not None else 1 :]
