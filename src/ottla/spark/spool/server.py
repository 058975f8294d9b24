"""The driver's end of the spool: takes what attempts of tasks send, each in a thread of its own, into their files.

    with SpoolServer(host="10.0.0.5", bind="0.0.0.0", folder="/var/tmp") as spool:
        batch = spool.begin()
        ... a Spark job whose tasks `send` to spool.target(batch) and return what they sent ...
        batch.check(winners)
        publish(batch.frames(winners))
        spool.end(batch)

Memory is one buffer for each connection, whatever the batch. A connection has to prove that it knows the secret before
anything it says is looked at.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import socketserver
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from ottla.common.errors import OttlaError
from ottla.spark.spool.files import SpooledBatch, SpoolFolder
from ottla.spark.spool.sending import SpoolAddress, SpoolTarget
from ottla.spark.spool.wire import (
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
    send_verdict,
)

_CHUNK_BYTES = 256 * 1024
_HELLO_TIMEOUT_S = 30.0
# A task may compute for long between two batches.
_SILENCE_S_MAX = 24 * 3600.0
# What is still read of a sender that was told to stop, so that it gets to read why.
_DRAIN_BYTES_MAX = 64 * 1024 * 1024


class SpoolServer:
    def __init__(self, *, host: str, folder: str | Path, bind: str = "", port: int = 0) -> None:
        """`host` is what executors call this machine. Raises OttlaError when the port or the folder cannot be used."""
        self._folder = SpoolFolder(folder)
        self._batches: dict[str, SpooledBatch] = {}
        self._guard = threading.Lock()
        try:
            self._listener = _Listener((bind or host, port), self)
        except OSError as error:
            self._folder.close()
            raise OttlaError(
                f"the driver's spool cannot listen on {bind or host}:{port}: {error.strerror or error}; "
                "set spark.ottla.spool.port to a free port."
            ) from None
        self.address = SpoolAddress(host, self._listener.server_address[1], secrets.token_bytes(32))
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        # Where a fork of this process must not clean up.
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> SpooledBatch:
        batch = SpooledBatch(self._folder.path)
        with self._guard:
            self._batches[batch.id] = batch
        return batch

    def target(self, batch: SpooledBatch) -> SpoolTarget:
        return SpoolTarget(self.address, batch.id)

    def end(self, batch: SpooledBatch) -> None:
        """Forget it; attempts that still send are refused."""
        with self._guard:
            self._batches.pop(batch.id, None)
        batch.close()

    def find(self, batch_id: str) -> SpooledBatch | None:
        with self._guard:
            return self._batches.get(batch_id)

    def close(self) -> None:
        """As often as you like."""
        if os.getpid() != self._owner or not self._thread.is_alive():
            return
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()
        self._folder.close()


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], spool: SpoolServer) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Receiver)
        self.spool = spool

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever hung up will be missed by Spark, not here."""


class _Receiver(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_HELLO_TIMEOUT_S)
        nonce = secrets.token_bytes(NONCE_BYTES)
        connection.sendall(GREETING + nonce)
        with cast(BinaryIO, connection.makefile("rb", buffering=_CHUNK_BYTES)) as reader:
            try:
                self._take(connection, reader, nonce)
            except SpoolRefused as refused:
                send_verdict(connection, str(refused))
                connection.shutdown(socket.SHUT_WR)
                _drain(reader)

    def _take(self, connection: socket.socket, reader: BinaryIO, nonce: bytes) -> None:
        spool = cast(_Listener, self.server).spool
        hello = _read_hello(reader, spool.address.secret, nonce)
        batch = spool.find(hello.batch)
        if batch is None:
            raise SpoolRefused("this batch is over")
        file = batch.create(hello)
        try:
            connection.settimeout(_SILENCE_S_MAX)
            send_verdict(connection, "")
            total = _copy(reader, file, batch)
        finally:
            # What counts was flushed. After a failure a buffer may be left that the disk has no room for.
            with suppress(OSError):
                file.close()
        if spool.find(hello.batch) is None:
            raise SpoolRefused("this batch is over")
        batch.note(hello, total)
        send_verdict(connection, "")


def _read_hello(reader: BinaryIO, secret: bytes, nonce: bytes) -> Hello:
    mac = _exactly(reader, PROOF_BYTES)
    (length,) = LENGTH.unpack(_exactly(reader, LENGTH.size))
    if length > HELLO_BYTES_MAX:
        raise ConnectionResetError("this is no hello")
    text = _exactly(reader, length)
    if not hmac.compare_digest(mac, proof(secret, nonce, text)):
        raise ConnectionResetError("somebody without the secret")
    return Hello.from_bytes(text)


def _copy(reader: BinaryIO, file: BinaryIO, batch: SpooledBatch) -> Sum:
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
        name = _exactly(reader, name_length)
        _write(file, batch, header + name)
        left = length
        while left:
            count = reader.readinto(buffer[: min(left, _CHUNK_BYTES)])  # type: ignore[attr-defined]
            if not count:
                raise ConnectionResetError("the task hung up")
            _write(file, batch, buffer[:count])
            left -= count
        frames, size = frames + 1, size + length
    try:
        file.flush()
    except OSError as error:
        raise batch.failed(error) from None
    if Sum(*SUM.unpack(_exactly(reader, SUM.size))) != Sum(frames, size):
        raise ConnectionResetError("the task has sent something else than it says")
    return Sum(frames, size)


def _write(file: BinaryIO, batch: SpooledBatch, data: bytes | memoryview) -> None:
    try:
        file.write(data)
    except OSError as error:
        raise batch.failed(error) from None


def _exactly(reader: BinaryIO, count: int) -> bytes:
    data = reader.read(count)
    if len(data) < count:
        raise ConnectionResetError("the task hung up")
    return data


def _drain(reader: BinaryIO) -> None:
    left = _DRAIN_BYTES_MAX
    while left > 0 and (data := reader.read(_CHUNK_BYTES)):
        left -= len(data)
