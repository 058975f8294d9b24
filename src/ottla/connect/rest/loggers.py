"""`/admin/loggers`: levels of this worker's loggers, or with `?scope=cluster` of all workers'."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from ottla.connect.rest.answers import answer, nothing
from ottla.connect.storage.configs import level_record
from ottla.connect.worker.errors import Refused

if TYPE_CHECKING:
    from ottla.connect.rest.app import Asked

# Java's names for what has others here.
_LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
}
_changed_ms: dict[str, int] = {}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger("ottla" if name == "root" else name)


def _row(name: str) -> dict[str, Any]:
    level = _logger(name).getEffectiveLevel()
    shown = min(_LEVELS, key=lambda word: abs(_LEVELS[word] - level))
    return {"level": shown, "last_modified": _changed_ms.get(name)}


def _known() -> list[str]:
    names = [name for name in logging.Logger.manager.loggerDict if name.startswith("ottla.connect")]
    return sorted({"root", *names, *_changed_ms})


def set_level(name: str, level: str) -> list[str]:
    """Of a logger and those below it. The names of all of them."""
    if level.upper() not in _LEVELS:
        return []
    touched = sorted({name, *(one for one in _known() if one.startswith(f"{name}.") or name == "root")})
    for one in touched:
        _logger(one).setLevel(_LEVELS[level.upper()])
        _changed_ms[one] = int(time.time() * 1000)
    return touched


def listed(asked: Asked) -> Response:
    return answer({name: _row(name) for name in _known()})


def get(asked: Asked) -> Response:
    name = asked.names["logger"]
    if name not in _known():
        raise Refused(404, f"Logger {name} not found.")
    return answer(_row(name))


def put(asked: Asked) -> Response:
    name, level = asked.names["logger"], asked.map().get("level")
    if level is None:
        raise Refused(400, "Desired 'level' parameter was not specified in request.")
    if str(level).upper() not in _LEVELS:
        raise Refused(404, f"invalid log level '{level}'.")
    if asked.query.get("scope", "worker").lower() != "cluster":
        return answer(set_level(name, str(level)))

    def change() -> Response:
        asked.worker.write_configs([level_record(name, str(level).upper())])
        return nothing(204)

    return asked.by_leader(change)
