"""A broker with its listeners: binds ports, serves, stops cleanly."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable

from ottla import __version__
from ottla.broker.broker import Broker
from ottla.broker.router import Router
from ottla.broker.timers import Timers
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.server.listener import ConnectionLimits, Listener

log = logging.getLogger("ottla.server")

_IDLE_CHECK_MS = 10_000
_STOP_GRACE_S = 10.0


class Server:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        make_timers: Callable[[asyncio.AbstractEventLoop, Clock], Timers] = Timers,
    ) -> None:
        self.config = config
        self.broker = Broker(config, clock=clock, make_timers=make_timers)
        self._listeners: list[Listener] = []

    async def start(self) -> None:
        """Ports are taken first, so that a second broker fails at once; they answer when the broker is open."""
        for warning in self.config.warnings:
            log.warning(warning)
        router = Router(self.broker)
        try:
            self._bind(router)
            await self.broker.open()
        except BaseException:
            await self._stop_listeners(0)
            await self.broker.close(clean=False)
            raise
        for listener in self._listeners:
            listener.start()
        self.broker.timers.every(lambda: _IDLE_CHECK_MS, self._close_idle, "close idle connections")

    def _bind(self, router: Router) -> None:
        config = self.config
        limits = ConnectionLimits(config, self.broker.clock)
        for endpoint in config.endpoints:
            listener = Listener(
                endpoint.name,
                router.handle,
                clock=self.broker.clock,
                limits=limits,
                request_bytes_max=config.socket_request_max_bytes,
                send_buffer_bytes=config.socket_send_buffer_bytes,
                receive_buffer_bytes=config.socket_receive_buffer_bytes,
            )
            listener.bind(endpoint.host, endpoint.port, config.socket_listen_backlog_size)
            self._listeners.append(listener)
            host = endpoint.advertised_host or endpoint.host or socket.gethostname()
            self.broker.advertise(listener.name, host, endpoint.advertised_port or listener.port)

    def _close_idle(self) -> None:
        idle_ms_max = self.config.connections_max_idle_ms
        if idle_ms_max >= 0:
            for listener in self._listeners:
                listener.close_idle(idle_ms_max)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where clients of this machine can connect, one for each listener."""
        return [(one.host or "localhost", one.port) for one in self._listeners]

    @property
    def ready_line(self) -> str:
        host, port = self.addresses[0]
        shown = f"[{host}]" if ":" in host else host
        return f"ready address={shown}:{port} node.id={self.broker.node_id} version={__version__}"

    async def stop(self, *, clean: bool = True) -> None:
        """In-flight requests are answered, logs flushed, the clean-shutdown marker written."""
        self.broker.release_waiting()
        await self._stop_listeners(_STOP_GRACE_S)
        await self.broker.close(clean=clean)

    async def _stop_listeners(self, grace_s: float) -> None:
        await asyncio.gather(*(one.stop(grace_s) for one in self._listeners))
        self._listeners.clear()


async def run_until_signal(config: BrokerConfig, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    _allow_many_files()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stopping.set)
    server = Server(config)
    await server.start()
    on_ready(server.ready_line)
    await stopping.wait()
    log.info("stopping")
    await server.stop()
    log.info("stopped")


def _allow_many_files() -> None:
    """Every connection and every partition in use holds a descriptor; 1024, the usual soft limit, is soon used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
