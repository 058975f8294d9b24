"""Client quotas on the wire: how they are set, and what becomes of a client that uses more, and of its neighbours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.support.quotas import ANY, alter_quota, quotas, set_quota
from tests.support.raw_client import RawClient, batch_of, fetch_request, produce_request

KIB = 1024
# What a group of librdkafka reads at a time, from the start.
GROUP = {"group.id": "g", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 20 * KIB}
# A second may be used at once, instead of ten.
SHORT = {"quota.window.num": "2", "quota.window.size.seconds": "1"}


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(getattr(request, "param", None)) as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


def named(broker: Broker, client_id: str) -> RawClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return RawClient(host, int(port), client_id=client_id)


def produced(client: RawClient, size: int) -> int:
    """For how long the client is throttled afterwards."""
    answer = client.call(produce_request("t", batch_of(bytes(size))), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0
    throttle_ms: int = answer.throttle_time_ms
    return throttle_ms


class TestSettingThem:
    def test_they_are_set_changed_described_and_removed(self, client: RawClient) -> None:
        set_quota(client, {"user": "ada"}, producer_byte_rate=1000, request_percentage=12.5)
        set_quota(client, {"user": "ada", "client-id": "app"}, consumer_byte_rate=5)
        set_quota(client, {"user": None}, controller_mutation_rate=0.5)
        set_quota(client, {"ip": "10.0.0.1"}, connection_creation_rate=7)
        ada, both = (("user", "ada"),), (("client-id", "app"), ("user", "ada"))
        assert quotas(client, user="ada", strict=True) == {
            ada: {"producer_byte_rate": 1000, "request_percentage": 12.5}
        }
        assert quotas(client, user="ada").keys() == {ada, both}
        assert quotas(client, user=None) == {(("user", None),): {"controller_mutation_rate": 0.5}}
        assert quotas(client, user=ANY, strict=True).keys() == {ada, (("user", None),)}
        assert quotas(client, ip=ANY) == {(("ip", "10.0.0.1"),): {"connection_creation_rate": 7}}
        assert len(quotas(client)) == 4
        set_quota(client, {"user": "ada"}, producer_byte_rate=None, request_percentage=20)
        assert quotas(client, user="ada", strict=True) == {ada: {"request_percentage": 20}}
        set_quota(client, {"user": "ada"}, request_percentage=None, consumer_byte_rate=None)
        assert quotas(client, user="ada").keys() == {both}

    def test_they_are_there_after_a_restart(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "slow/../app"}, producer_byte_rate=1)
        broker.restart()
        with RawClient.to(broker.bootstrap_servers) as again:
            assert quotas(again) == {(("client-id", "slow/../app"),): {"producer_byte_rate": 1}}
            with named(broker, "slow/../app") as slow:
                assert produced(slow, 100) > 0

    @pytest.mark.parametrize(
        ("entity", "values", "why"),
        [
            ({}, {}, "Invalid empty client quota entity"),
            ({"group": "g"}, {}, "Unhandled client quota entity type: group"),
            ({"user": ""}, {}, "Empty user not supported"),
            ({"user": "a", "ip": "10.0.0.1"}, {}, "should not be combined"),
            ({"ip": "no-such-host"}, {}, "not a valid IP"),
            ({"ip": "::0001"}, {}, "write ::1"),
            ({"ip": "::ffff:10.0.0.1"}, {}, "write 10.0.0.1"),
            ({"ip": None}, {"producer_byte_rate": 1}, "Invalid configuration key producer_byte_rate"),
            ({"user": "a"}, {"connection_creation_rate": 1}, "Invalid configuration key connection_creation_rate"),
            ({"user": "a"}, {"nonsense": 1}, "Invalid configuration key nonsense"),
            ({"user": "a"}, {"producer_byte_rate": 0}, "must be greater than 0"),
            ({"user": "a"}, {"producer_byte_rate": -5}, "must be greater than 0"),
            ({"user": "a"}, {"producer_byte_rate": float("nan")}, "must be greater than 0"),
            ({"user": "a"}, {"request_percentage": float("inf")}, "finite"),
            ({"user": "a"}, {"producer_byte_rate": 1.5}, "must be a Long value"),
            ({"ip": None}, {"connection_creation_rate": 1.5}, "must be an Integer value"),
            ({"ip": None}, {"connection_creation_rate": 2.0**31}, "too large for an INT"),
            ({"user": "a"}, {"consumer_byte_rate": 1e300}, "too large for a LONG"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, client: RawClient, entity: dict[str, str | None], values: dict[str, float], why: str
    ) -> None:
        answer = alter_quota(client, entity, **values)
        assert answer.error_code == ErrorCode.INVALID_REQUEST and why in answer.error_message
        assert quotas(client) == {}

    def test_validate_only_and_duplicates_change_nothing(self, client: RawClient) -> None:
        one = m.AlterClientQuotasRequest
        entry = one.EntryData(
            entity=[one.EntityData(entity_type="user", entity_name="a")],
            ops=[one.OpData(key="producer_byte_rate", value=5.0)],
        )
        answers = client.call(one(entries=[entry, entry], validate_only=True), 1).entries
        assert [answer.error_code for answer in answers] == [0, ErrorCode.INVALID_REQUEST]
        assert quotas(client) == {}


class TestThrottling:
    def test_each_client_id_of_a_connection_counts_for_itself(self, broker: Broker, client: RawClient) -> None:
        """Also where a request is known by its first bytes, which are those of another connection's."""
        set_quota(client, {"client-id": "bad"}, producer_byte_rate=1)
        with named(broker, "bad") as limited:
            assert produced(limited, 10) > 0
        with named(broker, "was") as one:
            assert produced(one, 10) == 0
            one._client_id = "bad"
            assert produced(one, 10) > 0

    def test_a_producer_is_answered_at_once_and_heard_again_when_its_time_is_over(
        self, broker: Broker, client: RawClient
    ) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=10 * KIB)
        with named(broker, "slow") as slow:
            assert produced(slow, 50 * KIB) == 0
            throttle_ms = produced(slow, 100 * KIB)
            assert throttle_ms == pytest.approx(5_000, rel=0.1), "150 KiB of the 100 that ten seconds allow"
            slow.send(produce_request("t", batch_of(b"x")), 12)
            for _ in range(200):  # turns of a neighbour: none brings the slow one an answer
                assert produced(client, 10) == 0
            slow.sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                slow.sock.recv(1)
            slow.sock.settimeout(30)
            broker.clock.advance(seconds=throttle_ms / 1000 + 0.1)
            assert slow.receive("ProduceRequest", 12).throttle_time_ms < throttle_ms

    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    @pytest.mark.parametrize("version", [3, 8, 9, 12])
    def test_over_half_a_minute_a_producer_gets_its_rate(self, broker: Broker, client: RawClient, version: int) -> None:
        """Requests of one size, most of them known by their first bytes, on a clock that is moved as they are told."""
        limit = 20 * KIB
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=limit)
        request = produce_request("t", batch_of(bytes(8 * KIB)))
        total, elapsed_ms = 0, 0
        with named(broker, "slow") as slow:
            began_ms = broker.clock.monotonic_ms()
            while elapsed_ms < 30_000:
                throttle_ms = slow.call(request, version).throttle_time_ms
                total += 8 * KIB
                if throttle_ms:
                    broker.clock.advance(seconds=throttle_ms / 1000)
                elapsed_ms = broker.clock.monotonic_ms() - began_ms
        assert total / (elapsed_ms / 1000) == pytest.approx(limit, rel=0.1)

    def test_acks_0_is_muted_too(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=KIB)
        with named(broker, "slow") as slow:
            slow.send(produce_request("t", batch_of(bytes(20 * KIB)), acks=0), 12)
            slow.send(m.MetadataRequest(topics=[]), 12)
            for _ in range(100):
                assert produced(client, 10) == 0
            slow.sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                slow.sock.recv(1)
            slow.sock.settimeout(30)
            broker.clock.advance(seconds=30)
            assert slow.receive("MetadataRequest", 12).brokers

    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    def test_a_consumer_gets_no_records_while_it_is_throttled_and_all_of_them_in_time(
        self, broker: Broker, client: RawClient
    ) -> None:
        for _ in range(100):
            produced(client, KIB)
        limit = 10 * KIB
        set_quota(client, {"client-id": "slow"}, consumer_byte_rate=limit)
        offset = received = empty = 0
        session_id, epoch = 0, 0
        with named(broker, "slow") as slow:
            began_ms = broker.clock.monotonic_ms()
            while offset < 100:
                wanted = fetch_request(
                    [("t", 0, offset)],
                    max_wait_ms=0,
                    partition_max_bytes=KIB,
                    session_id=session_id,
                    session_epoch=epoch,
                )
                answer = slow.call(wanted, 12)
                session_id, epoch = answer.session_id, epoch + 1
                assert answer.error_code == 0 and session_id
                if answer.throttle_time_ms:
                    assert not answer.responses
                    empty += 1
                    broker.clock.advance(seconds=answer.throttle_time_ms / 1000)
                else:
                    received += len(answer.responses[0].partitions[0].records)
                    offset += 1
            elapsed_s = (broker.clock.monotonic_ms() - began_ms) / 1000
        assert empty > 0
        assert received / elapsed_s == pytest.approx(limit, rel=0.1)

    def test_a_fetch_that_asks_for_more_than_its_quota_ever_allows_is_served(
        self, broker: Broker, client: RawClient
    ) -> None:
        for _ in range(8):
            produced(client, 10 * KIB)
        set_quota(client, {"client-id": "slow"}, consumer_byte_rate=2 * KIB)
        with named(broker, "slow") as slow:
            line = slow.fetch("t", 0, min_bytes=50 * KIB, max_wait_ms=30_000)
            assert 0 < len(line.records) <= 20 * KIB + 200

    def test_a_parked_fetch_is_throttled_when_it_is_answered(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "slow"}, consumer_byte_rate=KIB)
        with named(broker, "slow") as slow:
            slow.send(fetch_request([("t", 0, 0)], max_wait_ms=30_000), 12)
            produced(client, 9 * KIB)
            assert slow.receive("FetchRequest", 12).throttle_time_ms == 0
            slow.send(fetch_request([("t", 0, 1)], max_wait_ms=30_000), 12)
            produced(client, 9 * KIB)
            answer = slow.receive("FetchRequest", 12)
            assert answer.throttle_time_ms > 0 and not answer.responses

    def test_the_time_of_the_loop_counts(self, broker: Broker, client: RawClient) -> None:
        for number in range(10):
            broker.create_topic(f"topic-{number}", 20)
        set_quota(client, {"client-id": "greedy"}, request_percentage=0.01)
        with named(broker, "greedy") as greedy:
            deadline = time.monotonic() + 60
            while not (throttle_ms := greedy.call(m.MetadataRequest(topics=None), 12).throttle_time_ms):
                assert time.monotonic() < deadline
            assert 0 < throttle_ms <= 1000, "at most a window"
            assert produced(client, 10) == 0

    def test_the_default_for_users_counts_for_those_who_do_not_log_in(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"user": None}, producer_byte_rate=KIB)
        assert produced(client, 20 * KIB) > 0
        with named(broker, "other") as other:
            set_quota(other, {"user": "ANONYMOUS"}, producer_byte_rate=10_000 * KIB)
            assert produced(other, 20 * KIB) == 0

    def test_who_hangs_up_while_muted_leaves_nothing_behind(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=1)
        listener: Any = broker.server._listeners[0]
        before = listener.connection_count
        for _ in range(20):
            with named(broker, "slow") as slow:
                assert produced(slow, KIB) > 0
        deadline = time.monotonic() + 30
        while listener.connection_count > before:
            assert time.monotonic() < deadline, "their hour is not waited for"
            produced(client, 1)

    def test_a_stop_does_not_wait_for_those_who_are_muted(self, client: RawClient, broker: Broker) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=1)
        with named(broker, "slow") as slow:
            produced(slow, KIB)
            began = time.monotonic()
            broker.restart()
            assert time.monotonic() - began < 9, "the grace time is ten seconds"

    def test_a_removed_quota_costs_nothing_more(self, broker: Broker, client: RawClient) -> None:
        assert broker.server.broker.throttling is None
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=1)
        assert broker.server.broker.throttling is not None
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=None)
        assert broker.server.broker.throttling is None
        set_quota(client, {"ip": None}, connection_creation_rate=1000)
        assert broker.server.broker.throttling is None, "requests have nothing to do with it"


