"""kill -9 of a real broker at every step from the decision of a transaction to its completion: the decision stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.protocol import messages as m
from tests.crash.dying_broker import DyingBroker
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.raw_client import ConnectionClosed, RawClient
from tests.support.transactional_client import TransactionalClient, retried
from tests.support.transactional_libraries import Reader, committed_offset

pytestmark = pytest.mark.xdist_group("crash")

PARTITIONS = 3
# The decision, a marker in each partition and in the group's, the completion.
STEPS = 1 + PARTITIONS + 1 + 1
PROPERTIES = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "3"}


def decide_and_die(broker: DyingBroker, version: int, commit: bool) -> None:
    with RawClient.to(broker.bootstrap) as client:
        topic = m.CreateTopicsRequest.CreatableTopic(name="data", num_partitions=PARTITIONS, replication_factor=1)
        client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 4)
        retried(client, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
        producer = TransactionalClient(client, "t", version)
        producer.init()
        for partition in range(PARTITIONS):
            producer.produce("data", b"first", partition=partition)
        producer.commit_offsets("g", {("data", 0): 7})
        with pytest.raises((ConnectionClosed, ConnectionError)):
            producer.end(commit)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_what_was_decided_is_completed_after_the_kill(tmp_path: Path, version: int, commit: bool) -> None:
    environment = {"PYTHONPATH": f"{REPO_ROOT / 'src'}:{REPO_ROOT}"}
    for step in range(STEPS):
        folder = tmp_path / str(step)
        dying = DyingBroker(folder, PROPERTIES, environment=environment)
        dying.step = step
        with dying as broker:
            decide_and_die(broker, version, commit)
        with OttlaProcess(folder, PROPERTIES) as broker:
            reader = Reader(broker.bootstrap, "data", range(PARTITIONS))
            with RawClient.to(broker.bootstrap) as client:
                successor = TransactionalClient(client, "t", version)
                successor.init()
                for partition in range(PARTITIONS):
                    successor.produce("data", b"next", partition=partition)
                successor.commit()
            expected = [b"first", b"next"] if commit else [b"next"]
            assert reader.until(len(expected) * PARTITIONS) == dict.fromkeys(range(PARTITIONS), expected), (
                f"step {step}"
            )
            reader.close()
            assert committed_offset(broker.bootstrap, "g", "data") == (7 if commit else -1001), f"step {step}"


def test_the_state_topic_has_the_partitions_that_were_asked_for(tmp_path: Path) -> None:
    with OttlaProcess(tmp_path, PROPERTIES) as broker, RawClient.to(broker.bootstrap) as client:
        found = retried(client, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"]), 4)
        assert [(one.error_code, one.port) for one in found.coordinators] == [(0, broker.port)] * 2
        topics = [m.MetadataRequest.MetadataRequestTopic(name="__transaction_state")]
        (topic,) = client.call(m.MetadataRequest(topics=topics), 8).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 3)
