"""A listening socket and its connections, with the limits that hold before anybody is trusted."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker import audit
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.protocol.framing import SHARED_BUFFER_BYTES
from ottla.security.principal_rules import NoPrincipal
from ottla.server.client_end import Answer
from ottla.server.connection import Connection
from ottla.server.poller import make_poller
from ottla.server.receiving import ReceivingConnection
from ottla.server.request_memory import RequestMemory
from ottla.server.transport import PlainTransport

if TYPE_CHECKING:
    from ottla.server.tls_identity import TlsIdentity

log = logging.getLogger("ottla.server")

Handler = Callable[[Connection, memoryview], "Answer | Awaitable[Answer]"]

# Buffers of large frames are kept for the next one: fresh pages cost more than the bytes written into them.
_KEPT_BUFFERS = 4
_KEPT_BUFFER_BYTES_MAX = 2 * 1024 * 1024
# What all connections together may announce before their buffers start small.
_ANNOUNCED_BYTES_MAX = 32 * 1024 * 1024
_BUFFER_STEP_BYTES = 4 * 1024
_ACCEPTS_PER_TURN = 64
_ACCEPT_AGAIN_S = 1.0
# How a TLS handshake begins; taken for the size of a frame it would be 369 MB.
_TLS_HANDSHAKE = 0x1603
# Addresses remembered because they were told about once.
_TLS_CLIENTS_MAX = 1000
# Connections that wait for nothing but their end: their addresses have made too many.
_HELD_BACK_MAX = 1000
# What OpenSSL says, and what to do.
_NO_TLS = ": the client does not speak TLS; set security.protocol=SSL or SASL_SSL in the client"
_ADVICE = {
    "HTTP_REQUEST": _NO_TLS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": ": the client has no certificate, and ssl.client.auth requires one",
    "TLSV1_ALERT_UNKNOWN_CA": ": the client does not trust our certificate; give it the CA",
}
# The default of `max.connection.creation.rate`.
UNLIMITED_RATE = 2**31 - 1


class LoginCounts:
    """Of one listener: logins by SASL, and handshakes of TLS where there are no others."""

    __slots__ = ("failed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = self.failed = 0


class ConnectionLimits:
    """Counts shared by all listeners of a broker (`max.connections*`)."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._by_ip: Counter[str] = Counter()
        self._total = 0
        # How long a client of this address has to wait for its quota.
        self.quota_wait_ms: Callable[[str], int] = lambda _: 0
        # When each accepted connection of the last second came, while `max.connection.creation.rate` limits them.
        self._recent_ms: deque[int] = deque()

    def wait_before_accept_ms(self) -> int:
        """How long the next connection must wait for its turn."""
        rate = self._config.max_connection_creation_rate
        if rate == UNLIMITED_RATE:
            return 0
        now_ms, recent = self._clock.monotonic_ms(), self._recent_ms
        while recent and recent[0] <= now_ms - 1000:
            recent.popleft()
        if len(recent) < rate:
            return 0
        return recent[0] + 1000 - now_ms if recent else 1000

    def admit(self, host: str) -> bool:
        config = self._config
        if config.max_connection_creation_rate != UNLIMITED_RATE:
            self._recent_ms.append(self._clock.monotonic_ms())
        if self._total >= config.max_connections or self._by_ip[host] >= self._per_ip_max(host):
            return False
        self._total += 1
        self._by_ip[host] += 1
        return True

    def _per_ip_max(self, host: str) -> int:
        for pair in self._config.max_connections_per_ip_overrides.split(","):
            address, _, number = pair.strip().rpartition(":")
            if address == host:
                return int(number)
        return self._config.max_connections_per_ip

    def release(self, host: str) -> None:
        self._total -= 1
        self._by_ip[host] -= 1
        if not self._by_ip[host]:
            del self._by_ip[host]


