"""The broker's HTTP endpoint: `/metrics`, `/health/live` and `/health/ready`.

It is served by the broker's own event loop and takes turns with everything else, so a scrape costs others a few
milliseconds at a time at most. `live` says that the loop answers; `ready` that clients are served: the broker is open,
taken into its cluster, and can use a log directory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.observing.collector import BrokerState, Collector
from ottla.broker.observing.loop_lag import LoopLag
from ottla.broker.observing.service_families import disk_space
from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address
from ottla.exposition.endpoint import Endpoint, Query, Reply
from ottla.exposition.protection import protection
from ottla.exposition.text import CONTENT_TYPE, text_in_steps
from ottla.server.listener import Listener

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.observing.switch import ObservingSwitch
    from ottla.server.connection import Connection

log = logging.getLogger("ottla.server")

SETTING = "ottla.metrics.listen"
CERTIFICATE, KEY = "ottla.metrics.ssl.certificate.location", "ottla.metrics.ssl.key.location"


class MetricsEndpoint:
    def __init__(self, broker: Broker, listeners: list[Listener], switch: ObservingSwitch) -> None:
        """Raises OttlaError for files that cannot be used."""
        self._broker = broker
        self._listeners = listeners
        self._switch = switch
        self._observer = switch.observer
        self._lag = LoopLag(broker.loop)
        self._collector: Collector | None = None
        self.state = BrokerState.STARTING
        # One at a time: a second scraper waits for the first.
        self._scraping = asyncio.Lock()
        config = broker.config
        if config.ottla_metrics_ssl_key_location and not config.ottla_metrics_ssl_certificate_location:
            raise OttlaError(f"{KEY} is given without {CERTIFICATE}: give both, or neither.")
        self._endpoint = Endpoint(
            {"/metrics": self._metrics, "/health/live": self._live, "/health/ready": self._ready},
            protection=protection(
                config.ottla_metrics_ssl_certificate_location,
                config.ottla_metrics_ssl_key_location,
                config.ottla_metrics_users_file,
            ),
        )

    def bind(self) -> None:
        """Raises OttlaError."""
        address = parse_address(self._broker.config.ottla_metrics_listen, what=SETTING)
        self._endpoint.bind(*address, what=SETTING)

    @property
    def url(self) -> str:
        return self._endpoint.url

    async def start(self) -> None:
        """Before the broker is open: whoever asks meanwhile is answered as soon as the logs are loaded, not refused."""
        await self._endpoint.start()
        self._lag.start()

    def broker_is_open(self) -> None:
        broker = self._broker
        self._collector = Collector(broker, self._observer, self._lag, self._connections, self._logins)
        self._switch.serve_metrics()
        for listener in self._listeners:
            listener.on_sent = _count_sending
        self.state = BrokerState.RUNNING
        log.info("metrics are served", extra={"url": f"{self.url}/metrics"})

    def is_stopping(self) -> None:
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN

    async def stop(self) -> None:
        self._lag.stop()
        await self._endpoint.stop()

    def _connections(self) -> list[object]:
        return [connection for listener in self._listeners for connection in listener.connections]

    def _logins(self) -> dict[str, tuple[int, int]]:
        return {one.name: (one.logins.succeeded, one.logins.failed) for one in self._listeners}

    # --- pages

    async def _metrics(self, _: Query) -> Reply:
        collector = self._collector
        if collector is None:
            return Reply(b"the broker is starting\n", status=503)
        async with self._scraping:
            broker = self._broker
            paths = [log_dir.path for log_dir in broker.logs.dirs]
            space = await broker.run_in_thread(disk_space, paths)
            of_system = await broker.run_in_thread(collector.of_system)
            body = await broker.turns.queue(text_in_steps(collector.families(self.state, of_system, space)))
        return Reply(body, CONTENT_TYPE)

    async def _live(self, _: Query) -> Reply:
        return Reply(b"alive\n")

    async def _ready(self, _: Query) -> Reply:
        why = self._why_not_ready()
        return Reply(b"ready\n") if why is None else Reply(f"not ready: {why}\n".encode(), status=503)

    def _why_not_ready(self) -> str | None:
        broker = self._broker
        if self.state is not BrokerState.RUNNING:
            return "the broker is starting" if self.state < BrokerState.RUNNING else "the broker is stopping"
        if broker.is_clustered and broker.broker_epoch < 0:
            return "the controller has not taken this broker in"
        if not broker.is_store_reached:
            return "ZooKeeper is not reached"
        if all(log_dir.offline is not None for log_dir in broker.logs.dirs):
            return "all log directories have failed"
        return None


def _count_sending(connection: Connection, seconds: float) -> None:
    """An answer that its client's socket did not take at once has left. Of several that left together it was the last
    one's API that the client waited for."""
    if connection.observed is not None:
        connection.observed.send.add(seconds)
