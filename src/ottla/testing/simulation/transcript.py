"""What happened, one line each: when, who, what. Brokers speak through their logs, everybody else through `say`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TextIO

from ottla.testing.simulation.loop import SimulatedLoop

# What a log record has by itself; the rest is what whoever logged it has added.
_USUAL = frozenset(vars(logging.makeLogRecord({})))
_LOGGER = "ottla"


class Transcript:
    def __init__(self, loop: SimulatedLoop, output: TextIO | None = None) -> None:
        self._loop = loop
        self._output = output
        # Names that differ from run to run, and what is told instead.
        self.aliases: dict[str, str] = {}
        self.lines: list[tuple[float, str, str]] = []
        # Of what brokers did not expect: whoever said it, and what.
        self.errors: list[tuple[str, str]] = []

    def say(self, who: str, what: str) -> None:
        for name, alias in self.aliases.items():
            what = what.replace(name, alias)
        line = (self._loop.time(), who, what)
        self.lines.append(line)
        if self._output is not None:
            self._output.write(told(line) + "\n")

    def speaker(self, who: str) -> Callable[[str], None]:
        return lambda what: self.say(who, what)

    def text(self) -> str:
        return "\n".join(map(told, self.lines))


def told(line: tuple[float, str, str]) -> str:
    at_s, who, what = line
    return f"{at_s:9.3f}  {who:<9} {what}"


class LogsToTranscript(logging.Handler):
    """Use it as a context: while it lasts, what brokers log goes to the transcript and nowhere else."""

    def __init__(self, transcript: Transcript, loop: SimulatedLoop, level: int) -> None:
        super().__init__()
        self._transcript = transcript
        self._loop = loop
        self._level = level

    def emit(self, record: logging.LogRecord) -> None:
        process = self._loop.process
        who = process.name if process is not None else "nobody"
        added = {key: value for key, value in vars(record).items() if key not in _USUAL}
        facts = "".join(f" {key}={value}" for key, value in added.items())
        failure = record.exc_info[1] if record.exc_info else None
        what = f"{record.getMessage()}{facts}" + (f": {failure!r}" if failure is not None else "")
        self._transcript.say(who, f"[{record.name.removeprefix('ottla.')}] {what}")
        if failure is not None and record.levelno >= logging.ERROR:
            trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
            self._transcript.errors.append((who, f"{what}\n{trace}"))

    def __enter__(self) -> LogsToTranscript:
        logger = logging.getLogger(_LOGGER)
        self._before = (logger.level, logger.propagate, logger.handlers)
        logger.handlers = [self]
        logger.propagate = False
        logger.setLevel(self._level)
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger(_LOGGER)
        logger.level, logger.propagate, logger.handlers = self._before
        logger.setLevel(self._before[0])
