"""stdin, stdout and stderr as the verbs may rely on them: always there, and never the cause of a traceback.

A shell can start a command without them (`>&-`). Then Python has None in their places, and the next file or socket that
is opened gets their numbers: what is printed would go into it. So each that is missing is opened the wrong way round,
which takes the number and fails when it is used.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from ottla.common.errors import OttlaError

STDIN, STDOUT, STDERR = 0, 1, 2


def cannot_write(error: OSError) -> OttlaError:
    return OttlaError(f"cannot write to stdout: {error.strerror}.")


class _Stdout(io.FileIO):
    """Tells a full disk behind stdout from every other OSError. A pipe that nobody reads stays a BrokenPipeError."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(error) from None


class _Stderr(io.FileIO):
    """There is nobody to tell when stderr fails."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def prepare() -> None:
    """Once, before anything is opened or printed."""
    _occupy(STDIN, os.O_WRONLY)
    _occupy(STDOUT, os.O_RDONLY)
    _occupy(STDERR, os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = os.fdopen(STDIN, closefd=False)
    sys.stdout = _text(_Stdout(STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Stderr(STDERR, "w", closefd=False), sys.stderr, line_buffering=True)


def forget_stdout() -> None:
    """Nobody reads: point stdout at nothing, so that the interpreter's own last flush does not complain."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDOUT)
    os.close(nothing)


def _occupy(number: int, mode: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, mode)  # the lowest free number, and the lower ones are taken


def _text(raw: io.FileIO, before: TextIO | None, *, line_buffering: bool = False) -> TextIO:
    """As Python would have opened it."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=None if before is None else before.encoding,
        errors=None if before is None else before.errors,
        line_buffering=line_buffering or raw.isatty(),
    )
