"""The audit trail in a file of its own: a JSON object in each line, readable by its owner alone, rotated by size."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ottla.broker import audit
from ottla.common.errors import OttlaError
from ottla.common.logging_setup import extras, timestamp

log = logging.getLogger("ottla.broker")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": timestamp(record), "event": record.getMessage(), **extras(record)}
        return json.dumps(line, default=str)


class _AuditFile(RotatingFileHandler):
    """A disk that refuses is told of once, until it takes a line again: nothing is stopped for it."""

    _is_failing = False
    _failure = ""

    def _open(self) -> TextIOWrapper:
        number = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return open(number, "a", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        self._failure = ""
        super().emit(record)
        if self._failure and not self._is_failing:
            log.error("the audit file cannot be written", extra={"file": self.baseFilename, "why": self._failure})
        elif self._is_failing and not self._failure:
            log.info("the audit file is written again", extra={"file": self.baseFilename})
        self._is_failing = bool(self._failure)

    def handleError(self, record: logging.LogRecord) -> None:
        self._failure = str(sys.exc_info()[1])


def open_audit_file(path: str, bytes_max: int, backups: int) -> Callable[[], None]:
    """How to close it. Raises OttlaError."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        handler = _AuditFile(path, maxBytes=bytes_max, backupCount=backups)
    except OSError as error:
        raise OttlaError(
            f"The audit file {path} cannot be opened: {error.strerror}; set ottla.audit.log.file to one that can."
        ) from None
    handler.setFormatter(_Lines())
    audit.log.addHandler(handler)
    audit.log.setLevel(logging.INFO)
    audit.log.propagate = False

    def close() -> None:
        audit.log.removeHandler(handler)
        handler.close()
        if not audit.log.handlers:
            audit.log.propagate = True
            audit.log.setLevel(logging.NOTSET)

    return close
