"""Which registry a command talks to."""

from __future__ import annotations

import os
from typing import Any

import click


def registry_option(function: Any) -> Any:
    function = click.option("--registry-ca", metavar="FILE", help="PEM: whom to trust, for https.")(function)
    return click.option(
        "--registry",
        metavar="URL",
        help="Of the schema registry; user:password@ logs in [OTTLA_REGISTRY_URL, or http://localhost:8081].",
    )(function)


def client_of(registry: str | None, ca: str | None) -> Any:
    from ottla.client.schema_registry import DEFAULT_URL, RegistryClient

    return RegistryClient(registry or os.environ.get("OTTLA_REGISTRY_URL") or DEFAULT_URL, ca=ca)