class Listener:
    def __init__(
        self,
        name: str,
        handle: Handler,
        *,
        clock: Clock,
        limits: ConnectionLimits,
        memory: RequestMemory | None = None,
        request_bytes_max: int,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        tls: TlsIdentity | None = None,
        login_bytes_max: int | None = None,
    ) -> None:
        """`login_bytes_max`: the largest request of a client that has not logged in, where clients have to."""
        self.name = name
        self._tls = tls
        self.has_logins = login_bytes_max is not None
        self.is_open_to_all = tls is None and not self.has_logins
        self.first_request_bytes_max = request_bytes_max if login_bytes_max is None else login_bytes_max
        self.logins = LoginCounts()
        self.handle = handle
        # Told when an answer has left that its client did not take at once, and how long that took.
        self.on_sent: Callable[[Connection, float], None] = lambda _connection, _seconds: None
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self.request_bytes_max = request_bytes_max
        self.scratch = memoryview(bytearray(SHARED_BUFFER_BYTES))
        self._limits = limits
        self.memory = memory or RequestMemory(sys.maxsize)
        self.poller = make_poller(self.loop, clock)
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._connections: dict[int, Connection] = {}
        self._next_id = 0
        self._held_back: set[socket.socket] = set()
        self._spare: list[bytearray] = []
        self._tls_clients: set[str] = set()
        self._failed_clients: set[str] = set()
        # Connections in the middle of a frame that has a buffer of its own.
        self.receiving = 0
        self._sock: socket.socket | None = None
        # Set when the broker stops: connections close instead of reading on.
        self.draining = False
        # Connections cannot be accepted now, which has been said.
        self._is_refusing = False
        self.host = ""
        self.port = 0

    def bind(self, host: str, port: int, backlog: int) -> None:
        """Take the port; connections are accepted from `start` on."""
        try:
            infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except socket.gaierror as error:
            raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        # Where both families are offered for 'all interfaces', IPv4 reaches every client we test with.
        family, kind, protocol, _, address = sorted(infos, key=lambda info: info[0] != socket.AF_INET)[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(backlog)
        except OSError as error:
            sock.close()
            if error.errno == errno.EADDRINUSE:
                raise OttlaError(
                    f"port {port} on {host or 'all interfaces'} is taken: choose another with --listen HOST:PORT"
                ) from None
            raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        sock.setblocking(False)
        self._sock = sock
        self.host, self.port = host, sock.getsockname()[1]

    @property
    def address(self) -> tuple[str, int]:
        """Where clients of this machine can connect."""
        return self.host or "localhost", self.port

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        assert self._sock is not None
        return ipaddress.ip_address(self._sock.getsockname()[0]).is_loopback

    @property
    def families(self) -> tuple[socket.AddressFamily, ...]:
        """Of the addresses through which clients may come."""
        assert self._sock is not None
        if self._sock.family is socket.AF_INET:
            return (socket.AF_INET,)
        only_6 = self._sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        return (socket.AF_INET6,) if only_6 else (socket.AF_INET, socket.AF_INET6)

    def start(self) -> None:
        assert self._sock is not None
        self.loop.add_reader(self._sock.fileno(), self._on_accept)

    def _on_accept(self) -> None:
        assert self._sock is not None
        for _ in range(_ACCEPTS_PER_TURN):
            wait_ms = self._limits.wait_before_accept_ms()
            if wait_ms > 0:
                self._pause_accepting(wait_ms / 1000)
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of file descriptors: accept again in a while instead of spinning.
                if not self._is_refusing:
                    self._is_refusing = True
                    log.error(
                        "cannot accept connections: raise the limit of open files (ulimit -n, LimitNOFILE= of a "
                        "systemd unit) or close some",
                        extra={"listener": self.name, "reason": error.strerror},
                    )
                self._pause_accepting(_ACCEPT_AGAIN_S)
                return
            if self._is_refusing:
                self._is_refusing = False
                log.info("accepting connections again", extra={"listener": self.name})
            # A socket for both families has IPv4 clients as ::ffff:10.0.0.1; ACLs and quotas call them 10.0.0.1.
            self._admit(sock, address[0].removeprefix("::ffff:"))

    def _pause_accepting(self, seconds: float) -> None:
        if self._sock is not None:
            self.loop.remove_reader(self._sock.fileno())
            self.loop.call_later(seconds, self._resume_accepting)

    def _resume_accepting(self) -> None:
        if self._sock is not None:
            self.start()

    def _admit(self, sock: socket.socket, host: str) -> None:
        wait_ms = self._limits.quota_wait_ms(host)
        if wait_ms > 0:
            self._hold_back(sock, wait_ms)
            return
        if not self._limits.admit(host):
            log.warning("refusing connection: limit reached", extra={"client": host, "listener": self.name})
            sock.close()
            return
        try:
            self._serve(sock, host)
        except OSError:  # it was reset before we came to it
            self._limits.release(host)
            sock.close()

    def _serve(self, sock: socket.socket, host: str) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        self._next_id += 1
        if self._tls is None:
            self._connections[self._next_id] = ReceivingConnection(self, PlainTransport(sock), host, self._next_id)
            return
        transport = self._tls.transport(sock)
        connection = self._connections[self._next_id] = ReceivingConnection(self, transport, host, self._next_id)
        if not self.has_logins:
            transport.on_open(partial(self._admit_by_certificate, connection))

    def _hold_back(self, sock: socket.socket, wait_ms: int) -> None:
        """Its address has connected too often (KIP-612): closed at once, a client would be back at once."""
        if len(self._held_back) >= _HELD_BACK_MAX:
            sock.close()
            return
        self._held_back.add(sock)
        self.loop.call_later(wait_ms / 1000, self._let_go, sock)

    def _let_go(self, sock: socket.socket) -> None:
        self._held_back.discard(sock)
        sock.close()

    def _admit_by_certificate(self, connection: Connection, certificate: bytes | None) -> None:
        assert self._tls is not None
        try:
            principal = self._tls.principal(certificate)
        except NoPrincipal as unknown:
            raise OSError(f"no rule of ssl.principal.mapping.rules is for {unknown}") from None
        connection.admit(principal)
        self.logins.succeeded += 1
        if certificate is not None:
            audit.tell("login", principal, connection.client_host, listener=self.name, mechanism="TLS")

    # --- what connections call

    def forget(self, connection: Connection) -> None:
        if self._connections.pop(connection.id, None) is not None:
            self._limits.release(connection.client_host)

    def _note_tls_client(self, host: str) -> None:
        """Say it once for each address: such a client tries again and again."""
        if host in self._tls_clients:
            return
        if len(self._tls_clients) >= _TLS_CLIENTS_MAX:
            self._tls_clients.clear()
        self._tls_clients.add(host)
        log.warning(
            "closing connection: the client speaks TLS, which this listener does not: "
            "set security.protocol=PLAINTEXT in the client",
            extra={"client": host, "listener": self.name},
        )

    def note_refused_frame(self, connection: Connection, size: int) -> None:
        if size >> 16 == _TLS_HANDSHAKE:
            self._note_tls_client(connection.client_host)
            return
        log.warning(
            "closing connection: frame size out of range",
            extra={
                "client": connection.client_host,
                "frame_bytes": size,
                "limit_bytes": connection.request_bytes_max,
            },
        )

    def note_failed_handshake(self, connection: Connection, error: OSError) -> None:
        """Also once for each address, and nothing of those that only look whether somebody is there."""
        host = connection.client_host
        if isinstance(error, ConnectionError):
            return
        self.logins.failed += 1
        if host in self._failed_clients:
            return
        if len(self._failed_clients) >= _TLS_CLIENTS_MAX:
            self._failed_clients.clear()
        self._failed_clients.add(host)
        reason = str(error) if self._tls is None else self._tls.reason(error)
        log.warning(
            "closing connection: no TLS came about%s",
            _ADVICE.get(reason, ""),
            extra={"client": host, "listener": self.name, "reason": reason},
        )
        audit.tell("login refused", None, host, "failure", listener=self.name, mechanism="TLS", why=reason)

    def frame_buffer(self, size: int, arrived: int) -> bytearray:
        """A buffer for a frame of which `arrived` bytes are here, a used one where one fits. A few frames get room for
        all they announce; when many are under way, each starts with its share and grows with what arrives."""
        share = _ANNOUNCED_BYTES_MAX // (self.receiving + 1)
        size = min(size, max(share, arrived, _BUFFER_STEP_BYTES))
        for index, spare in enumerate(self._spare):
            if len(spare) >= size:
                return self._spare.pop(index)
        return bytearray(-(-size // _BUFFER_STEP_BYTES) * _BUFFER_STEP_BYTES)

    def recycle(self, buffer: bytearray) -> None:
        if len(self._spare) < _KEPT_BUFFERS and len(buffer) <= _KEPT_BUFFER_BYTES_MAX:
            self._spare.append(buffer)

    # --- housekeeping

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections.values())

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def close_idle(self, idle_ms_max: int) -> None:
        """Close connections whose client said nothing, or read nothing of its answer, for `connections.max.idle.ms`."""
        oldest = self.clock.monotonic_ms() - idle_ms_max
        for connection in list(self._connections.values()):
            if connection.last_active_ms < oldest and not connection.is_busy:
                connection.close()

    def close_unknown(self, ms_max: int) -> None:
        """Close connections whose client has not said who it is for so long."""
        oldest = self.clock.monotonic_ms() - ms_max
        for connection in list(self._connections.values()):
            if not connection.is_known and connection.since_ms < oldest:
                connection.close()

    async def stop(self, grace_s: float) -> None:
        """No new connections and no new requests: each connection closes when what it asked is answered, or when the
        grace time is over."""
        self.draining = True
        if self._sock is not None:
            self.loop.remove_reader(self._sock.fileno())
            self._sock.close()
            self._sock = None
        for sock in list(self._held_back):
            self._let_go(sock)
        for connection in list(self._connections.values()):
            if connection.is_idle:
                connection.close()
        deadline = self.loop.time() + grace_s
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in list(self._connections.values()):
            connection.close()
        self.poller.close()
