"""One blocking connection to one broker that speaks any request of our codec, in the newest version both sides know.

For tools that ask what client libraries do not offer, and for Spark's executors, which have no client library. `call`
asks and waits; `send` and `receive` leave time between the two, in the order of the requests. TLS and SASL are settled
before the constructor returns; what they take is loaded only where they are used.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from ottla import __version__
from ottla.client.access.security import PLAIN_TEXT, AccessRefused, Security
from ottla.client.answer_memory import AnswerMemory
from ottla.client.batch_in_file import BatchInFile, FileCut
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol import codec
from ottla.protocol.framing import API_VERSIONS, flexible_from
from ottla.protocol.messages import ApiVersionsRequest

# ApiVersions from this version on names the software that asks; older brokers answer it with their v0.
_API_VERSIONS_VERSION = 3
# The size comes first, and is known last.
_HEADER = struct.Struct(">ihhih")
_SIZE = struct.Struct(">i")
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
# How TLS tells that it did not understand: an alert, which would be an answer of 352 MB.
_TLS_ALERT = b"\x15\x03"
_CORK: int | None = getattr(socket, "TCP_CORK", None)
# ApiVersions, once more in version 0, and the first request that only those are answered who were let in.
_FIRST_REQUESTS = 3


class Sent(NamedTuple):
    """A request whose answer has not been read yet."""

    answer_name: str
    key: int
    version: int
    correlation_id: int
    is_flexible: bool


class _Frame(bytearray):
    """A request, without those bodies of batches that are sent from their files."""

    def __init__(self, head: bytes) -> None:
        super().__init__(head)
        # Each with the place in the frame where it belongs.
        self.bodies: list[tuple[int, BatchInFile]] = []

    def __iadd__(self, part: Any) -> Self:  # type: ignore[misc]
        if not isinstance(part, BatchInFile):
            return super().__iadd__(part)
        super().__iadd__(part.head)
        self.bodies.append((len(self), part))
        return self

    @property
    def size(self) -> int:
        return len(self) + sum(batch.body_size for _, batch in self.bodies)


class BrokerConnection:
    def __init__(
        self, host: str, port: int, *, timeout_s: float, client_id: str = "ottla", security: Security = PLAIN_TEXT
    ) -> None:
        """Raises OSError; AccessRefused when one side does not trust the other; OttlaError when whoever answers is not
        a Kafka broker."""
        self._client_id = client_id.encode()
        self._host, self._port, self._security = host, port, security
        self.address = f"{host}:{port}"
        self._correlation_id = 0
        self._memory = AnswerMemory()
        self._socket = socket.create_connection((host, port), timeout_s)
        self._socket.settimeout(timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ranges: dict[int, tuple[int, int]] = {}
        # Cluster-wide levels such as `transaction.version`; empty where the broker is too old to tell.
        self.finalized_features: dict[str, int] = {}
        try:
            self._enter()
        except OSError as error:
            self.close()
            from ottla.client.access.diagnosis import explained

            raise explained(error, host, port, security) from None
        except BaseException:
            self.close()
            raise

    def _enter(self) -> None:
        if self._security.tls is not None:
            from ottla.client.access.tls import secured

            self._socket = secured(self._socket, self._security.tls, self._host)
        self._learn_versions()
        if self._security.sasl is not None:
            from ottla.client.access.sasl import authenticate

            authenticate(self, self._security.sasl)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def call(self, request: codec.Message, max_version: int | None = None) -> Any:
        """The answer to `request`. Raises OttlaError if the broker does not know it, OSError if it is gone."""
        return self._exchange(request, self._version_for(type(request).__name__, max_version))

    def version_of(self, request_name: str) -> int:
        """The version that `call` would use."""
        return self._version_for(request_name, None)

    def knows(self, request_name: str) -> bool:
        return codec.definition(request_name)["key"] in self._ranges

    def _version_for(self, name: str, max_version: int | None) -> int:
        definition = codec.definition(name)
        low, high = codec.version_range(definition["versions"])
        theirs = self._ranges.get(definition["key"])
        if theirs is not None:
            low, high = max(low, theirs[0]), min(high, theirs[1])
        if max_version is not None:
            high = min(high, max_version)
        if theirs is None or low > high:
            raise OttlaError(f"the broker at {self.address} is too old for that: it has no {name}.")
        return high

    def _learn_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        answer = self._exchange(request, _API_VERSIONS_VERSION)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = self._exchange(request, 0)
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.finalized_features = {feature.name: feature.max_version_level for feature in answer.finalized_features}

    def send(self, request: codec.Message, max_version: int | None = None) -> Sent:
        """Ask without waiting; `receive` gives the answers in the order in which they were asked for."""
        return self._send(request, self._version_for(type(request).__name__, max_version))

    def receive(self, sent: Sent) -> Any:
        head = self._receive(_SIZE.size)
        (size,) = _SIZE.unpack(head)
        if not 4 <= size <= _ANSWER_BYTES_MAX:
            raise self._not_an_answer(bytes(head))
        answer = self._receive(size)
        if int.from_bytes(answer[:4], "big") != sent.correlation_id:
            raise ConnectionResetError(f"{self.address} answered another request")
        version, is_versions = sent.version, sent.key == API_VERSIONS
        start = 5 if sent.is_flexible and not is_versions else 4
        if is_versions and int.from_bytes(answer[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION:
            version = 0  # the one answer that does not come in the version asked
        return codec.decode(sent.answer_name, version, answer, start)

    def _exchange(self, request: codec.Message, version: int) -> Any:
        return self.receive(self._send(request, version))

    def _send(self, request: codec.Message, version: int) -> Sent:
        name = type(request).__name__
        key = codec.definition(name)["key"]
        self._correlation_id += 1
        head = _HEADER.pack(0, key, version, self._correlation_id, len(self._client_id)) + self._client_id
        flexible = version >= flexible_from(name)
        frame = _Frame(head + b"\x00" if flexible else head)
        codec.encode_into(frame, request, version)
        _SIZE.pack_into(frame, 0, frame.size - _SIZE.size)
        self._send_frame(frame)
        return Sent(name.removesuffix("Request") + "Response", key, version, self._correlation_id, flexible)

    def _send_frame(self, frame: _Frame) -> None:
        if frame.bodies:
            self._send_with_bodies(frame)
        else:
            self._socket.sendall(frame)

    def _send_with_bodies(self, frame: _Frame) -> None:
        view, at = memoryview(frame), 0
        with self._in_full_segments():
            for end, batch in frame.bodies:
                self._socket.sendall(view[at:end])
                if self._security.tls is not None:
                    self._socket.sendall(batch.read_body())
                elif self._socket.sendfile(batch.file, batch.body_position, batch.body_size) != batch.body_size:
                    raise FileCut(batch.file)
                at = end
            if at < len(view):
                self._socket.sendall(view[at:])

    @contextmanager
    def _in_full_segments(self) -> Iterator[None]:
        """What is written piece by piece would else wake the broker for each header."""
        if _CORK is None:
            yield
            return
        self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, 1)
        yield  # after a failure nobody uses the connection again
        self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, 0)

    def _receive(self, size: int) -> memoryview:
        received = self._memory.take(size)
        at = 0
        while at < size:
            count = self._socket.recv_into(received[at:])
            if not count:
                raise self._hung_up()
            at += count
        return received

    def _not_an_answer(self, head: bytes) -> OttlaError:
        if head.startswith(_TLS_ALERT):
            return AccessRefused(
                f"the broker at {self.address} speaks TLS there: set security.protocol to SSL or SASL_SSL."
            )
        return OttlaError(f"{self.address} does not answer as a Kafka broker would: check the port.")

    def _hung_up(self) -> OSError | AccessRefused:
        if self._ranges and self._correlation_id <= _FIRST_REQUESTS and self._security.sasl is None:
            from ottla.client.access.diagnosis import wants_sasl

            if (refusal := wants_sasl(self._host, self._port, self._security)) is not None:
                return refusal
        return ConnectionResetError(f"{self.address} hung up")
