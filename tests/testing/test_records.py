"""`Broker.produce` and `Broker.records`: what a test writes and reads without clients of its own."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ottla.common.errors import OttlaError
from ottla.testing import Broker, Record
from tests.support.group_members import eventually
from tests.support.kafka_jars import REPO_ROOT
from tests.testing.test_broker import open_files


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_what_goes_in_comes_out(broker: Broker) -> None:
    broker.create_topic("kinds")
    broker.produce("kinds", "text ü", b"\xff", None, {"euro": 7}, [1, 2])
    read = broker.records("kinds")
    assert [one.value for one in read] == ["text ü".encode(), b"\xff", None, b'{"euro": 7}', b"[1, 2]"]
    assert [one.offset for one in read] == [0, 1, 2, 3, 4]
    assert read[0].text == "text ü"
    assert (read[2].text, read[2].json, read[3].json) == ("", None, {"euro": 7})


def test_keys_headers_partitions_and_timestamps(broker: Broker) -> None:
    broker.create_topic("all-of-it", partitions=3)
    broker.produce(
        "all-of-it", "v", key="k", headers={"a": "1", "b": None}, partition=2, timestamp_ms=1_700_000_000_000
    )
    assert broker.records("all-of-it") == [
        Record("all-of-it", 2, 0, 1_700_000_000_000, b"k", b"v", {"a": b"1", "b": None})
    ]


def test_keys_go_where_javas_clients_send_them(broker: Broker) -> None:
    broker.create_topic("keyed", partitions=5)
    for key in ("21", "foobar"):
        broker.produce("keyed", "v", key=key)
    # Utils.toPositive(murmur2(key)) % 5, of Kafka's own test values -973932308 and -790332482
    expected = {b"21": (-973932308 & 0x7FFFFFFF) % 5, b"foobar": (-790332482 & 0x7FFFFFFF) % 5}
    assert {one.key: one.partition for one in broker.records("keyed")} == expected


def test_they_are_in_order_of_partition_and_offset(broker: Broker) -> None:
    broker.create_topic("ordered", partitions=3)
    for partition in (2, 0, 1, 2, 0):
        broker.produce("ordered", "v", partition=partition)
    assert [(one.partition, one.offset) for one in broker.records("ordered")] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (2, 0),
        (2, 1),
    ]


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    with pytest.raises(OttlaError, match="there is no topic 'nowhere'"):
        broker.records("nowhere")
    broker.produce("made-by-writing", "v")
    assert [one.text for one in broker.records("made-by-writing")] == ["v"]
    with pytest.raises(OttlaError, match="did not take"):
        broker.produce("made-by-writing", "v", partition=7)


def test_it_waits_for_as_many_as_are_awaited_and_for_their_topic(broker: Broker) -> None:
    def slow_application() -> None:
        for number in range(3):
            time.sleep(0.1)
            broker.produce("late", str(number))

    application = threading.Thread(target=slow_application)
    application.start()
    assert [one.text for one in broker.records("late", count=3, timeout_s=60)] == ["0", "1", "2"]
    application.join()
    with pytest.raises(TimeoutError, match=r"4 records were awaited for 0\.2 s: topic 'late' has 3 records"):
        broker.records("late", count=4, timeout_s=0.2)
    with pytest.raises(TimeoutError, match="there is no topic 'never'"):
        broker.records("never", count=1, timeout_s=0.2)


def test_records_of_transactions_count_when_they_are_committed(broker: Broker) -> None:
    writer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "w"})
    writer.init_transactions(30)
    for end in (writer.commit_transaction, writer.abort_transaction):
        writer.begin_transaction()
        writer.produce("transacted", end.__name__)
        writer.flush(30)
        end(30)
    assert [one.text for one in broker.records("transacted")] == ["commit_transaction"]
    everything = broker.records("transacted", committed_only=False)
    assert [one.text for one in everything] == ["commit_transaction", "abort_transaction"]


def test_a_log_that_does_not_begin_at_0() -> None:
    with Broker() as broker:
        broker.create_topic("trimmed", configs={"retention.ms": "86400000"})
        broker.produce("trimmed", "old")
        broker.clock.advance(days=30)
        deadline = time.monotonic() + 60
        while broker.records("trimmed") and time.monotonic() < deadline:
            time.sleep(0.05)
        broker.produce("trimmed", "new")
        assert [(one.offset, one.text) for one in broker.records("trimmed")] == [(1, "new")]


def test_they_are_stamped_with_the_brokers_time() -> None:
    with Broker() as broker:
        broker.clock.advance(days=8)
        broker.produce("ahead", "v")
        stamp_ms = broker.records("ahead")[0].timestamp_ms
        assert abs(stamp_ms - broker.clock.now_ms()) < 600_000


def test_it_goes_on_after_a_restart_and_leaves_nothing_behind() -> None:
    with Broker() as warm_up:
        warm_up.produce("t", "v")
    gc.collect()
    files = open_files()
    with Broker() as broker:
        broker.produce("t", "before")
        broker.restart()
        broker.produce("t", "after")
        assert [one.text for one in broker.records("t")] == ["before", "after"]
    gc.collect()
    # Another broker of this process may be writing a file just now.
    eventually(lambda: open_files() <= files, lambda: open_files() - files)


def test_more_connections_than_the_usual_limit_of_open_files_allows() -> None:
    program = (
        "import resource, socket; from ottla.testing import Broker\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "with Broker() as broker:\n"
        "    host, port = broker.bootstrap_servers.split(':')\n"
        "    clients = [socket.create_connection((host, int(port))) for _ in range(200)]\n"
        "    broker.produce('t', 'v')\n"
        "    assert len(broker.records('t')) == 1\n"
    )
    environment = {"PYTHONPATH": str(REPO_ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
