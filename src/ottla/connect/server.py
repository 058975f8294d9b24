"""A worker with its listener and its Spark: started, serving, stopped."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ottla.connect.rest.answers import refusal
from ottla.connect.rest.app import build
from ottla.connect.rest.loggers import set_level
from ottla.connect.worker.settings import WorkerSettings
from ottla.connect.worker.spark_session import WorkerSpark
from ottla.connect.worker.worker import Worker
from ottla.exposition.address import parse_address
from ottla.exposition.endpoint import Endpoint, Query, Reply
from ottla.exposition.text import CONTENT_TYPE, text_of
from ottla.http.server import HttpServer

_JOIN_S_MAX = 60.0
_SPARK = {"spark.scheduler.mode": "FAIR", "spark.ui.enabled": "false"}


async def _live(_: Query) -> Reply:
    return Reply(b"alive\n")


class ConnectServer:
    """`await start()`, `await stop()`; `url` is where it answers."""

    def __init__(self, settings: WorkerSettings, spark: Any = None) -> None:
        """`spark`: a session that is there already, and stays."""
        self.settings = settings
        self._given_spark = spark
        self._spark: WorkerSpark | None = None
        rest = settings.rest
        self._http = HttpServer(
            refusal,
            certificate=rest.certificate,
            key_password=rest.key_password,
            client_ca=rest.client_ca,
            requires_client=rest.requires_client,
        )
        self._metrics: Endpoint | None = None
        self._app: Any = None
        self.worker: Worker | None = None

    @property
    def url(self) -> str:
        assert self.worker is not None
        return self.worker.url

    async def start(self) -> None:
        """Returns when questions are answered; connectors start when the group has shared them out."""
        settings = self.settings
        port = self._http.bind(settings.rest.host, settings.rest.port)
        try:
            if settings.metrics is not None:
                self._metrics = Endpoint({"/metrics": self._tell, "/health/live": _live, "/health/ready": self._ready})
                what = "ottla.metrics.listen"
                self._metrics.bind(*parse_address(settings.metrics, what=what), what=what)
                await self._metrics.start()
            if self._given_spark is not None:
                self._spark = WorkerSpark(self._given_spark, None)
            else:
                self._spark = WorkerSpark(await asyncio.to_thread(self._open_spark), self._open_spark)
            self.worker = Worker(settings, self._spark)
            self.worker.configs.on_level = set_level
            host = settings.advertised_host or settings.rest.host
            await asyncio.to_thread(self.worker.start, host, settings.advertised_port or port)
            self._app = build(self.worker)
            await self._http.start(self._app)
            await self._joined()
        except BaseException:
            self._http.release()
            await self._close()
            raise

    @property
    def metrics_url(self) -> str | None:
        return None if self._metrics is None else self._metrics.url

    async def _tell(self, _: Query) -> Reply:
        worker = self.worker
        return Reply(
            b"" if worker is None else text_of(worker.metrics.families(is_leader=worker.is_leader)), CONTENT_TYPE
        )

    async def _ready(self, _: Query) -> Reply:
        if self.worker is not None and self.worker.is_ready:
            return Reply(b"ready\n")
        return Reply(b"not ready: the worker has not joined its group\n", status=503)

    async def _joined(self) -> None:
        """What asks meanwhile is answered: `/health` says that we are not there yet. A group that cannot be joined for
        a minute is no reason to stop; the log says why."""
        deadline_s = time.monotonic() + _JOIN_S_MAX
        assert self.worker is not None
        while not self.worker.is_ready and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)

    async def stop(self) -> None:
        await self._http.stop()
        await self._close()

    async def _close(self) -> None:
        if self._metrics is not None:
            await self._metrics.stop()
        if self._app is not None:
            self._app.state.forwarding.close()
        if self.worker is not None:
            await asyncio.to_thread(self.worker.stop)
        if self._spark is not None:
            await asyncio.to_thread(self._spark.close)

    def _open_spark(self) -> Any:
        import ottla.spark

        conf = {**_SPARK, **self.settings.spark}
        session = ottla.spark.session(app=f"connect {self.settings.group}", master=self.settings.master, **conf)
        # Each connector has a pool, of which Spark warns that no file describes it. What fails is told by its state.
        session.sparkContext.setLogLevel("ERROR")
        return session
