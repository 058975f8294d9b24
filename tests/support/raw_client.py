"""A blocking client of one connection that sends any message in any version, for tests that look at every field."""

from __future__ import annotations

import socket
import struct
from typing import Any

from ottla.protocol import codec


class RawClient:
    def __init__(self, host: str, port: int, *, client_id: str = "raw", timeout_s: float = 30.0) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, request: codec.Message, version: int) -> Any:
        """The decoded answer to `request`, sent as `version`."""
        name = type(request).__name__.removesuffix("Request")
        definition = codec.definition(f"{name}Request")
        first, last = codec.version_range(definition["flexible"])
        flexible = first <= version <= last
        self._correlation_id += 1
        header = codec.message_class("RequestHeader")(
            request_api_key=definition["key"],
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        payload = codec.encode(header, 2 if flexible else 1) + codec.encode(request, version)
        self._socket.sendall(struct.pack(">i", len(payload)) + payload)
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        assert struct.unpack_from(">i", answer)[0] == self._correlation_id
        # A flexible response header has an (empty) tag section, except that of ApiVersions.
        start = 5 if flexible and name != "ApiVersions" else 4
        return codec.decode(f"{name}Response", version, memoryview(answer)[start:])

    def _read(self, size: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self._socket.recv(size - len(chunks))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            chunks += chunk
        return bytes(chunks)
