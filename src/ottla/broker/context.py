"""What a handler may know about the request besides its body."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.broker.controller.change_log import Requester

# Whoever comes in where nobody is asked.
ANONYMOUS = "User:ANONYMOUS"


@dataclass(slots=True)
class RequestContext:
    """One object per connection, refreshed for each request that is dispatched (not for one that is known by its first
    bytes): a handler that waits must copy what it needs later."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    listener: str
    connection_id: int
    principal: str = ANONYMOUS
    # This Fetch is of a follower, which quotas are not for. The next request of the connection may be anybody's.
    is_of_broker: bool = False
    # It came to another broker, which sent it on to the controller.
    is_forwarded: bool = False
    # It has logged in with a delegation token.
    is_by_token: bool = False
    client_software: tuple[str, str] = ("", "")
    # Where the sizes and records of the connection's last produce request began (protocol/produce_frames.py).
    produce_prefix_end: int = 0

    @property
    def requester(self) -> Requester:
        return Requester(self.client_host, self.client_id, self.principal)
