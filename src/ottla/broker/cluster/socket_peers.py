"""Connections to the other brokers: one for each broker and channel, made when it is needed, on our event loop.

Where the listener of brokers wants it, each begins with TLS and a login (`peer_access.py`); a session that is limited
is prolonged by another login on the same connection, between the other requests (KIP-368).

Answers come in the order of the requests, as every broker gives them; each request has a correlation id all the same,
and a connection on which the wrong one comes back is closed. So is one whose answer is overdue: whether the request was
carried out is unknown then, as with every PeerUnavailable. A connection is to one registration of a broker and ends
with it: nobody goes on waiting for a controller or a leader that was replaced while it was silent.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.apis import APIS
from ottla.broker.chores.timers import Handle
from ottla.broker.cluster.peers import Channel, PeerUnavailable, client_id_of
from ottla.metadata.image import BrokerImage
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, Message
from ottla.protocol.framing import flexible_from

if TYPE_CHECKING:
    from ottla.broker.cluster.peer_access import PeerAccess

log = logging.getLogger("ottla.cluster")

_HEADER = struct.Struct(">ihhih")
_SIZE = struct.Struct(">i")
_CONNECT_S = 3.0
# An answer larger than what is read at a time gets a buffer of its own.
_BUFFER_BYTES = 64 * 1024
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
_NO_WAY = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# While a broker cannot be connected to, though it is not gone.
_WATCH_AGAIN_S = 0.25
_LOGIN_MS_MAX = 10_000
# A session is prolonged after this part of it: the login waits behind requests that were sent before.
_LOG_IN_AGAIN = 0.6

Find = Callable[[int], BrokerImage | None]
CallLater = Callable[[float, Callable[[], object]], Handle]


class _Place(NamedTuple):
    """Where a broker is, by one of its registrations."""

    host: str
    port: int
    epoch: int


class SocketPeers:
    def __init__(
        self, node_id: int, find: Find, listener: str, call_later: CallLater, access: PeerAccess | None = None
    ) -> None:
        """`find` knows where a broker is; `listener` is the name of the one through which brokers talk; without
        `access` anybody gets in there."""
        self._find = find
        self._access = access
        self._listener = listener
        self._call_later = call_later
        self._client_id = client_id_of(node_id).encode()
        self._connections: dict[tuple[int, Channel], _Connection] = {}
        self._connecting: dict[tuple[int, Channel], asyncio.Task[_Connection]] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._logging_in: set[asyncio.Task[None]] = set()
        # Brokers that do not let us in, or that we do not trust, and why: told once for each reason.
        self._strangers: dict[int, str] = {}
        self._is_closed = False

    async def request(self, broker: int, request: Message, channel: Channel, *, timeout_ms: int = 30_000) -> Any:
        connection = self._ready(broker, channel) or await self._connect(broker, channel)
        if connection.login is not None:
            await asyncio.shield(connection.login)
        return await connection.ask(request, broker, timeout_ms)

    async def exchange(
        self, broker: int, api_key: int, version: int, body: bytes | bytearray, channel: Channel, *, timeout_ms: int
    ) -> memoryview:
        connection = self._ready(broker, channel) or await self._connect(broker, channel)
        if connection.login is not None:
            await asyncio.shield(connection.login)
        return await connection.exchange(api_key, version, body, timeout_ms)

    def _ready(self, broker: int, channel: Channel) -> _Connection | None:
        connection = self._connections.get((broker, channel))
        if connection is None or connection.is_closed or connection.place != self._place(broker):
            return None
        return connection

    def _place(self, broker: int) -> _Place:
        found = self._find(broker)
        address = None if found is None else found.endpoints.get(self._listener)
        if found is None or address is None:
            raise PeerUnavailable(f"broker {broker} is not there")
        return _Place(*address, found.epoch)

    def on_image(self) -> None:
        """Brokers may have gone, or registered anew."""
        for (broker, _), connection in list(self._connections.items()):
            try:
                is_over = self._place(broker) != connection.place
            except PeerUnavailable:
                is_over = True
            if is_over:
                connection.close("its registration is over")

    async def _connect(self, broker: int, channel: Channel) -> _Connection:
        key = (broker, channel)
        task = self._connecting.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(broker, channel))
            self._connecting[key] = task
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    def _ended(self, key: tuple[int, Channel], task: asyncio.Task[_Connection]) -> None:
        self._connecting.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever asked may have gone

    async def _open(self, broker: int, channel: Channel) -> _Connection:
        if self._is_closed:
            raise PeerUnavailable("this broker stops")
        place = self._place(broker)
        old = self._connections.pop((broker, channel), None)
        if old is not None:
            old.close("another connection takes its place")
        connection = await self._enter(broker, place)
        if self._is_closed:
            connection.close("this broker stops")
            raise PeerUnavailable("this broker stops")
        self._connections[broker, channel] = connection
        return connection

    # --- how a connection begins

    async def _enter(self, broker: int, place: _Place) -> _Connection:
        """One that is open for requests. Raises PeerUnavailable."""
        connection = _Connection(place, self._client_id, self._call_later)
        if self._access is None:
            await _connected(lambda: connection, broker, place, None)
            return connection
        try:
            await _connected(lambda: connection, broker, place, self._access.tls())
            await self._log_in(connection, broker)
        except PeerUnavailable as error:
            connection.close("it does not let us in")
            if not error.refused and self._strangers.get(broker) != str(error):
                self._strangers[broker] = str(error)
                log.error("cannot talk to a broker: %s", error, extra={"broker": broker})
            raise
        except BaseException:
            connection.close("nobody waits for it any more")
            raise
        if self._strangers.pop(broker, None) is not None:
            log.info("a broker can be talked to again", extra={"broker": broker})
        return connection

    async def _log_in(self, connection: _Connection, broker: int) -> None:
        assert self._access is not None

        async def ask(request: Message) -> Any:
            return await connection.ask(request, broker, _LOGIN_MS_MAX)

        lifetime_ms = await self._access.log_in(ask, broker)
        if lifetime_ms > 0:
            connection.log_in_again(lifetime_ms * _LOG_IN_AGAIN, partial(self._begin_again, connection, broker))

    def _begin_again(self, connection: _Connection, broker: int) -> None:
        connection.login = task = asyncio.get_running_loop().create_task(self._prolong(connection, broker))
        self._logging_in.add(task)
        task.add_done_callback(self._logging_in.discard)

    async def _prolong(self, connection: _Connection, broker: int) -> None:
        try:
            await self._log_in(connection, broker)
        except PeerUnavailable as error:
            connection.close(str(error))
        finally:
            connection.login = None

    # --- is it still there?

    def watch(self, broker: int, epoch: int, on_refused: Callable[[], None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._watch(broker, epoch, on_refused))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return task

    async def _watch(self, broker: int, epoch: int, on_refused: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        while (found := self._find(broker)) is not None and found.epoch == epoch:
            try:
                connection = await self._enter(broker, self._place(broker))
            except PeerUnavailable as error:
                if error.refused:
                    on_refused()
                    return
                await asyncio.sleep(_WATCH_AGAIN_S)
                continue
            began_s = loop.time()
            try:
                await connection.ended  # nothing is said on it
            finally:
                connection.close("it is not watched any more")
            if loop.time() < began_s + _WATCH_AGAIN_S:
                await asyncio.sleep(_WATCH_AGAIN_S)  # somebody who hangs up at once keeps nobody busy

    async def close(self) -> None:
        self._is_closed = True
        tasks: list[asyncio.Task[Any]] = [*self._watching, *self._connecting.values(), *self._logging_in]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            connection.close("this broker stops")
        self._connections.clear()


async def _connected(make_protocol: Callable[[], asyncio.BaseProtocol], broker: int, place: _Place, tls: Any) -> None:
    """Raises PeerUnavailable: refused if nobody listens at any of the addresses that the host's name has."""
    host, port, _ = place
    errors: list[OSError] = []
    loop = asyncio.get_running_loop()
    # The name in the certificate is that of the broker, not the address it has now.
    secured: dict[str, Any] = {} if tls is None else {"ssl": tls, "server_hostname": host}
    try:
        async with asyncio.timeout(_CONNECT_S):
            for *_, found in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                try:
                    await loop.create_connection(make_protocol, str(found[0]), port, **secured)
                    return
                except OSError as error:
                    errors.append(error)
    except OSError as error:  # or its time is over, which is one
        errors.append(error)
    # One that this machine has no way to (IPv6 often) says nothing about the process.
    telling = [error for error in errors if error.errno not in _NO_WAY]
    if telling and all(isinstance(error, ConnectionRefusedError) for error in telling):
        raise PeerUnavailable(f"nobody listens at {host}:{port}, broker {broker}", refused=True)
    if (distrust := _distrust(errors, f"{host}:{port}")) is not None:
        raise PeerUnavailable(distrust)
    why = "; ".join(str(error) or "no answer" for error in errors) or "its name has no address"
    raise PeerUnavailable(f"broker {broker} at {host}:{port} cannot be reached: {why}")


