"""kill -9 in a loop under load of idempotent producers of two libraries, with a group that commits as it reads."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.protocol.messages import CreateTopicsRequest
from ottla.testing.checker import Checker
from tests.crash.load import (
    PARTITIONS,
    TOPIC,
    AioKafkaProducer,
    ConfluentProducer,
    GroupConsumer,
    KafkaPythonProducer,
    Producing,
    read_log,
    wait_until,
)
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.xdist_group("crash")

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # Small, so that crashes meet segments that roll, indexes that close and snapshots that are written.
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "500",
}


def create_topic(bootstrap: str) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    with RawClient.to(bootstrap) as client:
        (told,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics
    assert told.error_code == 0


def survive(
    broker: OttlaProcess,
    second: type[Producing],
    kills: int,
    seed: int,
    pause_s: Callable[[random.Random], float],
) -> Checker:
    """Kill and restart under load; then the ledger, with the log in it."""
    rng = random.Random(seed)
    checker = Checker()
    create_topic(broker.bootstrap)
    producers = [
        ConfluentProducer("confluent", broker.bootstrap, checker),
        second(second.__name__, broker.bootstrap, checker),
    ]
    with producers[0], producers[1], GroupConsumer("reader", broker.bootstrap, checker) as consumer:
        wait_until(lambda: checker.acknowledged_count > 50)
        for _ in range(kills):
            time.sleep(pause_s(rng))
            broker.kill()
            before = checker.acknowledged_count
            broker.start()
            wait_until(lambda before=before: checker.acknowledged_count > before)  # type: ignore[misc]
        for producer in producers:
            producer.finish()
        total = read_log(broker.bootstrap, checker)
        wait_until(lambda: consumer.seen >= total)
        consumer.finish()
        consumer.check_commits()
    assert checker.acknowledged_count > 100 * kills / 4
    return checker


def verdict(checker: Checker) -> str:
    found = checker.violations()
    return "\n".join(map(str, found[:20])) + (f"\nand {len(found) - 20} more" if len(found) > 20 else "")


@pytest.mark.parametrize("second", [KafkaPythonProducer, AioKafkaProducer], ids=["kafka-python", "aiokafka"])
def test_a_few_kills(tmp_path: Path, second: type[Producing]) -> None:
    with OttlaProcess(tmp_path / "broker", PROPERTIES) as broker:
        checker = survive(broker, second, kills=3, seed=1, pause_s=lambda rng: rng.uniform(0.3, 1.0))
    assert not checker.violations(), verdict(checker)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("second", [KafkaPythonProducer, AioKafkaProducer], ids=["kafka-python", "aiokafka"])
def test_sixty_kills(tmp_path: Path, second: type[Producing]) -> None:
    with OttlaProcess(tmp_path / "broker", PROPERTIES) as broker:
        checker = survive(broker, second, kills=60, seed=2, pause_s=lambda rng: rng.uniform(0.0, 1.5))
    assert not checker.violations(), verdict(checker)
