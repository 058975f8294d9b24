"""Batches that must be opened: not on the event loop, and never more at a time than there is memory for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.memory import Memory
from ottla.protocol.messages import CreateTopicsRequest, ListOffsetsRequest
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch
from ottla.storage.segments import timestamps
from ottla.testing import Broker
from tests.support.brokers import OttlaProcess
from tests.support.loop_turns import TURN_S_MAX, LoopTurns
from tests.support.raw_client import RawClient

NOW_MS = 1_700_000_000_000


def zstd_batch(records: int, value_bytes: int = 200) -> bytes:
    """Compressed a hundredfold and more."""
    value = bytes(value_bytes)
    return bytes(build_batch([Record(n, NOW_MS + n, b"k", value) for n in range(records)], codec=Codec.ZSTD))


def test_list_offsets_by_time_does_not_stall_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions, records = 5, 100_000
    batch = zstd_batch(records)
    opened_in: set[int] = set()
    read_and_open = timestamps._read_and_open

    def opening(*given: Any) -> Any:
        opened_in.add(threading.get_ident())
        return read_and_open(*given)

    async def thread_of_the_loop() -> int:
        return threading.get_ident()

    monkeypatch.setattr(timestamps, "_read_and_open", opening)
    with LoopTurns() as turns, Broker() as broker:
        broker.create_topic("timed", partitions)
        with RawClient.to(broker.bootstrap_servers) as client:
            for index in range(partitions):
                assert client.produce("timed", batch, partition=index).error_code == 0
            line = ListOffsetsRequest.ListOffsetsPartition
            asked = [line(partition_index=n, timestamp=NOW_MS + records - 1) for n in range(partitions)]
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name="timed", partitions=asked)]
            )
            for _ in range(5):  # a virtual machine counts the time that it is not let run
                turns.reset()
                answer = client.call(request, 7)
                assert {one.offset for one in answer.topics[0].partitions} == {records - 1}
                if turns.worst_s < TURN_S_MAX:
                    break
        assert opened_in
        assert broker.run(thread_of_the_loop()) not in opened_in
    assert turns.worst_s < TURN_S_MAX, turns.worst


class Watched(Memory):
    peak_bytes = 0

    async def reserve(self, size: int) -> None:
        await super().reserve(size)
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)


def produce_at_once(bootstrap: str, clients: int, batch: bytes) -> list[int]:
    """The error codes of as many produce requests at a time."""
    codes: list[int] = []

    def produce() -> None:
        with RawClient.to(bootstrap, timeout_s=600) as client:
            codes.append(client.produce("compacted", batch).error_code)

    threads = [threading.Thread(target=produce) for _ in range(clients)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return codes


@pytest.mark.parametrize("configs", [{"cleanup.policy": "compact"}, {"compression.type": "lz4"}])
def test_many_batches_share_the_memory_for_what_comes_out(configs: dict[str, str]) -> None:
    batch = zstd_batch(10_000)
    limit_bytes = 10 << 20
    with Broker() as broker:
        broker.create_topic("compacted", configs=configs)
        memory = broker.server.broker.opened_memory = Watched(limit_bytes)
        assert produce_at_once(broker.bootstrap_servers, 16, batch) == [0] * 16
        assert 0 < memory.peak_bytes <= limit_bytes
        assert memory.held_bytes == 0


@pytest.mark.slow
def test_twenty_connections_with_half_a_million_records_each(tmp_path_factory: pytest.TempPathFactory) -> None:
    """100 MB come out of each, so two gigabytes of all."""
    batch = zstd_batch(500_000)
    with OttlaProcess(tmp_path_factory.mktemp("sum")) as broker:
        setting = CreateTopicsRequest.CreatableTopicConfig
        configs = [
            setting(name="cleanup.policy", value="compact"),
            setting(name="max.message.bytes", value=str(len(batch))),
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name="compacted", num_partitions=1, replication_factor=1, configs=configs
        )
        with RawClient.to(broker.bootstrap) as client:
            client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        before = peak_bytes(broker)
        assert produce_at_once(broker.bootstrap, 20, batch) == [0] * 20
        assert peak_bytes(broker) - before < 700 << 20


def peak_bytes(broker: OttlaProcess) -> int:
    """The most resident memory that the process ever had."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
