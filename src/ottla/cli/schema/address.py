"""Which registry a command talks to."""

from __future__ import annotations

import os
from typing import Any

import click

from ottla.cli.given import GivenPath

_CERTIFICATE = "ottla.registry.certificate"
_BEARER = "ottla.registry.bearer"


def registry_option(function: Any) -> Any:
    function = click.option(
        "--registry-certificate",
        metavar="FILE",
        type=GivenPath(str),
        help="PEM with its key: logs in, for https.",
        expose_value=False,
        callback=_note,
    )(function)
    function = click.option(
        "--registry-bearer",
        metavar="FILE",
        type=GivenPath(str),
        envvar="OTTLA_REGISTRY_BEARER",
        help="Properties bearer.auth.*: a token logs in.",
        expose_value=False,
        callback=_note_bearer,
    )(function)
    function = click.option(
        "--registry-ca", metavar="FILE", type=GivenPath(str), help="PEM: whom to trust, for https."
    )(function)
    return click.option(
        "--registry",
        metavar="URL",
        help="Of the schema registry; user:password@ logs in [OTTLA_REGISTRY_URL, or http://localhost:8081].",
    )(function)


def _note(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_CERTIFICATE] = value


def _note_bearer(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_BEARER] = value


def client_of(registry: str | None, ca: str | None) -> Any:
    from ottla.client.access.bearer import BearerLogin
    from ottla.client.schema_registry import DEFAULT_URL, RegistryClient

    meta = click.get_current_context().meta
    bearer = BearerLogin.load(meta[_BEARER]) if meta.get(_BEARER) else None
    url = registry or os.environ.get("OTTLA_REGISTRY_URL") or DEFAULT_URL
    return RegistryClient(url, ca=ca, certificate=meta.get(_CERTIFICATE), bearer=bearer)
