"""Admin requests where Ottla has an answer of its own, or where the answer depends on the broker's settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.apis import APIS
from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.support.raw_client import RawClient

Topic = m.CreateTopicsRequest.CreatableTopic
Asked = m.MetadataRequest.MetadataRequestTopic


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


def create(client: RawClient, *topics: Any, version: int = 7, **more: Any) -> list[Any]:
    request = m.CreateTopicsRequest(topics=topics, **{"timeout_ms": 20_000, **more})
    answers: list[Any] = client.call(request, version).topics
    return answers


def metadata(client: RawClient, *names: str, version: int = 12, create: bool = False) -> Any:
    topics = [Asked(name=name) for name in names] or None
    return client.call(m.MetadataRequest(topics=topics, allow_auto_topic_creation=create), version)


class TestApiVersions:
    @pytest.mark.parametrize("version", range(5))
    def test_it_advertises_what_is_served(self, client: RawClient, version: int) -> None:
        request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = client.call(request, version)
        assert answer.error_code == ErrorCode.NONE
        found = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        assert found == {api.key: (api.min_version, api.max_version) for api in APIS.values() if not api.for_brokers}

    def test_features_below_v4_leave_out_what_old_clients_cannot_read(self, client: RawClient) -> None:
        request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        new, old = client.call(request, 4), client.call(request, 3)
        levels = {one.name: one.max_version_level for one in new.finalized_features}
        assert levels == {"metadata.version": 30, "group.version": 1, "transaction.version": 2}
        assert {one.name for one in new.supported_features} == set(levels)
        assert {one.name for one in old.supported_features} == {"metadata.version"}

    @pytest.mark.parametrize("name", ["", "-x", "a b", "ü"])
    def test_a_client_must_have_a_name(self, client: RawClient, name: str) -> None:
        request = m.ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
        assert client.call(request, 3).error_code == ErrorCode.INVALID_REQUEST

    def test_every_advertised_version_can_be_decoded_and_encoded(self) -> None:
        for api in APIS.values():
            for version in range(api.min_version, api.max_version + 1):
                if api.name == "Produce" and version < 3:
                    continue  # advertised for librdkafka, answered with an error
                codec.decoder_for(f"{api.name}Request", version)
                codec.encoder_for(f"{api.name}Response", version)


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    def test_every_version(self, client: RawClient, version: int) -> None:
        (answer,) = create(client, Topic(name=f"v{version}", num_partitions=2, replication_factor=1), version=version)
        assert answer.error_code == ErrorCode.NONE
        (topic,) = metadata(client, f"v{version}").topics
        assert len(topic.partitions) == 2
        if version >= 7:
            assert answer.topic_id == topic.topic_id
        if version >= 5:
            assert (answer.num_partitions, answer.replication_factor) == (2, 1)

    def test_replication_needs_brokers(self, client: RawClient) -> None:
        (answer,) = create(client, Topic(name="x", num_partitions=1, replication_factor=3))
        assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert "only 1 broker(s)" in answer.error_message

    def test_a_million_partitions_are_refused(self, client: RawClient) -> None:
        for topics in (
            [Topic(name="x", num_partitions=1_000_000, replication_factor=1)],
            [Topic(name=f"x{number}", num_partitions=6_000, replication_factor=1) for number in range(2)],
        ):
            for answer in create(client, *topics):
                assert answer.error_code == ErrorCode.POLICY_VIOLATION
                assert "Excessively large number of partitions" in answer.error_message
        create(client, Topic(name="small", num_partitions=1, replication_factor=1))
        request = m.CreatePartitionsRequest(
            topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="small", count=1_000_000, assignments=None)],
            timeout_ms=20_000,
        )
        assert client.call(request, 3).results[0].error_code == ErrorCode.POLICY_VIOLATION

    def test_two_topics_of_one_request_may_not_collide_either(self, client: RawClient) -> None:
        first, second = create(
            client,
            Topic(name="col.lide", num_partitions=1, replication_factor=1),
            Topic(name="col_lide", num_partitions=1, replication_factor=1),
        )
        assert first.error_code == ErrorCode.NONE
        assert second.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


class TestMetadata:
    def test_a_missing_topic_is_there_in_the_same_answer(self, client: RawClient) -> None:
        (answer,) = metadata(client, "made-on-demand", create=True).topics
        assert answer.error_code == ErrorCode.NONE
        assert [one.leader_id for one in answer.partitions] == [1]

    def test_what_cannot_be_created_says_why(self, client: RawClient) -> None:
        metadata(client, "dot.ted", create=True)
        answers = metadata(client, "no/good", "dot_ted", "", create=True).topics
        assert [one.error_code for one in answers] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 3

    def test_an_internal_topic_gets_its_own_settings(self, client: RawClient) -> None:
        (answer,) = metadata(client, "__consumer_offsets", create=True).topics
        assert answer.is_internal
        assert len(answer.partitions) == 4  # offsets.topic.num.partitions of the test broker

    def test_each_listener_tells_its_own_address(self) -> None:
        listeners = "A://127.0.0.1:0,B://127.0.0.1:0"
        properties = {
            "listeners": listeners,
            "advertised.listeners": "A://inside:1111,B://outside:2222",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
            "inter.broker.listener.name": "A",
        }
        with Broker(properties) as broker:
            addresses = broker.server.addresses
            found = []
            for host, port in addresses:
                with RawClient(host, port) as client:
                    (node,) = metadata(client).brokers
                    (again,) = client.call(m.DescribeClusterRequest(), 1).brokers
                    assert (node.host, node.port) == (again.host, again.port)
                    found.append((node.host, node.port))
        assert found == [("inside", 1111), ("outside", 2222)]


class TestProducerIds:
    @pytest.mark.parametrize("version", range(6))
    def test_each_producer_gets_an_id_of_its_own(self, client: RawClient, version: int) -> None:
        ids = [client.call(m.InitProducerIdRequest(transactional_id=None), version) for _ in range(3)]
        assert all(one.error_code == ErrorCode.NONE and one.producer_epoch == 0 for one in ids)
        assert len({one.producer_id for one in ids}) == 3


class TestWhatOneNodeDoesNotHave:
    def test_credentials_without_a_key_are_refused(self, client: RawClient) -> None:
        new = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096)
        (answer,) = client.call(m.AlterUserScramCredentialsRequest(upsertions=[new]), 0).results
        assert answer.error_code == ErrorCode.UNACCEPTABLE_CREDENTIAL, "it has neither salt nor key"

    def test_the_only_broker_stays(self, client: RawClient) -> None:
        assert client.call(m.UnregisterBrokerRequest(broker_id=1), 0).error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("version", range(3))
    def test_the_quorum_is_this_broker(self, client: RawClient, version: int) -> None:
        asked = m.DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata", partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)]
        )
        answer = client.call(m.DescribeQuorumRequest(topics=[asked]), version)
        (partition,) = answer.topics[0].partitions
        assert partition.leader_id == 1
        assert [one.replica_id for one in partition.current_voters] == [1]


class TestFeatures:
    def test_a_level_can_go_down_and_up_and_outlasts_a_restart(self, tmp_path: Path) -> None:
        def change(client: RawClient, level: int, kind: int) -> None:
            update = m.UpdateFeaturesRequest.FeatureUpdateKey(
                feature="group.version", max_version_level=level, upgrade_type=kind
            )
            answer = client.call(m.UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000), 2)
            assert answer.error_code == ErrorCode.NONE

        def levels(client: RawClient) -> tuple[int, set[str]]:
            request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
            answer = client.call(request, 4)
            return answer.finalized_features_epoch, {one.name for one in answer.finalized_features}

        with Broker(data_dir=tmp_path) as broker:
            with RawClient.to(broker.bootstrap_servers) as client:
                epoch, names = levels(client)
                change(client, 0, 2)
                assert levels(client) == (epoch + 1, names - {"group.version"})
            broker.restart()
            with RawClient.to(broker.bootstrap_servers) as client:
                assert levels(client) == (epoch + 1, names - {"group.version"})
                change(client, 1, 1)
                assert levels(client) == (epoch + 2, names)


class TestSettings:
    def test_deletion_can_be_switched_off(self) -> None:
        with (
            Broker({"delete.topic.enable": "false"}) as broker,
            RawClient.to(broker.bootstrap_servers) as client,
        ):
            broker.create_topic("kept")
            old = client.call(m.DeleteTopicsRequest(topic_names=["kept"], timeout_ms=1000), 2)
            new = client.call(m.DeleteTopicsRequest(topic_names=["kept"], timeout_ms=1000), 5)
            assert old.responses[0].error_code == ErrorCode.INVALID_REQUEST
            assert new.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED

    def test_pages_of_partitions_have_a_largest_size(self) -> None:
        with (
            Broker({"max.request.partition.size.limit": "3"}) as broker,
            RawClient.to(broker.bootstrap_servers) as client,
        ):
            broker.create_topic("a", 2)
            broker.create_topic("b", 7)
            seen, cursor = [], None
            while True:
                request = m.DescribeTopicPartitionsRequest(response_partition_limit=2000, cursor=cursor)
                page = client.call(request, 0)
                sizes = [len(topic.partitions) for topic in page.topics]
                assert sum(sizes) <= 3
                seen += [(topic.name, one.partition_index) for topic in page.topics for one in topic.partitions]
                if page.next_cursor is None:
                    break
                cursor = m.DescribeTopicPartitionsRequest.Cursor(
                    topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
                )
            assert seen == [("a", 0), ("a", 1), *(("b", index) for index in range(7))]

    def test_defaults_of_new_topics(self) -> None:
        with Broker({"num.partitions": "3"}) as broker, RawClient.to(broker.bootstrap_servers) as client:
            (topic,) = metadata(client, "t", create=True).topics
            assert len(topic.partitions) == 3


def test_log_dirs_of_all_topics(client: RawClient) -> None:
    create(client, Topic(name="here", num_partitions=2, replication_factor=1))
    (directory,) = client.call(m.DescribeLogDirsRequest(topics=None), 5).results
    assert {"here"} <= {topic.name for topic in directory.topics}
    assert directory.total_bytes >= directory.usable_bytes > 0
