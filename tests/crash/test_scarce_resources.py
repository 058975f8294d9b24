"""What an operator meets when the disk is full, file descriptors run out, or a folder cannot be written."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, DescribeLogDirsRequest
from tests.cli.command import Cli
from tests.crash.load import TOPIC, wait_until
from tests.crash.test_kills import create_topic
from tests.support.brokers import OttlaProcess
from tests.support.process import BrokerDidNotStart
from tests.support.raw_client import RawClient, batch_of
from tests.support.small_disk import fill, make_read_only, small_tmpfs

pytestmark = pytest.mark.xdist_group("crash")

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_tmpfs(tmp_path / "small", "16m") as mounted:
        yield mounted


@pytest.fixture
def broker(tmp_path: Path, disk: Path) -> Iterator[OttlaProcess]:
    """On the small disk, with a topic."""
    one = OttlaProcess(tmp_path / "broker", {"offsets.topic.num.partitions": "1"})
    one.data_dir = disk / "data"
    with one:
        create_topic(one.bootstrap)
        yield one


def produce(broker: OttlaProcess, size: int = 500_000) -> ErrorCode:
    with RawClient.to(broker.bootstrap) as client:
        return ErrorCode(client.produce(TOPIC, batch_of(os.urandom(size))).error_code)


def delete(broker: OttlaProcess) -> ErrorCode:
    with RawClient.to(broker.bootstrap) as client:
        (told,) = client.call(DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=10_000), 5).responses
    return ErrorCode(told.error_code)


def create(client: RawClient, name: str) -> ErrorCode:
    wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (told,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics
    return ErrorCode(told.error_code)


def said(broker: OttlaProcess, words: str) -> list[str]:
    return [line for line in broker.log_tail(1000).splitlines() if words in line]


def test_a_full_disk_is_said_once_and_seen_from_outside(broker: OttlaProcess, disk: Path) -> None:
    ottla = Cli(broker.bootstrap)
    (well,) = ottla.ok("cluster", "health", "--output", "json").data["log_dirs"]
    assert (well["path"], well["problem"], well["total_bytes"]) == (str(broker.data_dir), None, 16 << 20)
    fill(disk)
    assert {produce(broker) for _ in range(20)} == {STORAGE_ERROR}
    with RawClient.to(broker.bootstrap) as client:
        assert create(client, "another") is STORAGE_ERROR
    (line,) = said(broker, "ERROR")
    assert str(broker.data_dir) in line
    assert "no room is left" in line
    assert "delete topics" in line
    assert "Traceback" not in broker.log_tail(1000)
    outcome = ottla("cluster", "health")
    assert outcome.status == 1, outcome
    assert "unhealthy" in outcome.out
    assert f"{broker.data_dir} fails for want of room, 0 B free of 16 MiB" in outcome.out


def test_topics_can_be_deleted_on_a_full_disk_and_that_makes_room(broker: OttlaProcess, disk: Path) -> None:
    while produce(broker) is ErrorCode.NONE:
        pass
    fill(disk)
    assert produce(broker) is STORAGE_ERROR
    assert delete(broker) is ErrorCode.NONE
    # Not after file.delete.delay.ms: room is what is lacking.
    wait_until(lambda: (os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize) > 4 << 20)
    create_topic(broker.bootstrap)
    assert produce(broker) is ErrorCode.NONE


@pytest.mark.parametrize("killed", [True, False])
def test_a_broker_starts_on_a_full_disk_so_that_topics_can_be_deleted(
    broker: OttlaProcess, disk: Path, killed: bool
) -> None:
    assert produce(broker) is ErrorCode.NONE
    fill(disk)
    assert produce(broker) is STORAGE_ERROR
    broker.restart(kill=killed)
    fill(disk)
    assert produce(broker) is STORAGE_ERROR
    assert delete(broker) is ErrorCode.NONE
    assert "Traceback" not in broker.log_tail(1000)


def test_a_start_that_finds_no_room_at_all_is_one_sentence(broker: OttlaProcess, disk: Path) -> None:
    broker.kill()
    (broker.data_dir / "__ottla_reserve").unlink()
    fill(disk)
    with pytest.raises(BrokerDidNotStart) as failed:
        broker.start()
    (line,) = [one for one in str(failed.value).splitlines() if one.startswith("ottla: ")]
    assert str(broker.data_dir) in line
    assert "make room" in line
    assert "Traceback" not in str(failed.value)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, disk: Path) -> None:
    (disk / "data").mkdir()
    make_read_only(disk)
    for data_dir in (disk / "data", disk / "new"):
        sentence = Cli().fails(1, "start", "--listen", "127.0.0.1:0", "--data-dir", data_dir)
        assert str(data_dir) in sentence
        assert "--data-dir" in sentence


def test_a_lack_of_file_descriptors_is_said_once_and_seen_from_outside(ottla_process: OttlaProcess) -> None:
    broker = ottla_process
    create_topic(broker.bootstrap)
    with RawClient.to(broker.bootstrap) as client:
        client.produce(TOPIC, batch_of(b"x"))
        (log_dir,) = client.call(DescribeLogDirsRequest(topics=[]), 4).results
        assert log_dir.error_code == 0
        before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        in_use = max(int(one) for one in os.listdir(f"/proc/{broker.pid}/fd")) + 1
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (in_use, before[1]))
        names = iter(range(1000))
        # Gaps between the numbers in use may still be taken.
        wait_until(lambda: create(client, f"t{next(names)}") is STORAGE_ERROR)
        codes = {create(client, f"more{number}") for number in range(20)}
        assert codes == {STORAGE_ERROR}
        (line,) = said(broker, "ERROR")
        assert str(broker.data_dir) in line
        assert f"all {in_use} file descriptors are in use" in line
        assert "LimitNOFILE" in line
        (log_dir,) = client.call(DescribeLogDirsRequest(topics=[]), 4).results
        assert ErrorCode(log_dir.error_code) is STORAGE_ERROR
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)
        assert create(client, "after") is ErrorCode.NONE
    assert "Traceback" not in broker.log_tail(1000)
