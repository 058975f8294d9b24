"""What a handler may know about the request besides its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class RequestContext:
    """One object per connection, refreshed for each request: a handler that waits must copy what it needs later."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    listener: str
    connection_id: int
    principal: str = "User:ANONYMOUS"
    client_software: tuple[str, str] = ("", "")
    # What the connection's last produce request looked like (protocol/produce_frames.py).
    produce_layout: Any = None
