"""Just enough of a Kafka client to prepare a measurement: one blocking connection, one request at a time.

Messages come from Ottla's own codec; they go to Apache Kafka and to Ottla alike, so a mistake would show.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.protocol import codec
from ottla.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
)

TOPIC_RESOURCE, SET = 2, 0
LATEST = -1


class WireError(RuntimeError):
    """The broker answered with an error code where a benchmark needs success."""


def frame(api_key: int, version: int, message: codec.Message, *, correlation_id: int = 0) -> bytes:
    """A request with flexible header, as it goes over the wire, length first."""
    head = struct.pack(">hhih", api_key, version, correlation_id, 5) + b"bench" + b"\x00"
    body = codec.encode(message, version)
    return struct.pack(">i", len(head) + len(body)) + head + bytes(body)


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), 60)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, message: codec.Message, *, flexible_answer: bool = True) -> Any:
        self._correlation_id += 1
        self._socket.sendall(frame(api_key, version, message, correlation_id=self._correlation_id))
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        name = type(message).__name__.replace("Request", "Response")
        return codec.decode(name, version, answer, 5 if flexible_answer else 4)

    def _read(self, size: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            piece = self._socket.recv(min(1 << 20, size - len(pieces)))
            if not piece:
                raise WireError("the broker closed the connection")
            pieces += piece
        return bytes(pieces)

    # -- what a measurement needs ------------------------------------------------------------------------------------

    def versions(self) -> dict[int, int]:
        """The highest version that the broker serves of each API."""
        answer = self.ask(
            18,
            3,
            ApiVersionsRequest(client_software_name="bench", client_software_version="1"),
            flexible_answer=False,
        )
        return {one.api_key: one.max_version for one in answer.api_keys}

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> bytes:
        """Creates the topic, waits until the broker leads it (metadata says so too early), and returns its id."""
        topic_id = self.ask_for_topic(name, partitions, 1, config)
        deadline = time.monotonic() + 60
        while any(error for error, _ in self._end_offsets(name, partitions)):
            if time.monotonic() > deadline:
                raise WireError(f"topic {name} got no leaders")
            time.sleep(0.02)
        return topic_id

    def ask_for_topic(
        self,
        name: str,
        partitions: int,
        replicas: int,
        config: Mapping[str, str] | None = None,
        brokers: Sequence[Sequence[int]] = (),
    ) -> bytes:
        """Creates the topic and returns its id; `brokers` says which have each partition, the leader first."""
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=-1 if brokers else partitions,
                    replication_factor=-1 if brokers else replicas,
                    assignments=[
                        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(several))
                        for index, several in enumerate(brokers)
                    ],
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                        for key, value in (config or {}).items()
                    ],
                )
            ],
            timeout_ms=60_000,
        )
        (created,) = self.ask(19, 7, request).topics
        _check(created.error_code, f"create topic {name}")
        return bytes(created.topic_id)

    def topic_names(self) -> set[str]:
        return {topic.name for topic in self.ask(3, 12, MetadataRequest(topics=None)).topics}

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=60_000)
        (deleted,) = self.ask(20, 6, request).responses
        _check(deleted.error_code, f"delete topic {name}")

    def alter_topic(self, name: str, config: Mapping[str, str]) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=SET, value=value)
                for key, value in config.items()
            ],
        )
        (altered,) = self.ask(44, 1, IncrementalAlterConfigsRequest(resources=[resource])).responses
        _check(altered.error_code, f"alter topic {name}")

    def _end_offsets(self, topic: str, partitions: int) -> list[tuple[int, int]]:
        """(error code, end offset) of each partition."""
        asked = [
            ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
            for index in range(partitions)
        ]
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=asked)])
        answer = self.ask(2, 7, request)
        return [(one.error_code, one.offset) for one in answer.topics[0].partitions]


def _check(error_code: int, what: str) -> None:
    if error_code:
        raise WireError(f"{what}: error code {error_code}")