class TestMutations:
    def _create(self, client: RawClient, name: str, partitions: int, version: int = 7) -> Any:
        topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), version)
        return answer.throttle_time_ms, answer.topics[0].error_code

    def test_a_client_that_understands_it_is_refused(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "eager"}, controller_mutation_rate=2)
        with named(broker, "eager") as eager:
            assert self._create(eager, "a", 42) == (0, 0), "22 are there, and it may be overdrawn once"
            throttle_ms, code = self._create(eager, "b", 1)
            assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED and 9_000 < throttle_ms <= 10_000
            broker.clock.advance(seconds=throttle_ms / 1000 + 1)
            assert self._create(eager, "b", 10) == (0, 0)
            more = m.CreatePartitionsRequest.CreatePartitionsTopic(name="b", count=11, assignments=None)
            refused = eager.call(m.CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3)
            assert refused.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            broker.clock.advance(seconds=refused.throttle_time_ms / 1000 + 0.1)
            assert eager.call(m.CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3).results[0].error_code == 0
            assert self._create(client, "c", 50) == (0, 0), "of somebody else"

    def test_topics_that_brokers_need_for_themselves_count_for_nobody(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"user": None}, controller_mutation_rate=1)
        assert self._create(client, "a", 40) == (0, 0)
        assert self._create(client, "__transaction_state", 5) == (0, 0)
        assert self._create(client, "b", 1)[1] == ErrorCode.THROTTLING_QUOTA_EXCEEDED

    def test_an_older_client_is_served_and_has_to_wait(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "eager"}, controller_mutation_rate=2)
        with named(broker, "eager") as eager:
            throttle_ms, code = self._create(eager, "a", 42, version=5)
            assert code == 0 and 9_000 < throttle_ms <= 10_000
            eager.send(m.MetadataRequest(topics=[]), 12)
            eager.sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                eager.sock.recv(1)
            eager.sock.settimeout(30)
            broker.clock.advance(seconds=throttle_ms / 1000)
            eager.receive("MetadataRequest", 12)
            throttle_ms = eager.call(m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=30_000), 4).throttle_time_ms
            assert throttle_ms > 0


