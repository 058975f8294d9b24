"""A worker of Ottla Connect in a thread of this process, on a broker of yours."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from typing import Any

from ottla.client.access.tls import context_of
from ottla.connect.server import ConnectServer
from ottla.connect.worker.settings import parse_worker
from ottla.testing.in_thread import InThread

_DEFAULTS = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "300",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
}
_LOOK_AGAIN_S = 0.05


class Connect(InThread[ConnectServer]):
    """`with Broker() as broker, Connect(broker.bootstrap_servers) as connect:`; then use `connect.url`, or its methods.

    `settings` are those of a worker.properties. `spark` is a session that is there already; without one a local Spark
    is started for the worker. `login` is the user and password that its methods show.
    """

    _what = "worker"

    def __init__(
        self, bootstrap_servers: str, *, spark: Any = None, login: tuple[str, str] | None = None, **settings: str
    ) -> None:
        super().__init__()
        given = {**_DEFAULTS, **settings}
        self._settings = parse_worker(given, bootstrap=bootstrap_servers, listen="127.0.0.1:0", master="local[2]")
        self._spark = spark
        self._login = login

    @property
    def url(self) -> str:
        return self.server.url

    def _make(self) -> ConnectServer:
        return ConnectServer(self._settings, self._spark)

    # --- what a test asks

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = 100.0) -> tuple[int, Any]:
        """Status and answer."""
        request = urllib.request.Request(self.url + path, method=method)
        if self._login is not None:
            request.add_header("Authorization", f"Basic {base64.b64encode(':'.join(self._login).encode()).decode()}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            tls = None if self._settings.rest.tls is None else context_of(self._settings.rest.tls)
            with urllib.request.urlopen(request, timeout=timeout_s, context=tls) as answer:
                data, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            data, status = error.read(), error.code
        return status, json.loads(data) if data else None

    def create(self, name: str, **config: Any) -> None:
        """Underscores in names of settings are dots: `connector_class="FileStreamSource"`."""
        given = {key.replace("_", "."): str(value) for key, value in config.items()}
        status, answer = self.ask("PUT", f"/connectors/{name}/config", given)
        if status not in (200, 201):
            raise AssertionError(f"{name}: {status} {answer}")

    def wait_for(self, name: str, state: str, timeout_s: float = 120.0) -> dict[str, Any]:
        """Its status, once the connector and all its tasks are in this state."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            status, answer = self.ask("GET", f"/connectors/{name}/status")
            if status == 200 and all(one["state"] == state for one in (answer["connector"], *answer["tasks"])):
                return dict(answer)
            if time.monotonic() > deadline_s:
                raise AssertionError(f"{name} is not {state}: {answer}")
            time.sleep(_LOOK_AGAIN_S)
