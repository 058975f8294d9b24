"""Partitions move between log directories while clients write and read, and nothing is lost, doubled or reordered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.storage.log_dirs import future_log
from ottla.testing import Broker
from tests.support.raw_client import RawClient

Request = m.AlterReplicaLogDirsRequest


class TwoDirs:
    def __init__(self, folder: Path) -> None:
        self.one, self.two = folder / "one", folder / "two"
        self.broker = Broker({"log.dirs": f"{self.one},{self.two}"}, data_dir=self.one)

    def move(self, client: RawClient, path: str | Path, topic: str, index: int = 0, version: int = 2) -> ErrorCode:
        asked = Request.AlterReplicaLogDirTopic(name=topic, partitions=[index])
        directory = Request.AlterReplicaLogDir(path=str(path), topics=[asked])
        answer = client.call(Request(dirs=[directory]), version)
        return ErrorCode(answer.results[0].partitions[0].error_code)

    def where(self, client: RawClient, topic: str) -> list[tuple[str, Any]]:
        answer = client.call(m.DescribeLogDirsRequest(topics=None), 4)
        return [
            (Path(directory.log_dir).name, partition)
            for directory in answer.results
            for found in directory.topics
            if found.name == topic
            for partition in found.partitions
        ]


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[TwoDirs]:
    made = TwoDirs(tmp_path)
    with made.broker:
        yield made


@pytest.fixture
def client(dirs: TwoDirs) -> Iterator[RawClient]:
    with RawClient.to(dirs.broker.bootstrap_servers) as connected:
        yield connected


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


MOVES = 4


def test_records_stay_whole_while_their_partition_moves_to_and_fro(
    dirs: TwoDirs, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(future_log, "STANDSTILL_BYTES", 20_000)
    dirs.broker.create_topic("t", configs={"segment.bytes": "1048576"})
    producer = Producer({"bootstrap.servers": dirs.broker.bootstrap_servers, "linger.ms": 1})
    sent = moves = 0
    homes = [dirs.one, dirs.two]
    start = dirs.where(client, "t")[0][0]
    target = homes[0] if start == "two" else homes[1]
    deadline = time.monotonic() + 200
    while moves < MOVES:
        assert time.monotonic() < deadline, f"moved {moves} times"
        for _ in range(200):
            producer.produce("t", b"%d" % sent, partition=0)
            sent += 1
        producer.poll(0)
        time.sleep(0.005)
        here = dirs.where(client, "t")
        if len(here) == 1:  # not on its way
            if here[0][0] == target.name:
                moves += 1
                target = homes[0] if target is homes[1] else homes[1]
            assert dirs.move(client, target, "t") is ErrorCode.NONE
    assert producer.flush(30) == 0
    assert values(dirs.broker, "t", sent) == [b"%d" % number for number in range(sent)]


def test_a_moved_partition_is_found_in_its_new_place_after_a_restart(dirs: TwoDirs, client: RawClient) -> None:
    dirs.broker.create_topic("t", configs={"file.delete.delay.ms": "0"})
    producer = Producer({"bootstrap.servers": dirs.broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce("t", b"before", partition=0)
    assert producer.flush(20) == 0
    source = dirs.one if dirs.where(client, "t")[0][0] == "one" else dirs.two
    target = dirs.two if source is dirs.one else dirs.one
    assert dirs.move(client, target, "t", version=1) is ErrorCode.NONE
    until(lambda: [name for name, _ in dirs.where(client, "t")] == [target.name])
    producer.produce("t", b"after", partition=0)  # the producer's sequence goes on
    assert producer.flush(20) == 0
    dirs.broker.restart()
    assert (target / "t-0").is_dir()
    assert not (source / "t-0").exists()
    assert values(dirs.broker, "t", 2) == [b"before", b"after"]


def test_a_move_goes_no_faster_than_it_may_and_hears_of_another_rate(
    dirs: TwoDirs, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(future_log, "STANDSTILL_BYTES", 0)
    dirs.broker.create_topic("t")
    dirs.broker.produce("t", b"x" * 200_000, partition=0)
    home = dirs.where(client, "t")[0][0]
    target = dirs.two if home == "one" else dirs.one
    _set_rate(client, 1000)
    assert dirs.move(client, target, "t") is ErrorCode.NONE
    until(lambda: [path.stat().st_size > 0 for path in target.glob("*-future/*.log")] == [True])
    (copy,) = target.glob("*-future/*.log")
    assert copy.stat().st_size < 100_000, "that takes three minutes"
    assert (home, False) in [(name, found.is_future_key) for name, found in dirs.where(client, "t")]
    _set_rate(client, 1_000_000_000)
    until(lambda: [name for name, _ in dirs.where(client, "t")] == [target.name])
    assert values(dirs.broker, "t", 1) == [b"x" * 200_000]


def _set_rate(client: RawClient, bytes_per_second: int) -> None:
    name = "replica.alter.log.dirs.io.max.bytes.per.second"
    alter = m.IncrementalAlterConfigsRequest
    wanted = alter.AlterableConfig(name=name, config_operation=0, value=str(bytes_per_second))
    answer = client.call(
        alter(resources=[alter.AlterConfigsResource(resource_type=4, resource_name="", configs=[wanted])]), 1
    )
    assert answer.responses[0].error_code == ErrorCode.NONE


def test_what_cannot_be_moved(dirs: TwoDirs, client: RawClient, tmp_path: Path) -> None:
    dirs.broker.create_topic("t")
    assert dirs.move(client, tmp_path / "three", "t") is ErrorCode.LOG_DIR_NOT_FOUND
    assert dirs.move(client, "one", "t") is ErrorCode.LOG_DIR_NOT_FOUND
    assert dirs.move(client, dirs.one, "gone") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert dirs.move(client, dirs.one, "t", 9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for path in (dirs.one, dirs.two):
        if path.name == dirs.where(client, "t")[0][0]:
            assert dirs.move(client, path, "t") is ErrorCode.NONE


def test_a_full_directory_leaves_the_partition_where_it_is(
    dirs: TwoDirs, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs.broker.create_topic("t")
    home = dirs.where(client, "t")[0][0]
    target = dirs.two if home == "one" else dirs.one

    def no_room(self: object, names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(future_log.FutureLog, "_copy_files", no_room)
    assert dirs.move(client, target, "t") is ErrorCode.NONE
    until(lambda: not list(target.glob("*-future")))
    time.sleep(0.1)
    assert [name for name, _ in dirs.where(client, "t")] == [home]
    producer = Producer({"bootstrap.servers": dirs.broker.bootstrap_servers})
    producer.produce("t", b"still here", partition=0)
    assert producer.flush(20) == 0
    assert values(dirs.broker, "t", 1) == [b"still here"]


def test_a_copy_that_a_crash_cut_short_is_removed_at_the_next_start(dirs: TwoDirs) -> None:
    dirs.broker.create_topic("t")
    leftover = dirs.two / f"t-0.{'a' * 32}-future"
    leftover.mkdir()
    (leftover / "00000000000000000000.log").write_bytes(b"half")
    dirs.broker.restart()
    dirs.broker.clock.advance(hours=1)
    until(lambda: not leftover.exists())


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(1000, 1)]
    found += [message.value() for message in consumer.consume(1, 0.1)]
    consumer.close()
    return found
