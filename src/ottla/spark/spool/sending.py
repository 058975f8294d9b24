"""The end of the spool that others than its server have: one connection for each attempt of a task, or none where the
attempt runs on the driver's machine and can write the file itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.spark.spool.files import EncodedBatch, SpooledBatch
from ottla.spark.spool.wire import (
    BEGIN,
    FRAME_BYTES_MAX,
    GREETING,
    LENGTH,
    NONCE_BYTES,
    Hello,
    SpoolRefused,
    Sum,
    frame_head,
    last_frame,
    proof,
    receive_exactly,
    receive_text,
    receive_verdict,
)

_HELLO_TIMEOUT_S = 120.0


class SpoolUnreachable(Retriable):
    """The driver's spool cannot be reached, or hung up."""


@dataclass(frozen=True)
class SpoolAddress:
    host: str
    port: int
    # Goes to executors with the task, over Spark's own connections.
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class SpoolTarget:
    """Where the attempts of one batch send what they encode."""

    address: SpoolAddress
    # Of the driver's machine; its last part is an id that no other batch has.
    folder: str

    @property
    def batch(self) -> str:
        return Path(self.folder).name


def begin(address: SpoolAddress) -> SpooledBatch:
    """A new batch of the driver's spool, for another process of the driver. Raises SpoolRefused, SpoolUnreachable."""
    with _connect(address) as connection:
        try:
            _introduce(connection, address, BEGIN)
            return SpooledBatch(Path(receive_text(connection)))
        except OSError as error:
            raise SpoolUnreachable(_hung_up(address, error)) from None


def deliver(target: SpoolTarget, task: int, attempt: int, batches: Iterable[EncodedBatch]) -> Sum:
    """All of (topic, partition, record count, batch), in order: into the file if this is the driver's machine, else to
    the driver. Raises as `send`."""
    if os.access(target.folder, os.W_OK | os.X_OK):
        return SpooledBatch(Path(target.folder)).write(Hello(target.batch, task, attempt), _checked(batches))
    return send(target, task, attempt, batches)


def send(target: SpoolTarget, task: int, attempt: int, batches: Iterable[EncodedBatch]) -> Sum:
    """All of (topic, partition, record count, batch), in order.

    Raises SpoolRefused when the driver cannot take them, SpoolUnreachable when it cannot be talked to, and whatever
    `batches` raises.
    """
    with _connect(target.address) as connection:
        try:
            _introduce(connection, target.address, Hello(target.batch, task, attempt))
        except OSError as error:
            raise SpoolUnreachable(_hung_up(target.address, error)) from None
        # The driver's disk may be slow, and many may write to it: what has died is noticed otherwise.
        connection.settimeout(None)
        frames = size = 0
        for topic, partition, records, data in _checked(batches):
            try:
                connection.sendall(frame_head(topic, partition, records, len(data)))
                connection.sendall(data)
            except OSError as error:
                _explain(connection, target.address, error)
            frames, size = frames + 1, size + len(data)
        try:
            connection.sendall(last_frame(Sum(frames, size)))
            receive_verdict(connection)
        except OSError as error:
            _explain(connection, target.address, error)
    return Sum(frames, size)


def _checked(batches: Iterable[EncodedBatch]) -> Iterator[EncodedBatch]:
    for batch in batches:
        topic, _, _, data = batch
        if len(data) > FRAME_BYTES_MAX:
            raise OttlaError(f"a record for '{topic}' takes {len(data):,} bytes, which no topic takes.")
        yield batch


def _connect(address: SpoolAddress) -> socket.socket:
    try:
        connection = socket.create_connection((address.host, address.port), timeout=_HELLO_TIMEOUT_S)
    except OSError as error:
        raise SpoolUnreachable(
            f"the driver's spool at {address.host}:{address.port} cannot be reached ({error}): open that port to "
            "executors, or choose another with spark.ottla.spool.port."
        ) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _introduce(connection: socket.socket, address: SpoolAddress, hello: Hello) -> None:
    greeting = receive_exactly(connection, len(GREETING) + NONCE_BYTES)
    if not greeting.startswith(GREETING):
        raise SpoolUnreachable(f"{address.host}:{address.port} is no spool of this version of Ottla.")
    text = hello.to_bytes()
    mac = proof(address.secret, greeting[len(GREETING) :], text)
    connection.sendall(mac + LENGTH.pack(len(text)) + text)
    receive_verdict(connection)


def _explain(connection: socket.socket, address: SpoolAddress, error: OSError) -> NoReturn:
    """A driver that cannot take more says why before it hangs up, while we are still sending."""
    try:
        receive_verdict(connection)
    except SpoolRefused:
        raise
    except OSError:
        pass
    raise SpoolUnreachable(_hung_up(address, error)) from None


def _hung_up(address: SpoolAddress, error: OSError) -> str:
    return f"the driver's spool at {address.host}:{address.port} hung up ({error})."
