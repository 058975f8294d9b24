"""A batch is published once, whatever happens to its transaction on the way, and given up only when it must be."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.client.address import ClusterAddress
from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.admin.transactions import describe_transactions
from ottla.client.cluster import ClusterClient
from ottla.client.producing import Committed, ProducerFenced, TransactionalProducer
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import UpdateFeaturesRequest
from ottla.spark.sink.marker import Marker, read_marker
from ottla.spark.sink.progress import committed_offsets as position
from ottla.spark.sink.publishing import Publisher, PublisherSettings
from ottla.testing import Broker
from tests.client.test_producing import batch, committed_values

OUT, MARKERS = "out", "markers"
NOISE = os.urandom(1_000_000)
Batches = list[tuple[TopicPartition, bytes]]


@pytest.fixture(params=[2, 1], ids=["transactions v2", "transactions v1"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker({"transactional.id.expiration.ms": "3600000", "log.retention.ms": "-1"}) as running:
        running.create_topic(OUT, 2)
        running.create_topic("in", 2)
        with_transactions(running, request.param)
        yield running


def with_transactions(broker: Any, version: int) -> None:
    with ClusterClient(broker.bootstrap_servers) as cluster:
        key = UpdateFeaturesRequest.FeatureUpdateKey
        update = key(feature="transaction.version", max_version_level=version, upgrade_type=2)
        cluster.any_broker().call(UpdateFeaturesRequest(timeout_ms=5_000, feature_updates=[update]))


@pytest.fixture
def publisher(broker: Broker) -> Iterator[Publisher]:
    made = Publisher(PublisherSettings(ClusterAddress(broker.bootstrap_servers), "query", "group", MARKERS))
    made.check_cluster(OUT)
    yield made
    made.close()


class Interrupted:
    """Batches that can be read again; at the first reading something happens when half of them are sent."""

    def __init__(self, batches: Batches, happens: Callable[[], object]) -> None:
        self._batches = batches
        self._happens: Callable[[], object] | None = happens
        self.readings = 0

    def __iter__(self) -> Iterator[tuple[TopicPartition, Any]]:
        self.readings += 1
        half = len(self._batches) // 2
        yield from self._batches[:half]
        if self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        yield from self._batches[half:]


def some(number: int) -> Batches:
    # Large enough, uncompressible, for the first half to leave before the second is asked for.
    return [(TopicPartition(OUT, one % 2), batch(b"%d-%d " % (number, one) + NOISE)) for one in range(12)]


def labels(broker: Any) -> list[bytes]:
    return sorted(value.split()[0] for value in committed_values(broker.bootstrap_servers, OUT))


def expected(*numbers: int) -> list[bytes]:
    return sorted(b"%d-%d" % (number, one) for number in numbers for one in range(12))


def publish(publisher: Publisher, number: int, batches: Any) -> None:
    offsets = {"in": {"0": 10 * (number + 1), "1": 5}}
    assert not publisher.is_published("id", number, offsets)
    publisher.publish(Marker("id", number, offsets), batches)


def time_out(broker: Broker, seconds: float = 70) -> None:
    """While the transaction is open, and until it is aborted: requests are on their way, timers run on the loop."""
    wait_for_state(broker, "Ongoing")
    broker.clock.advance(seconds=seconds)
    wait_for_state(broker, "CompleteAbort")


def wait_for_state(broker: Any, state: str | None, name: str = "query") -> None:
    with ClusterClient(broker.bootstrap_servers) as cluster:
        while True:
            found = describe_transactions(cluster, [name])[name]
            if (None if found is None else found.state) == state:
                return
            time.sleep(0.02)


def test_a_transaction_that_timed_out_is_published_again(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, some(0))
    late = Interrupted(some(1), lambda: time_out(broker))
    publish(publisher, 1, late)
    publish(publisher, 2, some(2))
    assert late.readings == 2
    assert labels(broker) == expected(0, 1, 2)


def test_time_outs_of_many_batches_do_not_add_up_to_the_longest_there_is(broker: Broker, publisher: Publisher) -> None:
    for number in range(5):
        publish(publisher, number, Interrupted(some(number), lambda: time_out(broker, 1000)))
    assert labels(broker) == expected(*range(5))


def test_a_query_that_was_idle_past_the_expiration_of_its_id_goes_on(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, some(0))
    broker.clock.advance(days=8)
    wait_for_state(broker, None)
    publish(publisher, 1, some(1))
    assert labels(broker) == expected(0, 1)


def test_another_writer_ends_this_one_and_nothing_of_it_is_seen(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, some(0))

    def take_over() -> None:
        with ClusterClient(broker.bootstrap_servers) as cluster:
            TransactionalProducer(cluster, "query").start()

    fenced = Interrupted(some(1), take_over)
    with pytest.raises(ProducerFenced, match="another writer has taken over 'query'"):
        publish(publisher, 1, fenced)
    assert fenced.readings == 1
    assert labels(broker) == expected(0)


def test_a_commit_whose_answer_was_lost_is_not_published_twice(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(publisher, 0, some(0))
    commit = TransactionalProducer.commit
    lost: list[int] = []

    def lose(producer: TransactionalProducer) -> None:
        commit(producer)
        if not lost:
            lost.append(1)
            raise ConnectionResetError("the answer is lost")

    monkeypatch.setattr(TransactionalProducer, "commit", lose)
    publish(publisher, 1, some(1))
    publish(publisher, 2, some(2))
    assert lost
    assert labels(broker) == expected(0, 1, 2)


def test_a_broker_that_restarts_in_the_middle_is_waited_for(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, Interrupted(some(0), broker.restart))
    assert labels(broker) == expected(0)


def test_a_transaction_longer_than_the_cluster_allows_says_what_to_change(broker: Broker) -> None:
    address = ClusterAddress(broker.bootstrap_servers)
    longest = 15 * 60 * 1000
    publisher = Publisher(PublisherSettings(address, "query", "group", MARKERS, transaction_timeout_ms=longest))
    publisher.check_cluster(OUT)
    with pytest.raises(OttlaError, match=r"its time-out of 900 s.*maxBytesPerTrigger.*transaction\.max\.timeout\.ms"):
        publish(publisher, 0, Interrupted(some(0), lambda: time_out(broker, 1000)))
    publish(publisher, 0, some(0))
    publisher.close()
    assert labels(broker) == expected(0)


def test_only_offsets_that_moved_are_committed_after_the_first_batch(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[set[TopicPartition]] = []
    commit_offsets = TransactionalProducer.commit_offsets

    def note(producer: TransactionalProducer, group: str, offsets: Any) -> None:
        told.append(set(offsets))
        commit_offsets(producer, group, offsets)

    monkeypatch.setattr(TransactionalProducer, "commit_offsets", note)
    for number in range(3):
        publish(publisher, number, some(number))
    both = {TopicPartition("in", 0), TopicPartition("in", 1)}
    assert told == [both, {TopicPartition("in", 0)}, {TopicPartition("in", 0)}]
    with ClusterClient(broker.bootstrap_servers) as cluster:
        assert {where: one.offset for where, one in committed_offsets(cluster, "group").items()} == {
            TopicPartition("in", 0): 30,
            TopicPartition("in", 1): 5,
        }
        marker = read_marker(cluster, MARKERS, "query")
    assert marker == Marker("id", 2, {"in": {"0": 30, "1": 5}})


def test_a_partition_in_which_nothing_moves_keeps_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever goes on from the group after a lost checkpoint reads it once more, from its beginning."""
    monkeypatch.setattr("ottla.spark.sink.publishing._TOLD_AGE_S", 0.0)  # each batch is hours after the last
    idle = TopicPartition("in", 1)
    with Broker({"log.retention.ms": "-1"}) as broker, ClusterClient(broker.bootstrap_servers) as cluster:
        for topic in (OUT, "in"):
            broker.create_topic(topic, 2)
        with TransactionalProducer(cluster, "silent") as silent:
            silent.start()
            with silent.transaction():
                silent.commit_offsets("silent", {idle: Committed(5)})
        publisher = Publisher(PublisherSettings(ClusterAddress(broker.bootstrap_servers), "query", "group", MARKERS))
        publisher.check_cluster(OUT)
        for number in range(3):
            publish(publisher, number, some(number))
            broker.clock.advance(days=4)
        publisher.close()
        while committed_offsets(cluster, "silent"):
            time.sleep(0.02)
        assert committed_offsets(cluster, "group")[idle].offset == 5


def test_a_group_without_offsets_is_no_reason_to_read_everything_again(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, some(0))
    servers = broker.bootstrap_servers
    assert json.loads(position(group="group", bootstrap=servers, topics=["in"])) == {"in": {"0": 10, "1": 5}}
    with pytest.raises(OttlaError, match=r"group 'grupo' has no offsets: .* startingOffsets"):
        position(group="grupo", bootstrap=servers)
    with pytest.raises(OttlaError, match=r"group 'group' has no offsets of out: "):
        position(group="group", bootstrap=servers, topics=["out"])
