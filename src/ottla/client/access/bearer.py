"""Bearer tokens that a client of a schema registry shows, under the names that Confluent's clients have for them.

bearer.auth.credentials.source   STATIC_TOKEN: bearer.auth.token is shown as it is.
                                 OAUTHBEARER: one is fetched from bearer.auth.issuer.endpoint.url for
                                 bearer.auth.client.id and its secret (RFC 6749, client credentials), and again
                                 before it ends.
bearer.auth.logical.cluster,     are sent along for whoever asks for them; this registry does not.
bearer.auth.identity.pool.id
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, build_opener

from ottla.client.access.redirects import NoRedirects, pointed_elsewhere
from ottla.common.config.properties import read_properties
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable

STATIC_TOKEN, OAUTHBEARER = SOURCES = ("STATIC_TOKEN", "OAUTHBEARER")
_PREFIX = "bearer.auth."
_FETCH_S = 30
_ANSWER_BYTES_MAX = 1024 * 1024
# A token is used for this part of its life, so that none ends on its way.
_USED_PART = 0.8
# Of an issuer that does not say how long its tokens are good.
_LIFE_S = 300.0
_NAMES = {
    "credentials.source": "source",
    "token": "token",
    "issuer.endpoint.url": "endpoint",
    "client.id": "client_id",
    "client.secret": "client_secret",
    "scope": "scope",
    "logical.cluster": "logical_cluster",
    "identity.pool.id": "identity_pool",
}
SETTINGS = tuple(_PREFIX + name for name in _NAMES)


@dataclass(frozen=True)
class BearerLogin:
    """`BearerLogin.of({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": ...})`."""

    source: str
    token: str = field(default="", repr=False)
    endpoint: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    logical_cluster: str = ""
    identity_pool: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Raises OttlaError, which names the setting that is missing or wrong."""
        given = {}
        for name, value in settings.items():
            word = _NAMES.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None
            if word is None:
                raise OttlaError(f"'{name}' is no setting of a bearer token: known are {', '.join(SETTINGS)}.")
            if "\n" in value or "\r" in value or (word == "token" and not value.isascii()):
                raise OttlaError(f"{name} has characters that no header can carry.")
            given[word] = value.strip()
        login = cls(**{"source": STATIC_TOKEN if "token" in given else "", **given})
        if login.source not in SOURCES:
            raise OttlaError(f"{_PREFIX}credentials.source is {' or '.join(SOURCES)}, not '{login.source}'.")
        needed = ("token",) if login.source == STATIC_TOKEN else ("issuer.endpoint.url", "client.id", "client.secret")
        for name in needed:
            if not given.get(_NAMES[name]):
                raise OttlaError(f"{_PREFIX}credentials.source is {login.source}, which needs {_PREFIX}{name}.")
        if login.source == OAUTHBEARER and urlsplit(login.endpoint).scheme not in ("http", "https"):
            raise OttlaError(f"{_PREFIX}issuer.endpoint.url is '{login.endpoint}': write it as https://HOST/PATH.")
        return login

    @classmethod
    def load(cls, path: str) -> Self:
        """From a file of properties: `bearer.auth.token = ...`, one a line. Raises OttlaError."""
        try:
            return cls.of(read_properties(path))
        except OttlaError as error:
            raise OttlaError(f"{path}: {error}") from None


@lru_cache(maxsize=16)
def headers_of(login: BearerLogin) -> BearerHeaders:
    """One for all clients of a process with the same login: a token is fetched once."""
    return BearerHeaders(login)


class BearerHeaders:
    """What stands in the head of each request of a client that has this login."""

    def __init__(self, login: BearerLogin) -> None:
        self._login = login
        self._token, self._good_until_s = login.token, float("inf") if login.source == STATIC_TOKEN else 0.0
        self._one_at_a_time = threading.Lock()

    def get(self) -> dict[str, str]:
        """Raises OttlaError."""
        with self._one_at_a_time:
            if time.monotonic() >= self._good_until_s:
                self._fetch()
            headers = {"Authorization": f"Bearer {self._token}"}
        if self._login.logical_cluster:
            headers["target-sr-cluster"] = self._login.logical_cluster
        if self._login.identity_pool:
            headers["Confluent-Identity-Pool-Id"] = self._login.identity_pool
        return headers

    def _fetch(self) -> None:
        login = self._login
        form = {
            "grant_type": "client_credentials",
            "client_id": login.client_id,
            "client_secret": login.client_secret,
        } | ({"scope": login.scope} if login.scope else {})
        answer = _asked(Request(login.endpoint, urlencode(form).encode(), {"Accept": "application/json"}))
        token, life_s = answer.get("access_token"), answer.get("expires_in", _LIFE_S)
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise OttlaError(f"{login.endpoint} answers without an access_token: see bearer.auth.issuer.endpoint.url.")
        try:
            self._good_until_s = time.monotonic() + float(life_s) * _USED_PART
        except (TypeError, ValueError):
            self._good_until_s = time.monotonic() + _LIFE_S * _USED_PART
        self._token = token


def _asked(request: Request) -> dict[str, Any]:
    try:
        with build_opener(NoRedirects).open(request, timeout=_FETCH_S) as reply:
            tree = json.loads(reply.read(_ANSWER_BYTES_MAX))
    except HTTPError as error:
        if error.code >= 500:
            raise Retriable(f"the issuer of tokens has trouble: {error.code} {error.reason}.") from None
        advice = pointed_elsewhere(error) or "see bearer.auth.client.id"
        raise OttlaError(f"{request.full_url} gives no token ({error.code} {error.reason}): {advice}.") from None
    except (URLError, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise Retriable(f"no issuer of tokens answers at {request.full_url} ({reason}).") from None
    except ValueError:
        tree = None
    return tree if isinstance(tree, dict) else {}
