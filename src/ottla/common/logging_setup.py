"""Structured logs to stderr: one line a message, `time level logger message key=value ...`, or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

_PLAIN_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _PLAIN_ATTRIBUTES}


def timestamp(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def _value(value: object) -> str:
    text = str(value)
    return json.dumps(text) if not text.isprintable() or not text or any(char in text for char in ' "=') else text


def _one_line(text: str) -> str:
    """Names that strangers chose are in it: they must not look like lines of ours, nor talk to a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{timestamp(record)} {record.levelname:<7} {record.name}: {_one_line(record.getMessage())}"
        for key, value in extras(record).items():
            line += f" {key}={_value(value)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": timestamp(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **extras(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def set_up_logging(level: str = "INFO", style: str = "text", stream: TextIO | None = None) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger("ottla")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
