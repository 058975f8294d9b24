"""The driver's end of the spool: takes what attempts of tasks send, each in a thread of its own, into their files.

    with SpoolServer(host="10.0.0.5", bind="0.0.0.0", folder="/var/tmp") as spool:
        batch = spool.begin()
        ... a Spark job whose tasks `send` to spool.target(batch) and return what they sent ...
        batch.check(winners)
        publish(batch.frames(winners))
        batch.close()

Memory is a few small buffers for each connection, whatever the batch: where the disk is slow, the sockets fill up and
the tasks wait. A connection has to prove that it knows the secret before anything it says is looked at.
"""

from __future__ import annotations

import hmac
import io
import os
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from ottla.common.errors import OttlaError
from ottla.spark.spool.files import SpooledBatch, SpoolFolder, close_quietly
from ottla.spark.spool.sending import SpoolAddress, SpoolTarget
from ottla.spark.spool.wire import (
    BEGIN,
    FRAME,
    FRAME_BYTES_MAX,
    GREETING,
    HELLO_BYTES_MAX,
    LAST,
    LENGTH,
    NONCE_BYTES,
    PROOF_BYTES,
    SUM,
    Hello,
    SpoolRefused,
    Sum,
    proof,
    send_text,
    send_verdict,
)

_CHUNK_BYTES = 64 * 1024
_HELLO_TIMEOUT_S = 30.0
# How many may be about to say who they are; of more, the first has to go. It takes whoever belongs here milliseconds.
_STRANGERS_MAX = 512
# A task may compute for long between two batches: so often it is looked whether anybody still waits for it.
_LOOK_S = 10.0
# What is still read of a sender that was told to stop, so that it gets to read why.
_DRAIN_BYTES_MAX = 64 * 1024 * 1024


