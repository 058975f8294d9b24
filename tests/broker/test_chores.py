"""Work that the broker does by the clock, at the times its configuration says."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Producer

from ottla.storage.log import Log
from ottla.testing import Broker


def _produce(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"value")
    assert producer.flush(20) == 0


def _log(broker: Broker, topic: str) -> Log:
    partition = broker.server.broker.partitions.get(topic, 0)
    assert partition is not None
    return partition.log


def _soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_log_is_flushed_by_time_even_if_no_scheduler_interval_is_set() -> None:
    with Broker() as broker:
        broker.create_topic("quick", configs={"flush.ms": "100"})
        broker.create_topic("never")
        for topic in ("quick", "never"):
            _produce(broker, topic)
        broker.clock.advance(seconds=2)
        assert _soon(lambda: _log(broker, "quick").recovery_point == 1)
        assert _log(broker, "never").recovery_point == 0


def test_retention_first_runs_after_the_initial_delay() -> None:
    with Broker({"log.initial.task.delay.ms": "5000"}) as broker:
        broker.create_topic("t", configs={"retention.ms": "1", "segment.ms": "1"})
        _produce(broker, "t")
        time.sleep(0.02)
        _produce(broker, "t")
        assert _log(broker, "t").log_start_offset == 0
        broker.clock.advance(seconds=6)
        assert _soon(lambda: _log(broker, "t").log_start_offset == 2)