def _distrust(errors: Iterable[Exception], address: str) -> str | None:
    """The sentence for a certificate that one side does not accept."""
    for error in errors:
        if isinstance(error, ssl.SSLError):
            from ottla.client.access.tls import refusal  # without TLS nobody needs it

            if (known := refusal(error, address)) is not None:
                return str(known).rstrip(".")
    return None


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, place: _Place, client_id: bytes, call_later: CallLater) -> None:
        self.place = place
        self._client_id = client_id
        self._call_later = call_later
        self._transport: asyncio.Transport | None = None
        self._correlation_id = 0
        self._waiting: deque[tuple[int, int, asyncio.Future[memoryview], Handle]] = deque()
        self._small = bytearray(_BUFFER_BYTES)
        self._filled = 0
        # An answer that does not fit: where it goes, and how much of it is there.
        self._large: bytearray | None = None
        self._large_filled = 0
        self.is_closed = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next_login: Handle | None = None
        # While it is done again nothing else is asked: the session could end behind requests that wait for records.
        self.login: asyncio.Task[None] | None = None

    # --- asking

    async def ask(self, request: Message, broker: int, timeout_ms: int) -> Any:
        """In the newest version that we know."""
        api = APIS[codec.definition(type(request).__name__)["key"]]
        body = codec.encode(request, api.max_version)
        answer = await self.exchange(api.key, api.max_version, body, timeout_ms)
        try:
            return codec.decode(f"{api.name}Response", api.max_version, answer, 0)
        except MalformedMessage as error:
            raise PeerUnavailable(f"broker {broker} answered something else: {error}") from None

    def log_in_again(self, after_ms: float, begin: Callable[[], None]) -> None:
        self._next_login = self._call_later(after_ms, begin)

    def exchange(self, api_key: int, version: int, body: bytes | bytearray, timeout_ms: int) -> Awaitable[memoryview]:
        if self._transport is None or self.is_closed:
            raise PeerUnavailable(f"the connection to {self.place.host}:{self.place.port} is closed")
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        is_flexible = version >= flexible_from(f"{APIS[api_key].name}Request")
        size = _HEADER.size - _SIZE.size + len(self._client_id) + is_flexible + len(body)
        head = _HEADER.pack(size, api_key, version, correlation_id, len(self._client_id)) + self._client_id
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        overdue = self._call_later(timeout_ms, lambda: self.close("its answer is overdue"))
        self._waiting.append((correlation_id, 5 if is_flexible else 4, answer, overdue))
        self._transport.write(b"".join((head, b"\x00" if is_flexible else b"", body)))
        return answer

    def close(self, why: str) -> None:
        if self.is_closed:
            return
        if self._transport is not None:
            self._transport.abort()
        self._end(f"the connection to {self.place.host}:{self.place.port} was closed: {why}")

    def _end(self, why: str) -> None:
        self.is_closed = True
        if self._next_login is not None:
            self._next_login.cancel()
        if not self.ended.done():
            self.ended.set_result(None)
        while self._waiting:
            _, _, answer, overdue = self._waiting.popleft()
            overdue.cancel()
            if not answer.done():
                answer.set_exception(PeerUnavailable(why))

    # --- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        where = f"{self.place.host}:{self.place.port}"
        why = None if exc is None else _distrust([exc], where) or str(exc)
        self._end(f"the connection to {where} ended" + (f": {why}" if why else ""))

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return memoryview(self._large)[self._large_filled :]
        return memoryview(self._small)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._large is not None:
            self._large_filled += nbytes
            if self._large_filled == len(self._large):
                answer, self._large = self._large, None
                self._deliver(memoryview(answer))
            return
        self._filled += nbytes
        start, end = 0, self._filled
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(self._small, start)
            if not 4 <= size <= _ANSWER_BYTES_MAX:
                self.close("what came is not an answer")
                return
            if end - start - 4 < size:
                if size > _BUFFER_BYTES - 4:
                    self._large = bytearray(size)
                    self._large_filled = end - start - 4
                    self._large[: self._large_filled] = memoryview(self._small)[start + 4 : end]
                    start = end
                break
            self._deliver(memoryview(bytes(memoryview(self._small)[start + 4 : start + 4 + size])))
            start += 4 + size
        if start:
            self._small[: end - start] = self._small[start:end]
            self._filled = end - start

    def _deliver(self, frame: memoryview) -> None:
        if not self._waiting or int.from_bytes(frame[:4], "big") != self._waiting[0][0]:
            self.close("it answered another request")
            return
        _, start, answer, overdue = self._waiting.popleft()
        overdue.cancel()
        if not answer.done():
            answer.set_result(frame[start:])
