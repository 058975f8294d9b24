"""A worker of Ottla Connect in a thread of this process, on a broker of yours."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import Future
from typing import Any, Self

from ottla.connect.server import ConnectServer
from ottla.connect.worker.settings import parse_worker

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


class Connect:
    """`with Broker() as broker, Connect(broker.bootstrap_servers) as connect:`; then use `connect.url`, or its methods.

    `settings` are those of a worker.properties. `spark` is a session that is there already; without one a local Spark
    is started for the worker.
    """

    def __init__(self, bootstrap_servers: str, *, spark: Any = None, **settings: str) -> None:
        given = {**_DEFAULTS, **settings}
        self._settings = parse_worker(given, bootstrap=bootstrap_servers, listen="127.0.0.1:0", master="local[2]")
        self._spark = spark
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self.server: ConnectServer | None = None

    @property
    def url(self) -> str:
        if self.server is None:
            raise RuntimeError("the worker is not running: use `with Connect(...) as connect:` or call start()")
        return self.server.url

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("this worker is running already")
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="ottla-connect", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise
        return self

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    # --- what a test asks

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = 100.0) -> tuple[int, Any]:
        """Status and answer."""
        request = urllib.request.Request(self.url + path, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
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

    # --- the thread

    def _run(self, started: Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if not started.done():
                started.set_exception(error)

    async def _serve(self, started: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = ConnectServer(self._settings, self._spark)
        await server.start()
        self.server = server
        started.set_result(None)
        try:
            await self._stopping.wait()
        finally:
            self.server = None
            await server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
