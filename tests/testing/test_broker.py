"""The broker that users run inside their own tests: it starts, serves, can be restarted, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.common.errors import OttlaError
from ottla.server.server import Server
from ottla.testing import Broker
from tests.support.raw_client import RawClient, batch_of


def produce(broker: Broker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def read(broker: Broker, topic: str) -> list[bytes | None]:
    with RawClient.to(broker.bootstrap_servers) as client:
        return [one.value for one in client.read_all(topic)]


def eventually(condition: Callable[[], bool], timeout_s: float = 60) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def open_files() -> set[str]:
    """What our descriptors point at, without the ones that look for it."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue
    return {one for one in found if "/proc/" not in one}


def test_a_client_can_use_it_while_it_runs() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        produce(broker, "orders", "one")
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        assert len(consumer.list_topics("orders", timeout=20).topics["orders"].partitions) == 3
        consumer.close()


def test_nothing_is_left_behind() -> None:
    with Broker() as warm_up:  # what is imported or opened once stays
        warm_up.create_topic("warm-up")
    gc.collect()
    threads, files = set(threading.enumerate()), open_files()
    with Broker() as broker:
        folder = broker.data_dir
        assert folder is not None and folder.is_dir()
        broker.create_topic("orders", partitions=5)
        with RawClient.to(broker.bootstrap_servers) as client:
            client.produce("orders", batch_of(b"one"))
            client.fetch("orders")
        port = int(broker.bootstrap_servers.rpartition(":")[2])
    gc.collect()
    assert not folder.exists()
    assert set(threading.enumerate()) == threads
    # Another broker of this process may be writing a file just now.
    assert eventually(lambda: open_files() <= files), open_files() - files
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)


def test_nothing_is_left_behind_when_the_test_fails() -> None:
    broker = Broker()
    with pytest.raises(ZeroDivisionError), broker:
        folder = broker.data_dir
        raise ZeroDivisionError
    assert folder is not None and not folder.exists()
    assert broker.data_dir is None


def test_nothing_is_left_behind_when_it_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = set(threading.enumerate())
    for properties in ({"num.partitions": "many"}, {"num.partitoins": "3"}):
        with pytest.raises(OttlaError):
            Broker(properties).start()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"}
        with pytest.raises(OttlaError, match="taken"):
            Broker(listeners).start()
    gc.collect()
    assert set(threading.enumerate()) == threads
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_given_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Broker(data_dir=folder) as broker:
        broker.create_topic("orders")
        produce(broker, "orders", "kept")
    assert folder.is_dir()
    with Broker(data_dir=str(folder)) as again:
        assert read(again, "orders") == [b"kept"]


def test_a_folder_is_one_brokers_at_a_time(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path), pytest.raises(OttlaError, match="in use by another"):
        Broker(data_dir=tmp_path).start()
    with Broker(data_dir=tmp_path):
        pass


def test_a_restart_keeps_address_and_data() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": address, "reconnect.backoff.max.ms": 200})
        producer.produce("orders", "before")
        assert producer.flush(20) == 0
        broker.restart()
        assert broker.bootstrap_servers == address
        producer.produce("orders", "after")
        assert producer.flush(20) == 0
        assert read(broker, "orders") == [b"before", b"after"]


def test_nobody_gets_its_port_during_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        port, start = int(broker.bootstrap_servers.rpartition(":")[2]), Server.start

        async def when_somebody_else_has_tried(server: Server) -> None:
            with socket.socket() as somebody, pytest.raises(OSError):
                somebody.bind(("127.0.0.1", port))
            await start(server)

        monkeypatch.setattr(Server, "start", when_somebody_else_has_tried)
        broker.restart()
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_many_at_once_do_not_meet() -> None:
    brokers = [Broker().start() for _ in range(4)]
    try:
        assert len({one.bootstrap_servers for one in brokers}) == 4
        for number, one in enumerate(brokers):
            one.create_topic("same-name")
            produce(one, "same-name", str(number))
        assert [read(one, "same-name") for one in brokers] == [[b"0"], [b"1"], [b"2"], [b"3"]]
    finally:
        for one in brokers:
            one.stop()


def test_starting_and_stopping_by_hand() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap_servers
    broker.start()
    with pytest.raises(RuntimeError, match="already"):
        broker.start()
    broker.stop()
    broker.stop()
    with pytest.raises(RuntimeError, match="not running"):
        broker.create_topic("too-late")
    with broker:
        assert broker.bootstrap_servers


async def test_async_use_does_not_block_the_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    async with Broker() as broker:
        folder = broker.data_dir
        reader, writer = await asyncio.open_connection(*broker.bootstrap_servers.split(":"))
        writer.close()
        assert reader is not None
    ticking.cancel()
    assert ticks > 3
    assert folder is not None and not folder.exists()


# --- the clock


def test_files_of_a_deleted_topic_go_after_their_delay() -> None:
    from ottla.protocol.messages import DeleteTopicsRequest

    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        broker.create_topic("orders")
        folder = broker.data_dir
        assert folder is not None
        client.call(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5000), 5)
        (doomed,) = folder.glob("orders-0.*-delete")
        broker.clock.advance(minutes=10)
        assert eventually(lambda: not doomed.exists())


def test_idle_connections_are_closed_when_the_clock_says_so() -> None:
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        broker.create_topic("orders")
        client.produce("orders", batch_of(b"busy"))
        broker.clock.advance(minutes=11)
        assert client.is_closed_by_peer()


def test_a_waiting_fetch_ends_when_the_clock_says_so() -> None:
    from tests.support.raw_client import fetch_request

    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        broker.create_topic("orders")
        client.send(fetch_request([("orders", 0, 0)], max_wait_ms=3_600_000), 12)
        time.sleep(0.1)
        broker.clock.advance(hours=1)
        assert client.receive("FetchRequest", 12).error_code == 0


def test_the_clock_moves_forward_only_and_survives_a_restart() -> None:
    with Broker() as broker:
        with pytest.raises(ValueError):
            broker.clock.advance(hours=-1)
        broker.clock.advance(days=1)
        moved = broker.clock.now_ms()
        broker.restart()
        assert broker.clock.now_ms() >= moved
        broker.clock.advance(days=1)  # also reaches a broker that was restarted
        broker.create_topic("orders")
        with RawClient.to(broker.bootstrap_servers) as client:
            tomorrow = int(time.time() * 1000) + 86_400_000 * 2
            assert client.produce("orders", batch_of(b"x", timestamp=tomorrow)).error_code == 0


def test_stopping_does_not_wait_for_consumers_that_wait_for_records() -> None:
    with Broker() as broker:
        broker.create_topic("quiet")
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.wait.max.ms": 300_000}
        )
        consumer.assign([TopicPartition("quiet", 0, 0)])
        consumer.poll(1)
        while not broker.run(_parked(broker)):
            consumer.poll(0.1)
    # Leaving the block stops the broker: it would hang here until the fetch's five minutes are over.
    consumer.close()


async def _parked(broker: Broker) -> int:
    return len(broker.server.broker.parked_fetches)
