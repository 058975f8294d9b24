"""A schema registry as the command line, Streams and Spark's executors ask it: plain requests, and refusals as
sentences. Nothing but Python's own library is needed for it."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request

from ottla.client.access.bearer import BearerLogin, headers_of
from ottla.client.access.http_place import http_place, reason_of
from ottla.client.access.redirects import pointed_elsewhere
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
        place = http_place(url, what="a registry", example="http://127.0.0.1:8081", ca=ca, certificate=certificate)
        self.url = place.url
        self._headers = {"Content-Type": _MEDIA_TYPE, "Accept": f"{_MEDIA_TYPE}, application/json", **place.headers}
        self._bearer = None if bearer is None else headers_of(bearer)
        if place.has_login and bearer is not None:
            raise OttlaError(f"{self.url} is given with a user's name and with a bearer token: one of them logs in.")
        self._opener = place.opener

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
            why = reason_of(error, "--registry-ca")
            raise RegistryUnreachable(
                f"no registry answers at {self.url} ({why}): start one with `ottla registry start`, or name another "
                "with --registry."
            ) from None


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
