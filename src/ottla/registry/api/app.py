"""The application: one instance behind the API."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from ottla.common.errors import OttlaError
from ottla.common.renewed_tls import to_others
from ottla.common.turns_by_address import TurnsByAddress
from ottla.registry.api.access import Authentication, Logins, load_logins
from ottla.registry.api.answers import on_any_error, on_http_error, on_registry_error
from ottla.registry.api.bodies import Bodies
from ottla.registry.api.gate import Gate
from ottla.registry.api.routes import routes
from ottla.registry.errors import RegistryError
from ottla.registry.instance import Instance

if TYPE_CHECKING:
    from ottla.registry.api.bearer import BearerTokens

_LOG = logging.getLogger("ottla.registry")
# Of one address that are parsed and compared: fewer than there are threads for it.
_SCHEMAS_AT_ONCE = 3
# Longer than the instance that is forwarded to may take.
_FORWARD_S_MAX = 90.0


def build(instance: Instance) -> Starlette:
    app = Starlette(
        routes=routes(),
        exception_handlers={RegistryError: on_registry_error, HTTPException: on_http_error, Exception: on_any_error},
    )
    settings = instance.settings
    if settings.users_file is not None:
        logins = load_logins(settings.users_file)
        app.add_middleware(Authentication, users=logins.users, tokens=_tokens(logins))
    # The last that is added is the first to be passed.
    app.add_middleware(Gate)
    # Whoever forwards shows who it is, as a client would.
    identity = (settings.certificate, settings.key) if settings.client_ca else (None, None)
    verify = to_others(settings.ca, *identity, log=_LOG).served()
    app.state.instance = instance
    app.state.bodies = Bodies(settings)
    app.state.turns = TurnsByAddress(_SCHEMAS_AT_ONCE)
    app.state.forwarding = httpx.AsyncClient(timeout=_FORWARD_S_MAX, verify=verify, trust_env=False)
    return app


def _tokens(logins: Logins) -> BearerTokens | None:
    if logins.tokens is None:
        return None
    try:
        from ottla.registry.api.bearer import BearerTokens
    except ModuleNotFoundError as error:
        raise OttlaError(f"[oauthbearer] needs {error.name}: run `pip install 'ottla[registry,security]'`.") from None
    return BearerTokens(logins.tokens)
