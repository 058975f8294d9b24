"""With how many replicas the internal topics are made, and when."""

from __future__ import annotations

import pytest

from ottla.broker.coordinators.internal_topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    internal_topic,
    internal_topic_of_cluster,
)
from ottla.common.config import BrokerConfig
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import BrokerImage, ClusterImage, Registration


def config(**properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.load({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/nowhere", **named})


def image(registered: int, alive: int) -> ClusterImage:
    return ClusterImage(
        "c",
        registrations={number: Registration(1, is_active=number < alive) for number in range(registered)},
        brokers={number: BrokerImage(number, None, {}) for number in range(alive)},
    )


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_a_single_node_has_one_copy(name: str) -> None:
    assert internal_topic(config(), name, 1).replication_factor == 1


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
@pytest.mark.parametrize(("registered", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_a_cluster_has_as_many_copies_as_are_asked_for_or_as_it_has_brokers(
    name: str, registered: int, factor: int
) -> None:
    assert internal_topic_of_cluster(config(), name, image(registered, registered)).replication_factor == factor


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
@pytest.mark.parametrize(("registered", "alive"), [(2, 1), (3, 1), (3, 2), (5, 2)])
def test_brokers_that_are_away_are_waited_for(name: str, registered: int, alive: int) -> None:
    with pytest.raises(ApiError, match="brokers are alive") as refused:
        internal_topic_of_cluster(config(), name, image(registered, alive))
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_cluster_goes_on_without_those_that_it_does_not_need() -> None:
    assert internal_topic_of_cluster(config(), OFFSETS_TOPIC, image(5, 3)).replication_factor == 3
    asked = config(offsets_topic_replication_factor="2")
    assert internal_topic_of_cluster(asked, OFFSETS_TOPIC, image(3, 2)).replication_factor == 2


@pytest.mark.parametrize(("registered", "expected"), [(1, "1"), (2, "2"), (3, "2")])
def test_decisions_need_as_many_copies_as_there_can_be(registered: int, expected: str) -> None:
    topic = internal_topic_of_cluster(config(), TRANSACTIONS_TOPIC, image(registered, registered))
    assert topic.configs["min.insync.replicas"] == expected
