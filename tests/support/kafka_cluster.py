"""Apache Kafka as a cluster: a controller, and two brokers that may be killed in turn. Every partition is on both.

with KafkaCluster(tmp_path) as kafka:
    kafka.bootstrap
    kafka.brokers[0].kill()
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.kafka_peer import KafkaPeer
from tests.support.process import free_ports

HOST = "127.0.0.1"
SETTINGS = {
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "1",
    # A broker that is gone is noticed sooner.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class _Node(KafkaPeer):
    def __init__(self, folder: Path, port: int, cluster_id: str | None, properties: Mapping[str, str]) -> None:
        super().__init__(folder, properties)
        self.cluster_id = cluster_id or self.cluster_id
        self._own_port = port

    def _choose_ports(self) -> None:
        # Others know them: there is no second choice.
        self.port = self._own_port
        settings = {"log.dirs": str(self.data_dir), "controller.listener.names": "CONTROLLER", **self._properties}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


class KafkaCluster:
    def __init__(self, folder: Path) -> None:
        controller_port, *ports = free_ports(3)
        common = SETTINGS | {"controller.quorum.voters": f"1@{HOST}:{controller_port}"}
        own = {"process.roles": "controller", "node.id": "1", "listeners": f"CONTROLLER://{HOST}:{controller_port}"}
        self._controller = _Node(folder / "controller", controller_port, None, common | own)
        self.brokers = []
        for number, port in enumerate(ports, 2):
            own = {"process.roles": "broker", "node.id": str(number), "listeners": f"PLAINTEXT://{HOST}:{port}"}
            node = _Node(folder / f"broker-{number}", port, self._controller.cluster_id, common | own)
            self.brokers.append(node)
        self.bootstrap = ",".join(f"{HOST}:{port}" for port in ports)
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in (self._controller, *self.brokers):
                stack.enter_context(node)
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def create(self, topic: str, partitions: int) -> str:
        admin = self._admin()  # it must outlive its answer
        admin.create_topics([NewTopic(topic, partitions, 2)])[topic].result(30)
        return topic

    def leaders(self, topic: str) -> dict[int, int]:
        partitions = self._admin().list_topics(topic, timeout=20).topics[topic].partitions
        return {number: one.leader for number, one in partitions.items()}

    def await_replicas(self, timeout_s: float = 90.0) -> None:
        """Until both brokers have all of every partition again."""
        deadline = time.monotonic() + timeout_s
        while not all(
            len(one.isrs) == len(self.brokers)
            for topic in self._admin().list_topics(timeout=20).topics.values()
            for one in topic.partitions.values()
        ):
            assert time.monotonic() < deadline, "a broker does not catch up"
            time.sleep(0.2)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
