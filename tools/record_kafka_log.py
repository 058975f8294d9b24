"""Record tests/fixtures/kafka-log: a small data directory that Apache Kafka wrote and closed cleanly.

    python tools/record_kafka_log.py        (needs Java and Kafka's jars, see tests/support/kafka_jars.py)

`plain` has 200 records in three segments: single records and small batches of an idempotent producer, then twenty of
each codec. `txn` has two committed, two aborted and one undecided transaction.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO_ROOT), str(REPO_ROOT / "src")]

from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from tests.support.kafka_peer import KafkaPeer  # noqa: E402

TARGET = REPO_ROOT / "tests" / "fixtures" / "kafka-log"
BASE_MS = 1_700_000_000_000
KEPT = ("plain-0", "txn-0", "*-checkpoint", "meta.properties", ".kafka_cleanshutdown")


def write_plain(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for n in range(120):
        headers = [("n", b"%d" % n)] if n % 10 == 0 else None
        producer.produce(
            "plain", key=b"k%d" % (n % 5), value=b"value %d" % n, timestamp=BASE_MS + n * 1000, headers=headers
        )
        if n % 3 == 0:
            producer.flush()
    producer.flush()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
        for n in range(20):
            producer.produce("plain", value=f"{codec} {n}".encode(), timestamp=BASE_MS + 200_000 + n * 1000)
        producer.flush()


def write_transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "recorder"})
    producer.init_transactions()
    for n in range(4):
        producer.begin_transaction()
        for i in range(3):
            producer.produce("txn", value=b"txn %d %d" % (n, i), timestamp=BASE_MS)
        producer.flush()
        if n % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.begin_transaction()
    producer.produce("txn", value=b"undecided", timestamp=BASE_MS)
    producer.flush()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {"transaction.state.log.num.partitions": "1", "log.index.interval.bytes": "300"}
        kafka = KafkaPeer(Path(folder), settings)
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        topics = [NewTopic("plain", 1, 1, config={"internal.segment.bytes": "4000"}), NewTopic("txn", 1, 1)]
        for created in admin.create_topics(topics).values():
            created.result()
        write_plain(kafka.bootstrap)
        write_transactions(kafka.bootstrap)
        time.sleep(1)
        kafka.stop()
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        for pattern in KEPT:
            for path in kafka.data_dir.glob(pattern):
                copy = shutil.copytree if path.is_dir() else shutil.copy
                copy(path, TARGET / path.name)


if __name__ == "__main__":
    main()
