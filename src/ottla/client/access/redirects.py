"""Requests go to the address that was written down. Python's own handler follows an answer that points elsewhere, to
whatever host that is, and takes the login along; what comes from there would be believed as if it came from here."""

from __future__ import annotations

from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # so the answer is an error as others are


def pointed_elsewhere(error: Exception) -> str | None:
    """What to say of such an answer; None if it is another."""
    if not isinstance(error, HTTPError) or not 300 <= error.code < 400:
        return None
    return f"it sends us to {error.headers.get('Location')}, which you may name instead"
