"""A broker with its listeners: binds ports, serves, stops cleanly."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.broker.broker import Broker
from ottla.broker.chores.timers import Timers
from ottla.broker.observing.switch import ObservingSwitch
from ottla.broker.router import Router
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.common.config import Listener as Endpoint
from ottla.server import service_manager
from ottla.server.garbage import CHECK_MS, GarbageCollector
from ottla.server.listener import ConnectionLimits, Listener
from ottla.server.reachable import LOCAL_ONLY, reachable_host
from ottla.server.request_memory import RequestMemory

if TYPE_CHECKING:
    from ottla.broker.logins.gate import SaslGate
    from ottla.broker.observing.request_observer import RequestObserver
    from ottla.server.metrics import MetricsEndpoint
    from ottla.server.tls_identity import TlsIdentity

log = logging.getLogger("ottla.server")

# What `queued.max.request.bytes=-1` means.
QUEUED_BYTES_DEFAULT = 512 * 1024 * 1024
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
        # What clients are told, by listener.
        self._advertised: dict[str, tuple[str, int]] = {}
        self.metrics: MetricsEndpoint | None = None

    async def start(self) -> None:
        """Ports are taken first, so that a second broker fails at once; they answer when the broker is open."""
        for warning in self.config.warnings:
            log.warning(warning)
        router = Router(self.broker)
        observing = ObservingSwitch(self.broker, router, partial(self._on_switch, router))
        try:
            self._bind(router)
            await self._start_metrics(observing)
            await self.broker.open()
        except BaseException:
            if self.metrics is not None:
                await self.metrics.stop()
            await self._stop_listeners(0)
            await self.broker.close(clean=False)
            raise
        observing.look()
        if self.metrics is not None:
            self.metrics.broker_is_open()
        for listener in self._listeners:
            listener.start()
            told = _shown(self._advertised[listener.name])
            where = {"listener": listener.name, "address": _shown(listener.address), "advertised": told}
            log.info("listening", extra=where)
            if listener.is_open_to_all and not listener.is_local:
                log.warning(
                    "open to everybody who reaches this machine, since there is neither TLS nor a login: listen on "
                    "127.0.0.1 to be alone, or see `ottla security init`",
                    extra={"listener": listener.name},
                )
        self._warming_up = asyncio.create_task(router.warm_up())
        self.broker.timers.every(lambda: _IDLE_CHECK_MS, self._close_idle, "close idle connections")
        if not all(listener.is_open_to_all for listener in self._listeners):
            self.broker.timers.every(self._login_check_ms, self._close_unknown, "close connections without a login")

    def _on_switch(self, router: Router, observer: RequestObserver | None) -> None:
        """Requests go to whoever observes them without a detour, where no login comes before."""
        for listener in self._listeners:
            if not listener.has_logins:
                listener.handle = router.handle if observer is None else observer.handle

    async def _start_metrics(self, observing: ObservingSwitch) -> None:
        if self.config.ottla_metrics_listen:
            from ottla.server.metrics import MetricsEndpoint  # a broker without it does not load prometheus_client

            self.metrics = MetricsEndpoint(self.broker, self._listeners, observing)
            self.metrics.bind()
            await self.metrics.start()

    def _bind(self, router: Router) -> None:
        config = self.config
        limits = ConnectionLimits(config, self.broker.clock)
        limits.quota_wait_ms = self.broker.quotas.connection_wait_ms
        queued = config.queued_max_request_bytes
        memory = RequestMemory(queued if queued > 0 else QUEUED_BYTES_DEFAULT)
        for endpoint in config.endpoints:
            sasl = self._gate(router, endpoint)
            listener = Listener(
                endpoint.name,
                router.handle if sasl is None else sasl.handle,
                clock=self.broker.clock,
                limits=limits,
                memory=memory,
                request_bytes_max=config.socket_request_max_bytes,
                send_buffer_bytes=config.socket_send_buffer_bytes,
                receive_buffer_bytes=config.socket_receive_buffer_bytes,
                tls=self._tls(endpoint),
                login_bytes_max=None if sasl is None else config.sasl_server_max_receive_size,
            )
            listener.bind(endpoint.host, endpoint.port, config.socket_listen_backlog_size)
            self._listeners.append(listener)
            host = endpoint.advertised_host or reachable_host(listener.families)
            self._advertised[listener.name] = address = (host, endpoint.advertised_port or listener.port)
            self.broker.advertise(listener.name, *address)
            if not endpoint.advertised_host and host == LOCAL_ONLY:
                log.warning(
                    "clients of other machines cannot connect: this one has no name or address that leads to it; "
                    "give one with --advertise HOST",
                    extra={"listener": listener.name},
                )
        config.settle_advertised(self._advertised)

    def _gate(self, router: Router, endpoint: Endpoint) -> SaslGate | None:
        if not endpoint.protocol.has_sasl:
            return None
        from ottla.broker.logins.gate import SaslGate  # where nobody logs in, nothing of that is loaded

        return SaslGate(self.broker, router, endpoint.name)

    def _tls(self, endpoint: Endpoint) -> TlsIdentity | None:
        if not endpoint.protocol.has_tls:
            return None
        from ottla.server.tls_identity import TlsIdentity  # a broker without TLS does not load OpenSSL

        return TlsIdentity(self.config, endpoint, self.broker.clock)

    def _close_idle(self) -> None:
        idle_ms_max = self.config.connections_max_idle_ms
        if idle_ms_max >= 0:
            for listener in self._listeners:
                listener.close_idle(idle_ms_max)

    def _login_check_ms(self) -> int:
        return max(10, self.config.ottla_login_timeout_ms // 4)

    def _close_unknown(self) -> None:
        for listener in self._listeners:
            listener.close_unknown(self.config.ottla_login_timeout_ms)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where clients of this machine can connect, one for each listener."""
        return [listener.address for listener in self._listeners]

    @property
    def ready_line(self) -> str:
        """`address` is where it listens; `advertised` follows where clients are told to come to another one."""
        bound, told = self.addresses[0], self._advertised[self._listeners[0].name]
        advertised = f" advertised={_shown(told)}" if told != bound else ""
        metrics = f" metrics={self.metrics.url}/metrics" if self.metrics is not None else ""
        return f"ready address={_shown(bound)}{advertised} node.id={self.broker.node_id}{metrics} version={__version__}"

    async def stop(self, *, clean: bool = True) -> None:
        """In-flight requests are answered, logs flushed, the clean-shutdown marker written."""
        self._warming_up.cancel()
        if self.metrics is not None:
            self.metrics.is_stopping()
        if clean:
            await self.broker.leave()
        self.broker.release_waiting()
        await self._stop_listeners(_STOP_GRACE_S)
        if self.metrics is not None:
            await self.metrics.stop()
        await self.broker.close(clean=clean)

    async def _stop_listeners(self, grace_s: float) -> None:
        await asyncio.gather(*(listener.stop(grace_s) for listener in self._listeners))
        self._listeners.clear()


def _shown(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def run_until_signal(config: BrokerConfig, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT, or the SIGHUP of a terminal that closes."""
    allow_many_files()
    loop = asyncio.get_running_loop()
    stopping: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(received: signal.Signals) -> None:
        if not stopping.done():
            stopping.set_result(received)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Under nohup SIGHUP is ignored, and stays so.
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop, number)
    server = Server(config)
    await server.start()
    log.info(
        "started",
        extra={
            "version": __version__,
            "node.id": config.node_id,
            "cluster.id": server.broker.image.cluster_id,
            "topics": len(server.broker.image.topics),
            "partitions": server.broker.image.partition_count,
            "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "pid": os.getpid(),
        },
    )
    garbage = GarbageCollector()
    server.broker.timers.every(lambda: CHECK_MS, garbage.check, "collect garbage")
    on_ready(server.ready_line)
    service_manager.tell(service_manager.READY)
    received = await stopping
    service_manager.tell(service_manager.STOPPING)
    log.info("stopping", extra={"signal": received.name})
    await server.stop()
    log.info("stopped")


def allow_many_files() -> None:
    """Every connection and every partition in use holds a descriptor; 1024, the usual soft limit, is soon used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
