"""The static configuration of `ottla start`: file < `-X key=value` < flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ottla.common.config.broker_config import BrokerConfig
from ottla.common.config.properties import read_properties
from ottla.common.errors import OttlaError


def load_from_cli(
    config_file: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    listen: str | None = None,
    overrides: Sequence[str] = (),
) -> BrokerConfig:
    """The broker's configuration from what the command line says; OttlaError in one sentence if it is wrong."""
    properties = read_properties(config_file) if config_file is not None else {}
    if listen is not None:
        # An advertised address in the file belongs to the listeners there, which the flag replaces.
        properties.pop("advertised.listeners", None)
    properties.update(parse_override(text) for text in overrides)
    if listen is not None:
        properties["listeners"] = _listener_text(listen)
    if data_dirs:
        properties["log.dirs"] = ",".join(str(path) for path in data_dirs)
    return BrokerConfig.load(properties)


def parse_override(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise OttlaError(f"Invalid override {text!r}: expected key=value.")
    return name.strip(), value.strip()


def _listener_text(listen: str) -> str:
    """`HOST:PORT`, `:PORT` or `PORT`, or full listener addresses as in server.properties."""
    if "://" in listen:
        return listen
    if listen.isdecimal():
        return f"PLAINTEXT://:{listen}"
    return f"PLAINTEXT://{listen}"
