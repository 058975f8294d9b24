"""Answers that never arrive: the record is written, the producer is not told and sends it again. It must not count."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from ottla.testing import Broker
from ottla.testing.checker import Checker
from tests.crash.load import (
    PARTITIONS,
    TOPIC,
    AioKafkaProducer,
    ConfluentProducer,
    KafkaPythonProducer,
    Producing,
    read_log,
    wait_until,
)
from tests.crash.test_kills import PROPERTIES, create_topic, verdict
from tests.support.brokers import OttlaProcess
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("crash")

PRODUCERS = {"confluent-kafka": ConfluentProducer, "kafka-python": KafkaPythonProducer, "aiokafka": AioKafkaProducer}


@pytest.mark.parametrize("name", PRODUCERS)
def test_retries_leave_no_duplicates_and_no_gaps(name: str) -> None:
    checker = Checker()
    with Proxy(seed=3) as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        with Broker(advertised) as broker:
            proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
            broker.create_topic(TOPIC, PARTITIONS)
            with PRODUCERS[name](name, proxy.address, checker) as producer:
                wait_until(lambda: checker.acknowledged_count > 30)
                proxy.lose_produce_answers(0.2)
                proxy.cut_requests(0.02)
                wait_until(lambda: proxy.lost >= 10)
                proxy.lose_produce_answers(0)
                proxy.cut_requests(0)
                producer.finish()
            read_log(broker.bootstrap_servers, checker)
    assert checker.acknowledged_count > 50
    assert not checker.violations(), verdict(checker)


def lose_and_kill(broker: OttlaProcess, proxy: Proxy, producers: list[Producing], checker: Checker, kills: int) -> None:
    """Lose answers and then the broker too, so that the producers' memory of what they sent is all there is."""
    rng = random.Random(5)
    for producer in producers:
        producer.start()
    try:
        wait_until(lambda: checker.acknowledged_count > 30)
        for _ in range(kills):
            proxy.lose_produce_answers(1.0)
            before = proxy.lost
            wait_until(lambda before=before: proxy.lost >= before + len(producers))  # type: ignore[misc]
            time.sleep(rng.uniform(0, 0.2))
            broker.kill()
            proxy.lose_produce_answers(0)
            acknowledged = checker.acknowledged_count
            broker.start()
            wait_until(lambda seen=acknowledged: checker.acknowledged_count > seen)  # type: ignore[misc]
        for producer in producers:
            producer.finish()
    finally:
        for producer in producers:
            producer.stopping.set()
    read_log(broker.bootstrap, checker)


def test_a_crash_on_top_of_lost_answers(tmp_path: Path) -> None:
    checker = Checker()
    with Proxy(seed=4) as proxy:
        properties = {**PROPERTIES, "advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        with OttlaProcess(tmp_path / "broker", properties) as broker:
            proxy.target = broker.port
            create_topic(broker.bootstrap)
            producers: list[Producing] = [
                ConfluentProducer("confluent", proxy.address, checker),
                KafkaPythonProducer("kafka-python", proxy.address, checker),
            ]
            lose_and_kill(broker, proxy, producers, checker, kills=2)
    assert not checker.violations(), verdict(checker)
