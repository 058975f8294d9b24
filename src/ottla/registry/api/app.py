"""The application: one instance behind the API."""

from __future__ import annotations

import ssl

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from ottla.registry.api.access import Authentication, load_users
from ottla.registry.api.answers import on_any_error, on_http_error, on_registry_error
from ottla.registry.api.gate import Gate
from ottla.registry.api.routes import routes
from ottla.registry.errors import RegistryError
from ottla.registry.instance import Instance

# Longer than the instance that is forwarded to may take.
_FORWARD_S_MAX = 90.0


def build(instance: Instance) -> Starlette:
    app = Starlette(
        routes=routes(),
        exception_handlers={RegistryError: on_registry_error, HTTPException: on_http_error, Exception: on_any_error},
    )
    settings = instance.settings
    if settings.users_file is not None:
        app.add_middleware(Authentication, users=load_users(settings.users_file))
    # The last that is added is the first to be passed.
    app.add_middleware(Gate)
    verify = ssl.create_default_context(cafile=settings.ca)
    if settings.certificate and settings.client_ca:
        # Whoever forwards shows who it is, as a client would.
        verify.load_cert_chain(settings.certificate, settings.key)
    app.state.instance = instance
    app.state.forwarding = httpx.AsyncClient(timeout=_FORWARD_S_MAX, verify=verify, trust_env=False)
    return app
