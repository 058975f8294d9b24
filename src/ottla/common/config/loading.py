"""The static configuration of `ottla start`: file < `-X key=value` < flags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.common.config.broker_config import BrokerConfig
from ottla.common.config.listeners import Listener, listener_text
from ottla.common.config.properties import read_properties
from ottla.common.errors import OttlaError

_HOST_AND_PORT = re.compile(r"(?P<host>\[[^\]\s]+\]|[^:/\[\]\s]*)(:(?P<port>\d{1,5}))?")
_PORT_MAX = 65_535


def load_from_cli(
    config_file: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    listen: str | None = None,
    overrides: Mapping[str, str] | None = None,
    advertise: str | None = None,
) -> BrokerConfig:
    """The broker's configuration from what the command line says; OttlaError in one sentence if it is wrong."""
    properties = read_properties(config_file) if config_file is not None else {}
    if listen is not None or advertise is not None:
        # An advertised address in the file belongs to the listeners there, which the flag replaces.
        properties.pop("advertised.listeners", None)
    properties.update(overrides or {})
    if listen is not None:
        properties["listeners"] = _listener_text(listen)
    if data_dirs:
        properties["log.dirs"] = ",".join(str(path) for path in data_dirs)
    config = BrokerConfig.load(properties)
    if advertise is not None or (listen is not None and "advertised.listeners" not in properties):
        # What a flag decides is said like any other static setting.
        properties["advertised.listeners"] = _advertised(config.endpoints, advertise)
        config = BrokerConfig.load(properties)
    return config


def _listener_text(listen: str) -> str:
    """`HOST:PORT`, `:PORT` or `PORT`, or full listener addresses as in server.properties."""
    if "://" in listen:
        return listen
    address = f":{listen}" if listen.isdecimal() else listen
    match = _HOST_AND_PORT.fullmatch(address)
    if match is None or match["port"] is None or int(match["port"]) > _PORT_MAX:
        raise OttlaError(f"Invalid address {listen!r} in --listen: expected HOST:PORT.")
    return f"PLAINTEXT://{address}"


def _advertised(endpoints: Sequence[Listener], advertise: str | None) -> str:
    """`advertised.listeners` with what --advertise says, else with the addresses that are listened on."""
    if advertise is None:
        return ",".join(listener_text(endpoint.name, endpoint.advertised_host, endpoint.port) for endpoint in endpoints)
    match = _HOST_AND_PORT.fullmatch(advertise)
    if match is None or not match["host"] or int(match["port"] or 0) > _PORT_MAX:
        raise OttlaError(f"Invalid address {advertise!r} in --advertise: expected HOST or HOST:PORT.")
    if len(endpoints) > 1:
        raise OttlaError(
            "--advertise is for one listener: name several with -X advertised.listeners=NAME://HOST:PORT,..."
        )
    (only,) = endpoints
    return listener_text(only.name, match["host"].strip("[]"), int(match["port"] or only.port))
