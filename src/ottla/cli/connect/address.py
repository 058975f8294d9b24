"""Which worker a command talks to, and what it says."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

import click

from ottla.cli.connect.extra import needs_connect
from ottla.common.errors import OttlaError

DEFAULT_URL = "http://localhost:8083"
_TIMEOUT_S = 100.0


def url_option(function: Any) -> Any:
    return click.option(
        "--url", metavar="URL", help=f"Of any worker; Kafka Connect's too [OTTLA_CONNECT_URL, or {DEFAULT_URL}]."
    )(function)


class Worker:
    """A worker's REST API."""

    def __init__(self, url: str | None) -> None:
        self.url = (url or os.environ.get("OTTLA_CONNECT_URL") or DEFAULT_URL).rstrip("/")

    def ask(self, method: str, *path: str, body: Any = None, **query: Any) -> Any:
        """Raises OttlaError with the worker's own sentence."""
        with needs_connect():
            import httpx
        target = self.url + "".join(f"/{quote(part, safe='')}" for part in path)
        try:
            told = httpx.request(
                method,
                target,
                content=None if body is None else json.dumps(body),
                headers={} if body is None else {"content-type": "application/json"},
                params={name: value for name, value in query.items() if value is not None},
                timeout=_TIMEOUT_S,
                trust_env=False,
            )
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise OttlaError(
                f"no worker answers at {self.url} ({error}): is it running? start one with `ottla connect start`."
            ) from None
        tree = _tree(told.text)
        if told.status_code >= 300:
            message = tree.get("message") if isinstance(tree, dict) else None
            raise OttlaError(f"{message or told.text or told.reason_phrase} ({told.status_code})")
        return tree


def _tree(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
