"""HOST:PORT, as flags and settings have it."""

from __future__ import annotations

import re

from ottla.common.errors import OttlaError

_ADDRESS = re.compile(r"(?P<host>\[[^\]\s]+\]|[^:/\[\]\s]*):(?P<port>\d{1,5})")
_PORT_MAX = 65_535


def parse_address(text: str, *, what: str) -> tuple[str, int]:
    """Raises OttlaError. An empty host is all interfaces, a port alone is one of this machine."""
    match = _ADDRESS.fullmatch(text if ":" in text else f"127.0.0.1:{text}")
    if match is None or int(match["port"]) > _PORT_MAX:
        raise OttlaError(f"Invalid address {text!r} in {what}: expected HOST:PORT.")
    return match["host"].strip("[]"), int(match["port"])


def consecutive(text: str, number: int, *, what: str) -> str:
    """The address of the one that comes `number` later, for processes of one configuration. Port 0 stays: any."""
    host, port = parse_address(text, what=what)
    return f"{f'[{host}]' if ':' in host else host}:{port + number if port else 0}"