class SpoolServer:
    def __init__(self, *, host: str, folder: str | Path, bind: str = "", port: int = 0) -> None:
        """`host` is what executors call this machine. Raises OttlaError when the port cannot be used."""
        self._parent = folder
        self._folder: SpoolFolder | None = None
        self._guard = threading.Lock()
        try:
            self._listener = _Listener(bind or host, port, self)
        except OSError as error:
            raise OttlaError(
                f"the driver's spool cannot listen on {bind or host}:{port}: {error.strerror or error}; "
                "set spark.ottla.spool.port to a free port."
            ) from None
        port = self._listener.server_address[1]
        self.address = SpoolAddress(_without_brackets(host), port, secrets.token_bytes(32))
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        # Where a fork of this process must not clean up.
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return os.getpid() == self._owner and self._thread.is_alive()

    def open_folder(self) -> SpoolFolder:
        """Not before it is needed, and anew if somebody removed it. Raises OttlaError when there can be none."""
        with self._guard:
            if self._folder is not None and not self._folder.path.is_dir():
                self._folder.close()
                self._folder = None
            if self._folder is None:
                self._folder = SpoolFolder(self._parent)
            return self._folder

    def begin(self) -> SpooledBatch:
        """Raises OttlaError when there is no place for it."""
        try:
            return self.open_folder().begin()
        except OSError as error:
            raise OttlaError(
                f"the driver cannot keep a batch in {self._parent}: {error.strerror}; make room there, or set "
                "spark.ottla.spool.dir to a folder on a larger disk."
            ) from None

    def target(self, batch: SpooledBatch) -> SpoolTarget:
        return SpoolTarget(self.address, str(batch.path))

    def find(self, batch_id: str) -> SpooledBatch | None:
        return None if self._folder is None else self._folder.find(batch_id)

    def close(self) -> None:
        """As often as you like."""
        if not self.is_running:
            return
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()
        if self._folder is not None:
            self._folder.close()


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: str, port: int, spool: SpoolServer) -> None:
        family, _, _, _, address = socket.getaddrinfo(_without_brackets(host), port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        super().__init__(cast(tuple[str, int], address), _Receiver)
        self.spool = spool
        self._strangers: dict[socket.socket, None] = {}
        self._guard = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(0.05)  # no descriptors are left: the next question would come at once
            raise

    @contextmanager
    def asking(self, stranger: socket.socket) -> Iterator[None]:
        """While one is asked who it is: a flood of those who never say it takes no more threads than some."""
        with self._guard:
            self._strangers[stranger] = None
            if len(self._strangers) > _STRANGERS_MAX:
                first = next(iter(self._strangers))
                del self._strangers[first]
                with suppress(OSError):
                    first.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            with self._guard:
                self._strangers.pop(stranger, None)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever hung up will be missed by Spark, not here."""


class _Receiver(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        connection: socket.socket = self.request
        listener = cast(_Listener, self.server)
        stream = _Stream(connection)
        with cast(BinaryIO, io.BufferedReader(stream, _CHUNK_BYTES)) as reader:
            try:
                with listener.asking(connection):
                    hello = _read_hello(connection, reader, listener.spool.address.secret)
                if hello == BEGIN:
                    _begin(connection, listener.spool)
                else:
                    _take(connection, stream, reader, listener.spool, hello)
            except SpoolRefused as refused:
                send_verdict(connection, str(refused))
                connection.shutdown(socket.SHUT_WR)
                _drain(reader)


class _Stream(io.RawIOBase):
    """What comes from a connection, for as long as somebody waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(_HELLO_TIMEOUT_S)
        self._is_awaited: Callable[[], bool] = lambda: False

    def wait_while(self, is_awaited: Callable[[], bool]) -> None:
        self._connection.settimeout(_LOOK_S)
        self._is_awaited = is_awaited

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while True:
            try:
                return self._connection.recv_into(room)
            except TimeoutError:
                if not self._is_awaited():
                    raise


def _begin(connection: socket.socket, spool: SpoolServer) -> None:
    try:
        batch = spool.begin()
    except OttlaError as error:
        raise SpoolRefused(str(error)) from None
    send_verdict(connection, "")
    send_text(connection, str(batch.path))


def _take(connection: socket.socket, stream: _Stream, reader: BinaryIO, spool: SpoolServer, hello: Hello) -> None:
    batch = spool.find(hello.batch)
    if batch is None:
        raise SpoolRefused("this batch is over")
    file = batch.create(hello)
    try:
        stream.wait_while(lambda: batch.is_open)
        send_verdict(connection, "")
        _copy(reader, file, batch)
        batch.keep(hello)
    except BaseException:
        batch.discard(hello)
        raise
    finally:
        close_quietly(file)
    send_verdict(connection, "")


def _read_hello(connection: socket.socket, reader: BinaryIO, secret: bytes) -> Hello:
    nonce = secrets.token_bytes(NONCE_BYTES)
    connection.sendall(GREETING + nonce)
    mac = _exactly(reader, PROOF_BYTES)
    (length,) = LENGTH.unpack(_exactly(reader, LENGTH.size))
    if length > HELLO_BYTES_MAX:
        raise ConnectionResetError("this is no hello")
    text = _exactly(reader, length)
    if not hmac.compare_digest(mac, proof(secret, nonce, text)):
        raise ConnectionResetError("somebody without the secret")
    return Hello.from_bytes(text)


def _copy(reader: BinaryIO, file: BinaryIO, batch: SpooledBatch) -> None:
    """Frames as they come. Raises SpoolRefused when the disk takes no more, ConnectionResetError at a sudden end."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    frames = size = 0
    while True:
        header = _exactly(reader, FRAME.size)
        length, name_length, _, _ = FRAME.unpack(header)
        if length == LAST:
            break
        if length > FRAME_BYTES_MAX:
            raise ConnectionResetError("this is no frame")
        batch.append(file, header + _exactly(reader, name_length))
        left = length
        while left:
            count = reader.readinto(buffer[: min(left, _CHUNK_BYTES)])  # type: ignore[attr-defined]
            if not count:
                raise ConnectionResetError("the task hung up")
            batch.append(file, buffer[:count])
            left -= count
        frames, size = frames + 1, size + length
    total = _exactly(reader, SUM.size)
    if Sum(*SUM.unpack(total)) != Sum(frames, size):
        raise ConnectionResetError("the task has sent something else than it says")
    batch.append(file, header + total)
    batch.flush(file)


def _exactly(reader: BinaryIO, count: int) -> bytes:
    data = reader.read(count)
    if len(data) < count:
        raise ConnectionResetError("the task hung up")
    return data


def _drain(reader: BinaryIO) -> None:
    left = _DRAIN_BYTES_MAX
    while left > 0 and (data := reader.read(_CHUNK_BYTES)):
        left -= len(data)


def _without_brackets(host: str) -> str:
    """Spark writes an IPv6 address with them, sockets do without."""
    return host.removeprefix("[").removesuffix("]")
