"""The broker's loggers as Kafka shows them: the resource BROKER_LOGGER, `root` and everything below.

`root` is the logger `ottla`, which carries the handler. Levels have Kafka's names (WARN, FATAL); Python's are taken
too. They last until the broker stops, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

ROOT = "root"
_TOP = "ottla"
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_PYTHON_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}
LEVEL_NAMES = tuple(_LEVELS)


def logger_names() -> Iterator[str]:
    yield ROOT
    for name in sorted(logging.Logger.manager.loggerDict):
        if name.startswith(_TOP + "."):
            yield name


def level_of(name: str) -> str:
    """The level in force, inherited or not."""
    level = _logger(name).getEffectiveLevel()
    return max((known, word) for word, known in _LEVELS.items() if known <= max(level, 5))[1]


def is_level(text: str) -> bool:
    return _word(text) in _LEVELS


def set_level(name: str, text: str) -> None:
    _logger(name).setLevel(_LEVELS[_word(text)])


def reset_level(name: str) -> None:
    """Back to what the parent logger has."""
    _logger(name).setLevel(logging.NOTSET)


def _word(text: str) -> str:
    word = text.strip().upper()
    return _PYTHON_NAMES.get(word, word)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_TOP if name == ROOT else name)
