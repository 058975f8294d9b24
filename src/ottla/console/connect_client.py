"""Kafka Connect's REST API, as far as the console asks it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request

from ottla.client.access.http_place import http_place, reason_of
from ottla.common.errors import OttlaError

_TIMEOUT_S = 10.0
_STATES = ("FAILED", "UNASSIGNED", "RESTARTING", "RUNNING", "PAUSED", "STOPPED")
# What a setting is called that holds a secret, in most connectors.
_SECRET = (
    *("password", "passwd", "passphrase", "secret", "token", "credential", "sasl.jaas.config", "user.info"),
    *("private.key", "api.key", "apikey", "access.key", "account.key", "sas.key", "keystore.key", "connection.string"),
)
# And those inside of addresses: `//user:password@host`, `password=...` of JDBC.
_IN_ADDRESS = re.compile(r"(//[^/@\s:]*:)[^/\s]*(@)|((?:password|passwd|pwd|secret|token)=)[^&;,\s]*", re.IGNORECASE)
HIDDEN = "(hidden)"


@dataclass(frozen=True)
class Task:
    id: int
    state: str
    worker: str
    trace: str


@dataclass(frozen=True)
class Connector:
    name: str
    kind: str
    state: str
    worker: str
    trace: str
    tasks: tuple[Task, ...]
    config: dict[str, str] = field(default_factory=dict)

    @property
    def worst(self) -> str:
        """Its own state, or that of a task which is worse off."""
        states = [self.state, *(task.state for task in self.tasks)]
        return min(states, key=lambda state: _STATES.index(state) if state in _STATES else 99)

    @property
    def rank(self) -> int:
        return _STATES.index(self.worst) if self.worst in _STATES else 99

    @property
    def first_trace(self) -> str:
        return self.trace or next((task.trace for task in self.tasks if task.trace), "")


@dataclass(frozen=True)
class Plugin:
    name: str
    kind: str
    version: str

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


class ConnectClient:
    def __init__(self, url: str, *, ca: str | None = None, certificate: str | None = None) -> None:
        """`https://user:password@host:port` logs in, and so does a certificate: a PEM file with its key in it."""
        place = http_place(url, what="Kafka Connect", example="http://127.0.0.1:8083", ca=ca, certificate=certificate)
        self.url = place.url
        self._place = place

    def version(self) -> str:
        return str(self._tree("/").get("version", "unknown"))

    def connectors(self) -> list[Connector]:
        """All of them in two questions: to one question for both, a worker leaves out those that have no state yet."""
        infos = self._tree("/connectors?expand=info")
        states = self._tree("/connectors?expand=status")
        return [_connector(name, one | states.get(name, {})) for name, one in infos.items()]

    def topics(self, name: str) -> list[str]:
        """Those that it has used; none where the worker does not keep account of them."""
        try:
            found = self._tree(f"/connectors/{quote(name, safe='')}/topics").get(name)
        except OttlaError:
            return []
        used = found.get("topics") if isinstance(found, dict) else None
        return [str(topic) for topic in used] if isinstance(used, list) else []

    def control(self, name: str, action: str, task: int | None) -> None:
        path = f"/connectors/{quote(name, safe='')}"
        if task is not None:
            self._ask("POST", f"{path}/tasks/{task}/restart")
        elif action == "restart":
            self._ask("POST", f"{path}/restart?includeTasks=true&onlyFailed=false")
        else:
            self._ask("PUT", f"{path}/{action}")

    def plugins(self) -> list[Plugin]:
        found = self._ask("GET", "/connector-plugins")
        if not isinstance(found, list) or not all(isinstance(one, dict) and "class" in one for one in found):
            raise self._is_none()
        plugins = [Plugin(str(one["class"]), str(one.get("type", "")), str(one.get("version", ""))) for one in found]
        return sorted(plugins, key=lambda one: (one.kind, one.short_name))

    def config(self, name: str) -> dict[str, str]:
        """With its secrets: what is shown of it goes through `shown_setting`."""
        found = self._tree(f"/connectors/{quote(name, safe='')}/config")
        return {str(key): str(value) for key, value in found.items()}

    def validate(self, config: Mapping[str, str]) -> Any:
        """What the worker says of each setting, those that are missing among them."""
        plugin = config.get("connector.class", "").rpartition(".")[2]
        return self._ask("PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", dict(config))

    def create(self, name: str, config: Mapping[str, str], *, is_stopped: bool) -> None:
        """Only one that is new: a connector of this name is left as it is."""
        wanted: dict[str, Any] = {"name": name, "config": dict(config)}
        # Workers before 3.7 do not know the field.
        self._ask("POST", "/connectors", wanted | ({"initial_state": "STOPPED"} if is_stopped else {}))

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        self._ask("PUT", f"/connectors/{quote(name, safe='')}/config", dict(config))

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/connectors/{quote(name, safe='')}")

    def _tree(self, path: str) -> dict[str, Any]:
        found = self._ask("GET", path)
        if not isinstance(found, dict):
            raise self._is_none()
        return found

    def _is_none(self) -> OttlaError:
        return OttlaError(f"what answers at {self.url} is not Kafka Connect: look at the address of --connect.")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Accept": "application/json", "Content-Type": "application/json", **self._place.headers}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, method=method, headers=headers)
        try:
            with self._place.opener.open(request, timeout=_TIMEOUT_S) as reply:
                text = reply.read()
                return json.loads(text) if text.strip() else {}
        except HTTPError as error:
            raise self._refusal(error) from None
        except (URLError, OSError, ValueError, HTTPException) as error:
            why = reason_of(error, "--connect-ca")
            raise OttlaError(f"Kafka Connect does not answer at {self.url} ({why}).") from None

    def _refusal(self, error: HTTPError) -> OttlaError:
        if error.code == 401 and self._place.has_login:
            return OttlaError(f"Kafka Connect at {self.url} does not take the login that --connect has for it.")
        if error.code == 401:
            return OttlaError(
                f"Kafka Connect at {self.url} asks for a login: give --connect with it, as in http://USER:PASSWORD@HOST."
            )
        try:
            sentence = str(json.load(error)["message"])
        except (OSError, ValueError, KeyError, TypeError, HTTPException):
            sentence = f"{error.code} {error.reason}"
        return OttlaError(f"Connect refused: {sentence.rstrip('.')}.")


def _connector(name: str, tree: Any) -> Connector:
    status, info = tree.get("status") or {}, tree.get("info") or {}
    own = status.get("connector") or {}
    return Connector(
        name,
        str(status.get("type") or info.get("type") or ""),
        str(own.get("state", "UNASSIGNED")),
        str(own.get("worker_id", "")),
        str(own.get("trace") or ""),
        tuple(
            Task(int(one["id"]), str(one.get("state", "")), str(one.get("worker_id", "")), str(one.get("trace") or ""))
            for one in status.get("tasks") or ()
        ),
        {key: shown_setting(key, str(value)) for key, value in sorted((info.get("config") or {}).items())},
    )


def is_secret(key: str) -> bool:
    """By what it is called."""
    return any(word in key.lower() for word in _SECRET)


def shown_setting(key: str, value: str) -> str:
    """Without what is secret in it. A reference (`${file:...}`) says only where that is."""
    if is_secret(key) and value and not value.startswith("${"):
        return HIDDEN
    return _IN_ADDRESS.sub(lambda found: f"{found[1] or found[3]}{HIDDEN}{found[2] or ''}", value)
