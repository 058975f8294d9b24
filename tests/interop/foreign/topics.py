"""Topics for a test, made by confluent-kafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.process import BrokerProcess


def create_topic(broker: BrokerProcess, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([topic], operation_timeout=20)[name].result(30)
    return name
