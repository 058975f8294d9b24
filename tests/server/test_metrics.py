"""What a broker tells of itself over HTTP, after real clients have used it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ottla.common.errors import OttlaError
from ottla.protocol.messages import ApiVersionsRequest, CreateTopicsRequest, ListOffsetsRequest, MetadataRequest
from ottla.testing import Broker
from tests.support.loop_turns import TURN_S_MAX, LoopTurns
from tests.support.metrics_page import MetricsPage, get
from tests.support.raw_client import (
    ConnectionClosed,
    RawClient,
    batch_of,
    fetch_request,
    produce_request,
    request_frame,
)
from tests.support.scram_login import log_in

SETTINGS = {"ottla.metrics.listen": "127.0.0.1:0", "ottla.metrics.topics.max": "3"}
REQUESTS = "kafka_network_requestmetrics_requests_total"
TOTAL = "kafka_network_requestmetrics_totaltimems_count"


def _url(broker: Broker) -> str:
    endpoint = broker.server.metrics
    assert endpoint is not None
    return endpoint.url


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


def _page(broker: Broker) -> MetricsPage:
    return MetricsPage.at(f"{_url(broker)}/metrics")


def test_every_request_is_counted_once_and_all_its_times_are_known(broker: Broker, client: RawClient) -> None:
    broker.create_topic("counted")
    before = _page(broker)
    for _ in range(1_000):  # more than are sorted into buckets at a time
        client.produce("counted", batch_of(b"value"))
    client.call(fetch_request([("counted", 0, 0)]), 12)
    after = _page(broker)

    def grown(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    assert grown(REQUESTS, request="Produce") == 1_000
    assert grown(REQUESTS, request="Fetch", version="12") == 1
    for time in ("total", "requestqueue", "local", "remote", "throttle", "responsesend"):
        name = f"kafka_network_requestmetrics_{time}timems"
        assert grown(f"{name}_count", request="Produce") == 1_000
        assert grown(f"{name}_bucket", request="Produce", le="+Inf") == 1_000
    parts = sum(
        grown(f"kafka_network_requestmetrics_{time}timems_sum", request="Produce") for time in ("local", "remote")
    )
    assert 0 < parts <= grown("kafka_network_requestmetrics_totaltimems_sum", request="Produce")
    assert grown("kafka_network_requestmetrics_requestbytes_sum", request="Produce") > 5_000
    assert grown("kafka_server_brokertopicmetrics_messagesin_total", topic="counted") == 1_000
    size = after.value("kafka_log_log_size", topic="counted")
    assert grown("kafka_server_brokertopicmetrics_bytesin_total", topic="counted") == size
    assert grown("kafka_server_brokertopicmetrics_bytesout_total", topic="counted") == size
    assert after.value("kafka_log_log_logendoffset", topic="counted", partition="0") == 1_000


def test_none_of_many_clients_is_missed_nor_counted_twice(broker: Broker) -> None:
    """Their requests lie in one turn in any mixture: of two versions, answered at once and later, and such that break
    the connection behind requests whose answers have not left yet."""
    broker.create_topic("many")
    broker.create_topic("many-synced", configs={"flush.messages": "1"})
    each, versions = 60, (9, 12)
    requests = [produce_request(topic, batch_of(b"value"), acks=-1) for topic in ("many", "many-synced")]
    before = _page(broker)
    clients = [RawClient.to(broker.bootstrap_servers) for _ in range(16)]
    for _ in range(each):
        for number, client in enumerate(clients):
            client.send(requests[number % 2], versions[number // 2 % 2])
    broken, whole = clients[:4], clients[4:]
    for number, client in enumerate(broken):
        client.send_frame(request_frame(requests[number % 2], versions[number // 2 % 2])[:-20])
    for number, client in enumerate(whole, len(broken)):
        for _ in range(each):
            client.receive("ProduceRequest", versions[number // 2 % 2])
    for client in broken:
        with pytest.raises(ConnectionClosed):
            while True:
                client.receive_frame()
    for client in clients:
        client.close()
    after = _page(broker)

    def grown(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    for version in versions:
        assert grown(REQUESTS, request="Produce", version=str(version)) == (each * len(clients) + len(broken)) / 2
    taken = grown("kafka_server_brokertopicmetrics_messagesin_total")
    assert taken == each * len(clients), "and each that was counted was handled"
    # What was promised to a connection that is gone has no end to be timed.
    assert each * len(whole) <= grown(TOTAL, request="Produce") <= each * len(clients) + len(broken)


def test_a_fetch_that_waits_is_parked_and_its_time_is_remote(broker: Broker, client: RawClient) -> None:
    broker.create_topic("empty")
    before = _page(broker)
    client.send(fetch_request([("empty", 0, 0)], max_wait_ms=60_000, min_bytes=1), 12)
    while not (parked := _page(broker)).value(
        "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch"
    ):
        pass
    assert parked.value(REQUESTS, request="Fetch") == before.value(REQUESTS, request="Fetch") + 1
    with RawClient.to(broker.bootstrap_servers) as other:
        other.produce("empty", batch_of(b"value"))
    client.receive("FetchRequest", 12)
    after = _page(broker)
    name = "kafka_network_requestmetrics_remotetimems_sum"
    assert after.value(name, request="Fetch") > before.value(name, request="Fetch")
    assert after.value(TOTAL, request="Fetch") == before.value(TOTAL, request="Fetch") + 1


def test_errors_are_counted_by_name(broker: Broker, client: RawClient) -> None:
    client.call(produce_request("nowhere", batch_of(b"x"), partition=7), 9)
    client.call(fetch_request([("nowhere", 0, 0)]), 12)
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="nowhere", partitions=[partition])
    client.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    page = _page(broker)
    for api in ("Produce", "Fetch", "ListOffsets"):
        name = "kafka_network_requestmetrics_errors_total"
        assert page.value(name, request=api, error="UNKNOWN_TOPIC_OR_PARTITION") == 1, api


def test_errors_of_metadata_are_counted_too(broker: Broker, client: RawClient) -> None:
    """Its answers are kept encoded, so nobody finds the errors in them."""
    name = "kafka_network_requestmetrics_errors_total"
    before = _page(broker).value(name, request="Metadata")
    topics = [MetadataRequest.MetadataRequestTopic(name=wanted) for wanted in ("nowhere", "no/topic")]
    client.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    page = _page(broker)
    assert page.value(name, request="Metadata") == before + 2
    assert page.value(name, request="Metadata", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert page.value(name, request="Metadata", error="INVALID_TOPIC_EXCEPTION") == 1


def test_a_client_that_does_not_read_costs_the_api_that_it_does_not_read_from() -> None:
    """Here Produce by its shortcut, right behind something else."""
    settings = SETTINGS | {"socket.send.buffer.bytes": "4096"}
    with Broker(settings) as slow, RawClient.to(slow.bootstrap_servers) as client:
        slow.create_topic("t")
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.produce("t", batch_of(b"x"))
        client.call(MetadataRequest(topics=[]), 9)
        for _ in range(1_000):
            client.send(produce_request("t", batch_of(b"x")), 12)
        for _ in range(1_000):
            client.receive("ProduceRequest", 12)
        name = "kafka_network_requestmetrics_responsesendtimems_sum"
        # Told when the last of what had to wait has left, which is after the client has it.
        while not (page := _page(slow)).value(name):
            pass
        assert page.value(name, request="Produce") == page.value(name)


def test_connections_are_counted_by_what_their_clients_say_they_are(broker: Broker, client: RawClient) -> None:
    client.call(ApiVersionsRequest(client_software_name="tester", client_software_version="1.2"), 3)
    name = "kafka_server_socket_server_metrics_connections"
    assert _page(broker).value(name, client_software_name="tester", client_software_version="1.2") == 1


def test_logins_are_counted_by_listener_and_so_are_those_that_are_refused() -> None:
    listening = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ottla.first.users": "SCRAM-SHA-256=[name=ada,password=secret]",
        "connection.failed.authentication.delay.ms": "0",
    }
    with Broker(SETTINGS | listening) as broker:
        for password, count in (("secret", 3), ("wrong", 2)):
            for _ in range(count):
                with RawClient.to(broker.bootstrap_servers) as client:
                    log_in(client, "ada", password)
        page = _page(broker)
        name = "kafka_server_socket_server_metrics_{}_authentication_total"
        assert page.value(name.format("successful"), listener="SASL_PLAINTEXT") == 3
        assert page.value(name.format("failed"), listener="SASL_PLAINTEXT") == 2


def test_topics_beyond_the_bound_are_told_together_and_nothing_is_lost(broker: Broker, client: RawClient) -> None:
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    before = _page(broker).value(name)
    for number in range(6):
        broker.create_topic(f"many-{number}")
        for _ in range(number + 1):
            client.produce(f"many-{number}", batch_of(b"value"))
    page = _page(broker)
    assert len(page.labels(name, "topic") - {"__other__"}) == 3
    assert page.value(name) - before == 21
    client.produce("many-5", batch_of(b"value"))
    later = _page(broker)
    assert later.labels(name, "topic") == page.labels(name, "topic")
    assert later.value(name) == page.value(name) + 1


def test_health(broker: Broker) -> None:
    assert get(f"{_url(broker)}/health/live") == (200, "alive\n")
    assert get(f"{_url(broker)}/health/ready") == (200, "ready\n")
    status, text = get(f"{_url(broker)}/elsewhere")
    assert status == 404 and "/metrics" in text


def test_a_broker_that_stops_is_alive_and_not_ready() -> None:
    with Broker(SETTINGS) as stopping:
        endpoint = stopping.server.metrics
        assert endpoint is not None
        endpoint.is_stopping()
        assert get(f"{endpoint.url}/health/live")[0] == 200
        assert get(f"{endpoint.url}/health/ready") == (503, "not ready: the broker is stopping\n")
        assert MetricsPage.at(f"{endpoint.url}/metrics").value("kafka_server_kafkaserver_brokerstate") == 6


def test_a_port_that_is_taken_is_said_before_anything_is_served(broker: Broker) -> None:
    address = _url(broker).removeprefix("http://")
    with pytest.raises(OttlaError, match="choose another port"):
        Broker({"ottla.metrics.listen": address}).start()


def test_a_broker_of_one_node_is_well_and_its_own_controller(broker: Broker) -> None:
    page = _page(broker)
    assert page.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert page.value("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert page.value("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert page.value("kafka_log_logmanager_offlinelogdirectorycount") == 0
    assert page.value("kafka_server_kafkaserver_brokerstate") == 3
    assert page.value("process_open_fds") > 0
    assert page.value("ottla_log_directory_free_bytes") > 0


def test_requests_behind_a_login_are_counted_once_as_well() -> None:
    with Broker(SETTINGS, security="SASL_SSL") as secured:
        secured.create_topic("t")
        for _ in range(3):
            secured.produce("t", b"x")
        page = _page(secured)
        assert page.value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 3
        name = "kafka_network_requestmetrics_totaltimems_count"
        assert 0 < page.value(name, request="Produce") == page.value(REQUESTS, request="Produce") <= 3


def test_without_the_setting_nothing_is_served_and_nothing_is_observed() -> None:
    with Broker() as quiet, RawClient.to(quiet.bootstrap_servers) as client:
        client.call(MetadataRequest(topics=[]), 9)
        assert quiet.server.metrics is None
        assert quiet.server.broker.observer is None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("topics", "partitions"), [(1, 10_000), (5_000, 2)])
def test_a_scrape_of_ten_thousand_partitions_is_no_long_turn(topics: int, partitions: int) -> None:
    with LoopTurns() as turns, Broker(SETTINGS | {"ottla.metrics.topics.max": "100"}) as broker:
        with RawClient.to(broker.bootstrap_servers) as client:
            wanted = [
                CreateTopicsRequest.CreatableTopic(name=f"t{number}", num_partitions=partitions, replication_factor=1)
                for number in range(topics)
            ]
            for start in range(0, topics, 500):
                client.call(CreateTopicsRequest(topics=wanted[start : start + 500], timeout_ms=600_000), 7)
            client.produce("t0", batch_of(b"x"))
        for _ in range(5):
            turns.reset()
            page = _page(broker)
            if turns.worst_s < TURN_S_MAX:
                break
        print(turns.worst, len(page.text))
        assert turns.worst_s < TURN_S_MAX, turns.worst
        assert page.value("kafka_server_replicamanager_leadercount") == 10_000
