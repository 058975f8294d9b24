"""The smallest Kafka client there is: one blocking socket, requests built field by field, answers decoded.

A test that wants to say something no proper client would say uses this: `call` sends a message of our codec at any
version, `send_frame` any bytes at all. What it means to produce and to fetch is spelled out once, below.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol.framing import API_VERSIONS, flexible_from
from ottla.protocol.messages import FetchRequest, ProduceRequest
from ottla.records.record import Record, build_batch, iterate_batches, read_records

NO_ID = bytes(16)


class ConnectionClosed(ConnectionError):
    """The broker hung up."""


def request_frame(
    message: codec.Message, version: int, *, correlation_id: int = 1, client_id: str | None = "raw", api_key: int = -1
) -> bytes:
    """A whole request without its size."""
    name = type(message).__name__
    key = api_key if api_key >= 0 else codec.definition(name)["key"]
    header = struct.pack(">hhi", key, version, correlation_id)
    raw_id = b"" if client_id is None else client_id.encode()
    header += struct.pack(">h", -1 if client_id is None else len(raw_id)) + raw_id
    if version >= flexible_from(name):
        header += b"\x00"
    return header + bytes(codec.encode(message, version))


class RawClient:
    def __init__(self, host: str, port: int, *, client_id: str = "raw", timeout_s: float = 30.0) -> None:
        self.sock = socket.create_connection((host, port), timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0
        self.last_correlation_id = 0

    @classmethod
    def to(cls, bootstrap: str, timeout_s: float = 30.0) -> Self:
        host, _, port = bootstrap.rpartition(":")
        return cls(host, int(port), timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    # --- bytes

    def send_frame(self, frame: bytes) -> None:
        self.sock.sendall(struct.pack(">i", len(frame)) + frame)

    def send(self, message: codec.Message, version: int) -> int:
        """Send without waiting; gives the correlation id."""
        self._correlation_id += 1
        frame = request_frame(message, version, correlation_id=self._correlation_id, client_id=self._client_id)
        self.send_frame(frame)
        return self._correlation_id

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.sock.recv(min(1 << 20, size - len(received)))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionClosed(f"closed after {len(received)} of {size} bytes")
            received += piece
        return bytes(received)

    def receive(self, request_name: str, version: int) -> Any:
        """The next answer, which must be to this kind of request, read to its last byte."""
        frame = self.receive_frame()
        self.last_correlation_id = int.from_bytes(frame[:4], "big")
        response = request_name.removesuffix("Request") + "Response"
        flexible = version >= flexible_from(request_name) and codec.definition(request_name)["key"] != API_VERSIONS
        if flexible:
            assert frame[4] == 0, "no tags are expected in a response header"
        message, end = codec.decode_from(response, version, frame, 5 if flexible else 4)
        assert end == len(frame), f"{len(frame) - end} bytes left over in {response} v{version}"
        return message

    def call(self, message: codec.Message, version: int) -> Any:
        """The decoded answer to `message`, sent as `version`."""
        self.send(message, version)
        answer = self.receive(type(message).__name__, version)
        assert self.last_correlation_id == self._correlation_id
        return answer

    def is_closed_by_peer(self, timeout_s: float = 10.0) -> bool:
        """Whether the broker hangs up within the time without saying anything more."""
        self.sock.settimeout(timeout_s)
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    # --- the two that carry records

    def produce(
        self,
        topic: str | bytes,
        records: bytes | bytearray | None,
        *,
        partition: int = 0,
        version: int = 12,
        acks: int = -1,
    ) -> Any:
        """One partition's line of the answer. `topic` is a name, or an id from version 13 on."""
        answer = self.call(produce_request(topic, records, partition=partition, acks=acks), version)
        ((line,),) = [topic.partition_responses for topic in answer.responses]
        return line

    def fetch(
        self, topic: str | bytes, offset: int = 0, *, partition: int = 0, version: int = 12, **fields: Any
    ) -> Any:
        """One partition's line of the answer."""
        answer = self.call(fetch_request([(topic, partition, offset)], **fields), version)
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        ((line,),) = [topic.partitions for topic in answer.responses]
        return line

    def read_all(self, topic: str, *, partition: int = 0, start: int = 0, isolation_level: int = 0) -> list[Record]:
        """Everything up to the high watermark, as a consumer would read it."""
        found: list[Record] = []
        offset = start
        while True:
            line = self.fetch(topic, offset, partition=partition, max_wait_ms=0, isolation_level=isolation_level)
            assert line.error_code == 0, ErrorCode(line.error_code).name
            before = offset
            for position, header in iterate_batches(line.records or b""):
                found += [one for one in read_records(line.records, position) if one.offset >= offset]
                offset = header.last_offset + 1
            if offset == before:
                return found


def produce_request(
    topic: str | bytes, records: bytes | bytearray | None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else NO_ID,
                partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=records)],
            )
        ],
    )


def fetch_request(
    wanted: Sequence[tuple[str | bytes, int, int]],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 10 << 20,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
    forgotten: Sequence[tuple[str | bytes, int]] = (),
    replica_id: int = -1,
) -> FetchRequest:
    """A fetch of (topic, partition, offset) triples; topics are names, or ids for version 13 and later."""
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else NO_ID,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition,
                        current_leader_epoch=leader_epoch,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                    )
                ],
            )
            for topic, partition, offset in wanted
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else NO_ID,
                partitions=[partition],
            )
            for topic, partition in forgotten
        ],
    )


def batch_of(*values: bytes | None, timestamp: int | None = None, key: bytes | None = None, **fields: Any) -> bytearray:
    """One batch of these values, as a producer would send it."""
    now = int(time.time() * 1000) if timestamp is None else timestamp
    return build_batch([Record(number, now, key, value) for number, value in enumerate(values)], **fields)