class TestBrokers:
    @pytest.mark.parametrize("partitions", [1, 5_000], ids=["small", "in turns"])
    def test_a_connection_that_fetched_as_a_replica_once_has_its_quotas_all_the_same(
        self, broker: Broker, client: RawClient, partitions: int
    ) -> None:
        """Without an authorizer anybody may do so; only that fetch is not counted."""
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=KIB)
        with named(broker, "slow") as slow:
            wanted = [("t", number, 0) for number in range(partitions)]
            slow.call(fetch_request(wanted, replica_id=7, max_wait_ms=0), 12)
            assert produced(slow, 50 * KIB) > 0


class TestConnections:
    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    def test_an_address_that_connects_too_often_is_left_waiting(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        served = refused = 0
        for _ in range(4):
            with RawClient.to(broker.bootstrap_servers) as one:
                one.send(m.ApiVersionsRequest(), 0)
                try:
                    one.receive("ApiVersionsRequest", 0)
                    served += 1
                except ConnectionError:
                    refused += 1
        assert refused > 0 and served > 0
        set_quota(client, {"ip": "127.0.0.1"}, connection_creation_rate=None)
        with RawClient.to(broker.bootstrap_servers) as one:
            assert one.call(m.ApiVersionsRequest(), 0).error_code == 0


class TestRealClients:
    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    def test_confluent_is_told_and_loses_nothing(self, broker: Broker, client: RawClient) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=150 * KIB, consumer_byte_rate=150 * KIB)
        told: list[Any] = []
        settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "slow", "throttle_cb": told.append}
        producer = Producer({**settings, "linger.ms": 5, "batch.size": 20 * KIB})
        for number in range(24):
            producer.produce("t", bytes(10 * KIB), key=b"%d" % number)
            producer.poll(0)
        assert producer.flush(60) == 0
        producer.poll(0.1)
        assert any(event.throttle_time > 0 for event in told)
        consumer = Consumer({**settings, **GROUP})
        consumer.subscribe(["t"])
        told.clear()
        keys: list[bytes] = []
        deadline = time.monotonic() + 90
        while len(keys) < 24 and time.monotonic() < deadline:
            record = consumer.poll(1)
            if record is not None:
                keys.append(record.key())
        consumer.close()
        assert keys == [b"%d" % number for number in range(24)]
        assert any(event.throttle_time > 0 for event in told)

    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    def test_kafka_python_waits_and_loses_nothing(
        self, broker: Broker, client: RawClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=100 * KIB)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="slow", batch_size=20 * KIB)
        sent = [producer.send("t", bytes(10 * KIB)) for _ in range(40)]
        assert [one.get(60).offset for one in sent] == list(range(40))
        producer.close()
        assert "ProduceResponse throttled by broker" in caplog.text

    @pytest.mark.slow
    @pytest.mark.parametrize("broker", [SHORT], indirect=True)
    def test_over_half_a_minute_a_real_producer_and_consumer_get_their_rate(
        self, broker: Broker, client: RawClient
    ) -> None:
        limit = 500 * KIB
        set_quota(client, {"client-id": "slow"}, producer_byte_rate=limit, consumer_byte_rate=limit)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "slow"}
        producer = Producer({**settings, "batch.size": 50 * KIB, "queue.buffering.max.kbytes": 500})
        sent = 0

        def count(error: object, message: Any) -> None:
            nonlocal sent
            assert error is None
            sent += len(message.value())

        began = time.monotonic()
        while time.monotonic() < began + 30:
            try:
                producer.produce("t", bytes(10 * KIB), on_delivery=count)
            except BufferError:
                producer.poll(0.05)
            producer.poll(0)
        assert sent / (time.monotonic() - began) == pytest.approx(limit, rel=0.1)
        producer.flush(60)
        consumer = Consumer({**settings, **GROUP})
        consumer.subscribe(["t"])
        received = 0
        began = time.monotonic()
        while time.monotonic() < began + 30:
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                received += len(record.value())
        rate = received / (time.monotonic() - began)
        consumer.close()
        assert rate == pytest.approx(limit, rel=0.1)
