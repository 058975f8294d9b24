"""What a task and the driver's spool say to each other.

    driver -> task     greeting, a nonce
    task   -> driver   proof of the secret, and who it is: Hello
    driver -> task     a verdict: empty if it may send, else the sentence that says why not
    task   -> driver   frames, each one record batch, and last the sum of them: Sum
    driver -> task     a verdict: empty once all of it is in the file

What comes after the first verdict is what the file has, byte for byte. Another process of the driver may ask for a new
batch in the same way, and is told its folder after the verdict.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import struct
from dataclasses import asdict, dataclass
from typing import NamedTuple

GREETING = b"ottla-spool-1\n"
NONCE_BYTES = 16
PROOF_BYTES = 32
HELLO_BYTES_MAX = 4096
# Bytes of the batch, bytes of the topic's name, partition, number of records.
FRAME = struct.Struct(">IHii")
FRAME_BYTES_MAX = 0x7FFF_FFFF
# Stands where a frame has the bytes of its batch: the sum follows.
LAST = 0xFFFF_FFFF
SUM = struct.Struct(">QQ")
LENGTH = struct.Struct(">I")


class SpoolRefused(Exception):
    """The other side cannot take what it is sent; the sentence says why."""


@dataclass(frozen=True)
class Hello:
    """Who sends: one attempt of one task, for one spooled batch."""

    batch: str
    task: int
    attempt: int

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Hello:
        """Raises ValueError."""
        try:
            found = json.loads(data)
            return Hello(str(found["batch"]), int(found["task"]), int(found["attempt"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no hello: {error}") from None


# Who asks for a new batch.
BEGIN = Hello("", -1, -1)


class Sum(NamedTuple):
    """What an attempt has sent."""

    frames: int
    bytes: int


def frame_head(topic: str, partition: int, records: int, size: int) -> bytes:
    """What comes before a batch, on the wire and in the file."""
    name = topic.encode()
    return FRAME.pack(size, len(name), partition, records) + name


def last_frame(total: Sum) -> bytes:
    return FRAME.pack(LAST, 0, 0, 0) + SUM.pack(*total)


def proof(secret: bytes, nonce: bytes, hello: bytes) -> bytes:
    return hmac.digest(secret, nonce + hello, hashlib.sha256)


def send_verdict(connection: socket.socket, sentence: str) -> None:
    send_text(connection, sentence)


def receive_verdict(connection: socket.socket) -> None:
    """Raises SpoolRefused with the sentence of the other side."""
    sentence = receive_text(connection)
    if sentence:
        raise SpoolRefused(sentence)


def send_text(connection: socket.socket, text: str) -> None:
    data = text.encode()
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive_text(connection: socket.socket) -> str:
    (length,) = LENGTH.unpack(receive_exactly(connection, LENGTH.size))
    return receive_exactly(connection, min(length, 64 * 1024)).decode(errors="replace")


def receive_exactly(connection: socket.socket, count: int) -> bytes:
    """Raises ConnectionResetError when the other side has hung up."""
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionResetError("the other side of the spool hung up")
        data += more
    return bytes(data)
