"""A server of frames on a thread: what scripted brokers have in common."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.protocol import codec
from ottla.protocol.framing import API_VERSIONS, flexible_from

# A frame to its answer; None hangs up.
Conversation = Callable[[bytes], bytes | None]
# What to answer to (name of the API, request, version).
Reply = Callable[[str, Any, int], codec.Message]


class FrameServer:
    def __init__(self, begin: Callable[[], Conversation]) -> None:
        """`begin` is called for every connection."""

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                answer_to = begin()
                while len(head := self.rfile.read(4)) == 4:
                    answer = answer_to(self.rfile.read(struct.unpack(">i", head)[0]))
                    if answer is None:
                        return
                    self.wfile.write(struct.pack(">i", len(answer)) + answer)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def answered(frame: bytes, names: Mapping[int, str], reply: Reply) -> bytes | None:
    """`names` are those of the APIs that are known, by key; what is not known is hung up on."""
    key, version, correlation_id, client_id_size = struct.unpack_from(">hhih", frame)
    name = names.get(key)
    if name is None:
        return None
    is_flexible = version >= flexible_from(f"{name}Request")
    request = codec.decode(f"{name}Request", version, frame, 10 + max(0, client_id_size) + is_flexible)
    tags = b"\x00" if is_flexible and key != API_VERSIONS else b""
    return struct.pack(">i", correlation_id) + tags + bytes(codec.encode(reply(name, request, version), version))
