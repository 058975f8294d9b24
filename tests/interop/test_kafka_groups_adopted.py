"""Groups that Kafka stored are found by Ottla on the same folder, with their offsets and members."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.broker.handlers.group_scenario import PROPERTIES, transcript
from tests.broker.handlers.group_talk import Talk, consumer_heartbeat, fetch_request
from tests.support.broker_fixtures import topic_id
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("kafka-peer")]


def groups_of(talk: Talk) -> dict[str, str]:
    found = talk.client.call(m.ListGroupsRequest(), 5)
    assert found.error_code == 0
    return {one.group_id: one.group_type for one in found.groups}


def members_of(talk: Talk, group: str) -> list[tuple[str, int, list[int]]]:
    """Of a consumer group: who, in which epoch, with which partitions."""
    (found,) = talk.client.call(m.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    return sorted(
        (one.member_id, one.member_epoch, [two for part in one.assignment.topic_partitions for two in part.partitions])
        for one in found.members
    )


def offsets_of(talk: Talk, group: str) -> dict[int, tuple[int, str]]:
    found = talk.client.call(fetch_request(talk, group, (0, 1, 2, 3)), 9).groups[0]
    return {one.partition_index: (one.committed_offset, one.metadata) for one in found.topics[0].partitions}


def test_what_kafka_stored_is_what_we_find(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path, PROPERTIES) as kafka:
        transcript(kafka.bootstrap)
        talk = Talk(kafka.bootstrap)
        groups = groups_of(talk)
        offsets = {group: offsets_of(talk, group) for group in groups}
        talk.topic_id = topic_id(talk.client, "orders")
        for member in ("m1", "m2"):
            assert talk.client.call(consumer_heartbeat(talk, "kip-848", member, 0), 1).error_code == 0
        members = members_of(talk, "kip-848")
        groups = groups_of(talk)
        talk.close()
    with Broker({**PROPERTIES, "ottla.adopt.logs": "true"}, data_dir=kafka.data_dir) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.client.call(m.FindCoordinatorRequest(key="g"), 3)
        while talk.client.call(m.ListGroupsRequest(), 5).error_code:
            pass
        assert groups_of(talk) == groups
        assert {group: offsets_of(talk, group) for group in offsets} == offsets
        assert members_of(talk, "kip-848") == members
        assert len(groups) > 10
        talk.close()
