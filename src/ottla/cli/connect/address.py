"""Which worker a command talks to, and what it says."""

from __future__ import annotations

import json
import os
import re
import ssl
from typing import Any
from urllib.parse import quote

import click

from ottla.cli.connect.extra import needs_connect
from ottla.cli.given import GivenPath
from ottla.common.errors import OttlaError

DEFAULT_URL = "http://localhost:8083"
_TIMEOUT_S = 100.0


_CA = "ottla.connect.ca"
_CERTIFICATE = "ottla.connect.certificate"


def url_option(function: Any) -> Any:
    function = click.option(
        "--ca",
        metavar="FILE",
        type=GivenPath(str),
        help="PEM: whom to trust, for https [OTTLA_CONNECT_CA].",
        expose_value=False,
        callback=_note,
    )(function)
    function = click.option(
        "--certificate",
        metavar="FILE",
        type=GivenPath(str),
        help="PEM with its key: logs in, for https [OTTLA_CONNECT_CERTIFICATE].",
        expose_value=False,
        callback=_note_certificate,
    )(function)
    return click.option(
        "--url",
        metavar="URL",
        help=f"Of any worker; Kafka Connect's too; user:password@ logs in [OTTLA_CONNECT_URL, or {DEFAULT_URL}].",
    )(function)


def _note(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_CA] = value


def _note_certificate(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_CERTIFICATE] = value


class Worker:
    """A worker's REST API."""

    def __init__(self, url: str | None) -> None:
        self.url = (url or os.environ.get("OTTLA_CONNECT_URL") or DEFAULT_URL).rstrip("/")
        # As it may be shown.
        self._shown = re.sub(r"//[^/@]*@", "//", self.url)
        meta = click.get_current_context().meta
        self._ca = meta.get(_CA) or os.environ.get("OTTLA_CONNECT_CA")
        self._certificate = meta.get(_CERTIFICATE) or os.environ.get("OTTLA_CONNECT_CERTIFICATE")

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
                verify=self._verify(),
            )
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise OttlaError(
                f"no worker answers at {self._shown} ({error}): is it running? start one with `ottla connect start`."
            ) from None
        tree = _tree(told.text)
        if told.status_code >= 300:
            message = tree.get("message") if isinstance(tree, dict) else None
            raise OttlaError(f"{message or told.text or told.reason_phrase} ({told.status_code})")
        return tree

    def _verify(self) -> ssl.SSLContext | bool:
        if self._ca is None and self._certificate is None:
            return True
        try:
            context = ssl.create_default_context(cafile=self._ca)
        except OSError as error:
            raise OttlaError(f"{self._ca} has no certificates that can be read as PEM: {error}.") from None
        if self._certificate is not None:
            try:
                context.load_cert_chain(self._certificate)
            except OSError as error:
                raise OttlaError(
                    f"{self._certificate} is no PEM file with a certificate and its key: {error}."
                ) from None
        return context


def _tree(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
