"""What is on its way to a client: byte strings, and slices of files that leave by `sendfile`."""

from __future__ import annotations

import os
from collections import deque

from ottla.server.transport import Bytes, FileSlice, Transport

# File slices up to this size are read and sent together with the bytes around them: one system call, not three.
_INLINE_SLICE_BYTES = 32 * 1024
_PARTS_AT_ONCE = 64

Part = Bytes | FileSlice


class OutputQueue:
    __slots__ = ("_transport", "parts")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.parts: deque[Part] = deque()

    def drain(self) -> None:
        """Send what the client takes now. Raises OSError when the connection, or a file, is broken."""
        parts = self.parts
        try:
            while parts:
                first = parts[0]
                if isinstance(first, (bytes, bytearray, memoryview)):
                    if not self._send_bytes():
                        return
                elif not self._send_slice(first):
                    return
        except (BlockingIOError, InterruptedError):
            return

    def _send_bytes(self) -> bool:
        """Send the leading byte parts, with small file slices among them read in. False: the socket is full."""
        parts = self.parts
        gathered: list[Bytes] = []
        while parts and len(gathered) < _PARTS_AT_ONCE:
            part = parts[0]
            if not isinstance(part, (bytes, bytearray, memoryview)):
                if part.size > _INLINE_SLICE_BYTES:
                    break
                part = _read(part)
            gathered.append(part)
            parts.popleft()
        try:
            sent = self._transport.send_parts(gathered, is_more_to_come=bool(parts))
        except (BlockingIOError, InterruptedError):
            sent = 0
        for index, part in enumerate(gathered):
            if sent < len(part):
                left = [memoryview(part)[sent:], *gathered[index + 1 :]]
                parts.extendleft(reversed(left))
                return False
            sent -= len(part)
        return True

    def _send_slice(self, part: FileSlice) -> bool:
        sent = self._transport.send_file(part)
        if sent == 0:
            raise OSError("a log file ended before its slice")
        part.position += sent
        part.size -= sent
        if part.size == 0:
            self.parts.popleft()
            return True
        return False


def _read(part: FileSlice) -> bytes:
    data = os.pread(part.file, part.size, part.position)
    if len(data) != part.size:
        raise OSError("a log file ended before its slice")
    return data
