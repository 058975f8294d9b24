"""What a request to a worker is refused with: an HTTP status and Kafka Connect's sentence."""

from __future__ import annotations


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class NotLeader(Exception):
    """Another worker writes: ask it. Without a URL nobody is known to lead now."""

    def __init__(self, url: str | None) -> None:
        super().__init__(url or "")
        self.url = url


def not_found(name: str) -> Refused:
    return Refused(404, f"Connector {name} not found")
