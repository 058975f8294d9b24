"""Apache Kafka with tiered storage whose reads take longer than a fetch waits: answers without records, and no gap."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

pytest.importorskip("pyarrow")

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client import fetching
from ottla.client.fetching import DataLoss, OffsetRange, fetch_ranges
from ottla.client.lookup import EARLIEST_LOCAL, LATEST, ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.kernel.decode import Decoder
from tests.support.kafka_jars import class_path, require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

STORAGE = Path(__file__).with_name("SlowRemoteStorage.java")
COUNT, SIZE = 3_000, 2_000


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    libs = require_kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("there is a Java runtime but no javac")
    classes = tmp_path / "classes"
    subprocess.run(["javac", "-d", str(classes), "-cp", class_path(libs), str(STORAGE)], check=True)
    tiered = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": STORAGE.stem,
        "remote.log.storage.manager.class.path": f"{classes}/",
        "rsm.config.folder": str(tmp_path / "remote"),
        "rsm.config.delay.ms": "1500",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "200",
        "remote.fetch.max.wait.ms": "200",
        "log.retention.check.interval.ms": "200",
    }
    with KafkaPeer(tmp_path / "kafka", tiered) as kafka:
        yield kafka.bootstrap


def test_all_of_a_topic_is_read_however_slowly_it_comes(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"remote.storage.enable": "true", "segment.bytes": "1048576", "local.retention.bytes": "1"}
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("t", 2, 1, config=settings)])["t"].result(30)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "batch.size": 100_000})
    for number in range(COUNT):
        producer.produce("t", b"%d " % number + b"x" * SIZE, partition=number % 2)
    assert producer.flush(60) == 0
    empty = 0
    look_closer = fetching._LeaderFetch._look_closer

    def counted(self: Any, rows: Any) -> None:
        nonlocal empty
        empty += 1
        look_closer(self, rows)

    monkeypatch.setattr(fetching._LeaderFetch, "_look_closer", counted)
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    with ClusterReader(ClientSettings(servers)) as reader:
        deadline = time.monotonic() + 120
        while min(reader.offsets(dict.fromkeys(partitions, EARLIEST_LOCAL)).values()) == 0:
            assert time.monotonic() < deadline, "nothing was moved to remote storage"
            time.sleep(0.2)
        ends = reader.offsets(dict.fromkeys(partitions, LATEST))
        found = read(reader, [OffsetRange(*one, 0, ends[one]) for one in partitions])
    assert found == list(range(COUNT))
    assert empty > 0, "every read was in time: nothing was shown"


def read(reader: ClusterReader, ranges: list[OffsetRange]) -> list[int]:
    def fail(sentence: str) -> None:
        raise DataLoss(sentence)

    found: list[int] = []
    for one in fetch_ranges(reader, ranges, fail):
        decoder = Decoder(one.records, one.start, one.range.end, one.aborted)
        while (columns := decoder.next_columns()) is not None:
            found += [int(value.split()[0]) for value in columns[1].to_pylist()]
    return sorted(found)
