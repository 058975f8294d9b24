"""MirrorMaker 2 from one broker of ours to another, exactly once: records, settings and positions of groups arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.interop.products.conftest import MakeBroker, Reader, send
from tests.interop.products.program import Program
from tests.support.brokers import OttlaProcess
from tests.support.process import free_ports

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("foreign")]
PATIENCE_S = 200.0
SETTINGS = """\
clusters=here, there
here.bootstrap.servers={here}
there.bootstrap.servers={there}
here->there.enabled=true
here->there.topics=orders
here->there.groups=billing
there->here.enabled=false
there.exactly.once.source.support=enabled
dedicated.mode.enable.internal.rest=true
listeners=http://127.0.0.1:{port}
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
refresh.topics.interval.seconds=2
refresh.groups.interval.seconds=2
offset.lag.max=0
"""


def committed(broker: OttlaProcess, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        (position,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        return int(position.offset)
    finally:
        consumer.close()


def commit(broker: OttlaProcess, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_topic_is_mirrored_with_its_settings_and_its_groups(make_broker: MakeBroker, tmp_path: Path) -> None:
    here, there = make_broker("here"), make_broker("there")
    create_topic(here, "orders", config={"retention.ms": "86400000"})
    wanted = [f"order {number}" for number in range(2000)]
    send(here, "orders", wanted[:1000])
    commit(here, "billing", "orders", 1000)
    settings = tmp_path / "mirror.properties"
    settings.write_text(SETTINGS.format(here=here.bootstrap, there=there.bootstrap, port=free_ports(1)[0]))
    mirror = Program("org.apache.kafka.connect.mirror.MirrorMaker", [settings], tmp_path / "mirror.log")
    reader = Reader(there, "here.orders")
    with mirror:
        eventually(reader.values, lambda seen: len(seen) >= 1000, PATIENCE_S)
        mirror.kill()
        send(here, "orders", wanted[1000:])
        mirror.start()
        eventually(reader.values, lambda seen: len(seen) >= 2000, PATIENCE_S)
        assert reader.values() == wanted
        commit(here, "billing", "orders", 2000)
        eventually(lambda: committed(there, "billing", "here.orders"), lambda seen: seen > 0, PATIENCE_S)
        mirror.check()
    resource = ConfigResource(ResourceType.TOPIC, "here.orders")
    admin = AdminClient({"bootstrap.servers": there.bootstrap})
    (configs,) = admin.describe_configs([resource]).values()
    assert configs.result(30)["retention.ms"].value == "86400000"
