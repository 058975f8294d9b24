"""A schema registry as the command line, Streams and Spark's executors ask it: plain requests, and refusals as
sentences. Nothing but Python's own library is needed for it."""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from ottla.client.access.bearer import BearerLogin, headers_of
from ottla.client.access.redirects import NoRedirects, pointed_elsewhere
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable

DEFAULT_URL = "http://localhost:8081"
URL_VARIABLE = "OTTLA_REGISTRY_URL"
_TIMEOUT_S = 60.0
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class Refused(OttlaError):
    """What the registry answered instead."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the registry refused: {message.rstrip('.')} ({code}).")
        self.code = code


class RegistryUnreachable(Retriable):
    """Nobody answers there, or not as a registry would, for now."""


class RegistryClient:
    def __init__(
        self, url: str, *, ca: str | None = None, certificate: str | None = None, bearer: BearerLogin | None = None
    ) -> None:
        """`https://user:password@host:port` logs in, and so do a bearer token and a certificate: a PEM file with its
        key in it."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OttlaError(f"'{url}' is no address of a registry: write it as http://127.0.0.1:8081.")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._headers = {"Content-Type": _MEDIA_TYPE, "Accept": f"{_MEDIA_TYPE}, application/json"}
        self._bearer = None if bearer is None else headers_of(bearer)
        if parts.username is not None:
            if bearer is not None:
                raise OttlaError(
                    f"{self.url} is given with a user's name and with a bearer token: one of them logs in."
                )
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        context = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        if certificate is not None:
            _show(certificate, context)
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context), NoRedirects())

    def get(self, *path: object, **query: object) -> Any:
        return self._ask("GET", path, query)

    def post(self, body: Any, *path: object, **query: object) -> Any:
        return self._ask("POST", path, query, body)

    def put(self, body: Any, *path: object, **query: object) -> Any:
        return self._ask("PUT", path, query, body)

    def delete(self, *path: object, **query: object) -> Any:
        return self._ask("DELETE", path, query)

    def _ask(self, method: str, path: tuple[object, ...], query: dict[str, object], body: Any = None) -> Any:
        target = "/".join((self.url, *(quote(str(part), safe="") for part in path)))
        if given := {name: str(value).lower() for name, value in query.items() if value not in (None, False)}:
            target = f"{target}?{urlencode(given)}"
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if self._bearer is None else self._headers | self._bearer.get()
        try:
            with self._opener.open(Request(target, data, headers, method=method), timeout=_TIMEOUT_S) as reply:
                return json.load(reply)
        except HTTPError as error:
            raise _refusal(error) from None
        except (URLError, OSError, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise RegistryUnreachable(
                f"no registry answers at {self.url} ({reason}): start one with `ottla registry start`, or name another "
                "with --registry."
            ) from None


def _show(certificate: str, context: ssl.SSLContext | None) -> None:
    if context is None:
        raise OttlaError("a certificate is shown over https only: write the registry's address so.")
    try:
        context.load_cert_chain(certificate)
    except OSError as error:
        raise OttlaError(f"{certificate} is no PEM file with a certificate and its key: {error}.") from None


def _refusal(error: HTTPError) -> OttlaError:
    if error.code >= 500:
        return RegistryUnreachable(f"the registry has trouble: {error.code} {error.reason}.")
    if (elsewhere := pointed_elsewhere(error)) is not None:
        return Refused(error.code, elsewhere)
    try:
        tree = json.load(error)
        return Refused(int(tree["error_code"]), str(tree["message"]))
    except (ValueError, KeyError, TypeError):
        return Refused(error.code, error.reason or "no reason given")
