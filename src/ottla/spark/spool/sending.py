"""The end of the spool that runs on executors: one connection for each attempt of a task."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.common.failures import Retriable
from ottla.spark.spool.wire import (
    FRAME,
    GREETING,
    LAST,
    LENGTH,
    NONCE_BYTES,
    SUM,
    Hello,
    SpoolRefused,
    Sum,
    proof,
    receive_exactly,
    receive_verdict,
)

_TIMEOUT_S = 120.0

EncodedBatch = tuple[str, int, int, bytes]


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
    batch: str


def send(target: SpoolTarget, task: int, attempt: int, batches: Iterable[EncodedBatch]) -> Sum:
    """All of (topic, partition, record count, batch), in order.

    Raises SpoolRefused when the driver cannot take them, SpoolUnreachable when it cannot be talked to, and whatever
    `batches` raises.
    """
    with _connect(target) as connection:
        try:
            _introduce(connection, target, Hello(target.batch, task, attempt))
        except OSError as error:
            raise SpoolUnreachable(_hung_up(target, error)) from None
        frames = size = 0
        for topic, partition, records, data in batches:
            name = topic.encode()
            try:
                connection.sendall(FRAME.pack(len(data), len(name), partition, records) + name)
                connection.sendall(data)
            except OSError as error:
                _explain(connection, target, error)
            frames, size = frames + 1, size + len(data)
        try:
            connection.sendall(FRAME.pack(LAST, 0, 0, 0) + SUM.pack(frames, size))
            receive_verdict(connection)
        except OSError as error:
            _explain(connection, target, error)
    return Sum(frames, size)


def _connect(target: SpoolTarget) -> socket.socket:
    address = target.address
    try:
        connection = socket.create_connection((address.host, address.port), timeout=_TIMEOUT_S)
    except OSError as error:
        raise SpoolUnreachable(
            f"an executor cannot reach the driver's spool at {address.host}:{address.port} ({error}): "
            "open that port, or choose another with spark.ottla.spool.port"
        ) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _introduce(connection: socket.socket, target: SpoolTarget, hello: Hello) -> None:
    greeting = receive_exactly(connection, len(GREETING) + NONCE_BYTES)
    if not greeting.startswith(GREETING):
        raise SpoolUnreachable(f"{target.address.host}:{target.address.port} is no spool of this version of Ottla")
    text = hello.to_bytes()
    mac = proof(target.address.secret, greeting[len(GREETING) :], text)
    connection.sendall(mac + LENGTH.pack(len(text)) + text)
    receive_verdict(connection)


def _explain(connection: socket.socket, target: SpoolTarget, error: OSError) -> None:
    """A driver that cannot take more says why before it hangs up, while we are still sending."""
    try:
        receive_verdict(connection)
    except SpoolRefused:
        raise
    except OSError:
        pass
    raise SpoolUnreachable(_hung_up(target, error)) from None


def _hung_up(target: SpoolTarget, error: OSError) -> str:
    return f"the driver's spool at {target.address.host}:{target.address.port} hung up ({error})"
