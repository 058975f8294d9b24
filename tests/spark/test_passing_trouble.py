"""What a cluster may answer while a batch is published: the batch is there once, or one sentence says why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.address import ClusterAddress
from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionRefused
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import Failure, Retriable, failure_in
from ottla.common.ids import TopicPartition
from ottla.spark.pipeline.cluster_checks import ensure_dead_letter_topic
from ottla.spark.pipeline.verdicts import Retry, judge
from ottla.spark.sink.marker import Marker, ensure_marker_topic
from ottla.spark.sink.publishing import Publisher, PublisherSettings
from ottla.testing import Broker
from tests.client.test_producing import batch, committed_values
from tests.spark.test_publishing import MARKERS, with_transactions
from tests.support.scripted_answers import scripted

_COORDINATOR = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
PASSES = {
    "FindCoordinator": _COORDINATOR[:2],
    "InitProducerId": (*_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS),
    "AddPartitionsToTxn": (
        *_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TRANSACTION_ABORTABLE,
    ),
    "AddOffsetsToTxn": (*_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.TRANSACTION_ABORTABLE),
    "Produce": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ),
    "TxnOffsetCommit": (
        *_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    ),
    "EndTxn": (
        *_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ),
}
LASTS = {
    "Produce": (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
        4242,
    ),
    "TxnOffsetCommit": (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    "EndTxn": (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 4242),
}


@pytest.fixture(scope="module", params=[2, 1], ids=["transactions v2", "transactions v1"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    # What is written is years old: on a slow machine it would be deleted before it is read.
    with Broker({"log.retention.ms": "-1"}) as running:
        running.create_topic("in", 2)
        with_transactions(running, request.param)
        yield running


class Query:
    """Publishes one record with each batch, to a topic of its own."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self._servers, self._topic = broker.bootstrap_servers, f"out-{name}"
        broker.create_topic(self._topic)
        self.publisher = Publisher(PublisherSettings(ClusterAddress(self._servers), name, name, MARKERS))
        self.publisher.check_cluster(self._topic)
        # As long as the client waits for a coordinator to be found before it asks anew.
        self.publisher._cluster._timeout_s = 0.1
        self.number = 0

    def publish(self) -> None:
        offsets = {"in": {"0": self.number, "1": 5}}
        assert not self.publisher.is_published("id", self.number, offsets)
        out = [(TopicPartition(self._topic, 0), batch(b"%d" % self.number))]
        self.publisher.publish(Marker("id", self.number, offsets), out)
        self.number += 1

    def written(self) -> list[int]:
        return [int(value) for value in committed_values(self._servers, self._topic, 1)]


@pytest.fixture
def query(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Query]:
    made = Query(broker, f"query-{abs(hash(request.node.name))}")
    yield made
    made.publisher.close()


@pytest.mark.parametrize("asked", PASSES)
def test_trouble_that_passes_is_waited_out_or_published_again(query: Query, asked: str) -> None:
    query.publish()
    for code in PASSES[asked]:
        with scripted({asked: [code] * 3}) as script:
            if asked in ("FindCoordinator", "InitProducerId"):
                query.publisher._producer._coordinator.forget()
                query.publisher._producer.abort()
            query.publish()
            # Transactions v2 do without it.
            assert script.is_over or (asked.startswith("Add") and query.publisher._producer._is_v2)
    query.publish()
    assert query.written() == list(range(len(PASSES[asked]) + 2))


@pytest.mark.parametrize("asked", LASTS)
def test_trouble_that_lasts_ends_it_with_a_sentence_and_nothing_is_written(query: Query, asked: str) -> None:
    query.publish()
    for code in LASTS[asked]:
        with scripted({asked: [code]}), pytest.raises(TransactionRefused) as caught:
            query.publish()
        assert failure_in(caught.value) in (Failure.DATA, Failure.SETTINGS)
        assert judge(caught.value).retry is Retry.NEVER
        assert ErrorCode(code).name in str(caught.value)
    assert query.written() == [0]
    query.publish()
    assert query.written() == [0, 1]


def test_offsets_of_a_source_that_is_denied_for_a_moment_are_committed_all_the_same(
    broker: Broker, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a broker that has just started. The partition that does not move again would never be told of."""
    metadata = ClusterClient.metadata
    denials = 2

    def deny(cluster: ClusterClient, topics: Any) -> Any:
        nonlocal denials
        answer = metadata(cluster, topics)
        if denials and topics == ["in"]:
            denials -= 1
            for topic in answer.topics:
                topic.error_code, topic.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
        return answer

    monkeypatch.setattr(ClusterClient, "metadata", deny)
    query.publish()
    query.publish()
    assert not denials
    with ClusterClient(broker.bootstrap_servers) as cluster:
        told = {where: found.offset for where, found in committed_offsets(cluster, query.name).items()}
    assert told == {TopicPartition("in", 0): 1, TopicPartition("in", 1): 5}


def test_a_topic_that_cannot_be_made_now_is_waited_for(broker: Broker) -> None:
    address = ClusterAddress(broker.bootstrap_servers)
    passing, lasting = ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for code, kind in ((passing, Retriable), (lasting, OttlaError)):
        with scripted({"CreateTopics": [code, code]}):
            with pytest.raises(kind, match=code.name) as caught:
                ensure_dead_letter_topic(address, "new")
            with ClusterClient(address) as cluster, pytest.raises(kind, match=code.name):
                ensure_marker_topic(cluster, "new-markers")
        assert judge(caught.value).retry is (Retry.UNLIMITED if code is passing else Retry.NEVER)
