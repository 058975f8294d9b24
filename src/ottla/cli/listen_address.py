"""HOST:PORT as the value of an option, refused before a command begins."""

from __future__ import annotations

import click

from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address


class ListenAddress(click.types.StringParamType):
    """The text as it was given. A port alone is one of this machine; without `any_host`, `:8080` is refused: whoever
    wants to be reached by others says so."""

    name = "HOST:PORT"

    def __init__(self, *, any_host: bool = False, port_min: int = 0) -> None:
        self._any_host = any_host
        self._port_min = port_min

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        flag = param.opts[0] if param is not None else self.name
        try:
            host, port = parse_address(value, what=flag)
        except OttlaError:
            host, port = "", -1
        if port < self._port_min or not (host or self._any_host):
            raise click.UsageError(f"{flag} is '{value}', expected HOST:PORT.", ctx)
        return value
