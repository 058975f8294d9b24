"""The registry on Apache Kafka: the same topic, election and fencing."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ottla.client.address import ClusterAddress
from ottla.registry.records import mode_record
from ottla.registry.topic.writer import Fenced, TooLarge, TopicWriter
from ottla.testing import Registry
from tests.registry.test_api import INT, MORE
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_kafka_libs()
    properties = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with KafkaPeer(tmp_path_factory.mktemp("kafka"), properties) as running:
        yield running.bootstrap


def test_two_instances_serve_schemas_that_kafka_keeps(kafka: str) -> None:
    with Registry(kafka) as one, Registry(kafka) as two, httpx.Client(trust_env=False, timeout=60) as http:
        first = http.post(f"{one.url}/subjects/a/versions", json={"schema": INT}).json()
        assert http.post(f"{two.url}/subjects/a/versions", json={"schema": INT}).json() == first
        assert http.post(f"{two.url}/subjects/a/versions", json={"schema": MORE}).json()["version"] == 2
    with Registry(kafka) as again, httpx.Client(trust_env=False, timeout=60) as http:
        assert http.get(f"{again.url}/subjects/a/versions").json() == [1, 2]


def test_kafka_shuts_an_earlier_writer_out(kafka: str) -> None:
    paused, next_one = (TopicWriter(ClusterAddress(kafka), "_fenced", "_fenced-writers") for _ in range(2))
    paused.create_topic()
    paused.take_over()
    assert paused.append([mode_record("a", "READONLY")]) == 1
    with pytest.raises(TooLarge):
        paused.append([mode_record("x" * 2_000_000, "READONLY")])
    assert next_one.take_over() == 2
    with pytest.raises(Fenced):
        paused.append([mode_record("b", "READONLY")])
    assert next_one.append([mode_record("c", "READONLY")]) == 3
    paused.close()
    next_one.close()
