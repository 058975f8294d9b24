"""A line of the log is one line, whatever strangers call themselves."""

from __future__ import annotations

import logging

import pytest

from ottla.common.logging_setup import TextFormatter

_FORGED = "2026-01-01T00:00:00.000Z INFO ottla.broker: all is well"


@pytest.mark.parametrize("between", ["\n", "\r", "\r\n", "\x0b", "\x1b[2K", "\x85", "\u2028"])
def test_names_of_clients_and_groups_forge_no_line_and_move_no_cursor(between: str) -> None:
    name = f"billing{between}{_FORGED}"
    record = logging.LogRecord("ottla.monitor", logging.WARNING, "", 0, "group %s is %s now", (name, "ERROR"), None)
    record.client = name.replace(" ", "")
    line = TextFormatter().format(record)
    assert line.isprintable() and len(line.splitlines()) == 1
    assert "billing" in line and "all is well" in line


def test_what_can_be_read_stays_as_it_is() -> None:
    record = logging.LogRecord("ottla.server", logging.INFO, "", 0, 'größe "x" \\ y', (), None)
    record.topic = "größe"
    assert TextFormatter().format(record).endswith('INFO    ottla.server: größe "x" \\ y topic=größe')
