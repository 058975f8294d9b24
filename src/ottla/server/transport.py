"""How bytes get to a client and from it: a plain non-blocking socket (`tls_transport.py` has the other one).

A transport raises BlockingIOError when there is nothing to receive or no room to send, and OSError when the connection
is broken.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol

_SENDFILE_CHUNK_BYTES = 8 * 1024 * 1024

Bytes = bytes | bytearray | memoryview


class FileSlice(Protocol):
    """A range of a file that stays readable while the object lives."""

    file: int
    position: int
    size: int


class Transport(Protocol):
    """What a connection asks of it. One that holds something back must say so: epoll does not know of it."""

    fd: int

    @property
    def is_holding(self) -> bool: ...

    @property
    def wants_to_write(self) -> bool: ...

    def receive_into(self, buffer: memoryview, /) -> int: ...

    def receive(self, size: int, /) -> bytes: ...

    def send(self, data: Bytes, /) -> int: ...

    def send_parts(self, parts: Sequence[Bytes], *, is_more_to_come: bool) -> int: ...

    def send_file(self, part: FileSlice) -> int: ...

    def close(self) -> None: ...


class PlainTransport:
    __slots__ = ("_sock", "close", "fd", "receive", "receive_into", "send")
    # Never.
    is_holding = wants_to_write = False

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.fd = sock.fileno()
        # The socket's own, so that nothing lies between where every microsecond counts.
        self.receive_into = sock.recv_into
        self.receive = sock.recv
        self.send = sock.send
        self.close = sock.close

    def send_parts(self, parts: Sequence[Bytes], *, is_more_to_come: bool) -> int:
        return self._sock.sendmsg(parts, (), socket.MSG_MORE if is_more_to_come else 0)

    def send_file(self, part: FileSlice) -> int:
        """A piece of it, which never passes through Python."""
        return os.sendfile(self.fd, part.file, part.position, min(part.size, _SENDFILE_CHUNK_BYTES))
