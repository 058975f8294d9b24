"""Three brokers as processes that are one cluster, of either kind: a fault or a benchmark treats both the same.

    with KafkaTrio(tmp_path) as trio:           # Apache Kafka: KRaft, combined roles
    with OttlaTrio(tmp_path) as trio:           # Ottla, with a ZooKeeper of its own
        trio.bootstrap, trio.nodes[1].kill(), trio.nodes[1].start(), trio.leader("t", 0), trio.controller()

On a `Network` each broker has an address of its own, so that links can be cut.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import why_no_kafka
from tests.support.kafka_peer import KafkaPeer
from tests.support.network import STORE, Network
from tests.support.patience import answered
from tests.support.process import BrokerProcess, free_ports
from tests.support.zookeeper import Zookeeper, why_no_zookeeper

IDS = (1, 2, 3)
HOST = "127.0.0.1"
# Of both kinds: three copies of everything.
COMMON = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}


class Trio:
    """A subclass makes `nodes`, by id, and says how long a session is."""

    label = ""
    session_s = 0.0

    def __init__(self, folder: Path, network: Network | None = None) -> None:
        self.folder = folder
        self.network = network
        self.hosts = {one: HOST if network is None else network.address(one) for one in IDS}
        self.nodes: dict[int, BrokerProcess] = {}
        # What it takes to get in, where not everybody does.
        self.client_settings: dict[str, Any] = {}
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.hosts[one]}:{node.port}" for one, node in self.nodes.items())

    def data_dir(self, node: int) -> Path:
        raise NotImplementedError

    # --- life

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes.values():
                stack.callback(node.close)
            self.start_all()
            self._stack.push(stack.pop_all())
        return self

    def start_all(self) -> None:
        """At the same time: the first one alone may have to wait for another."""
        failures: list[BaseException] = []

        def start(node: BrokerProcess) -> None:
            try:
                node.start()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=start, args=[node]) for node in self.nodes.values() if not node.running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.await_members()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    # --- what clients are told

    def admin(self) -> AdminClient:
        return self._admin(self.bootstrap)

    def _admin(self, address: str) -> AdminClient:
        quick = {"log_level": 0, "socket.timeout.ms": 5000}
        return AdminClient({"bootstrap.servers": address, **quick, **self.client_settings})

    def create(self, topic: str, partitions: int, **config: str) -> str:
        admin = self.admin()  # it must outlive its answer
        made = NewTopic(topic, partitions, 3, config={name.replace("_", "."): value for name, value in config.items()})
        admin.create_topics([made])[topic].result(60)
        return topic

    def partitions(self, topic: str) -> dict[int, Any]:
        return dict(answered(lambda: self.admin().list_topics(topic, timeout=20)).topics[topic].partitions)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Waits until there is one."""
        deadline = time.monotonic() + 120
        while True:
            found = self.partitions(topic)
            if partition in found and found[partition].leader in IDS:
                return int(found[partition].leader)
            assert time.monotonic() < deadline, f"{topic}-{partition} has no leader"
            time.sleep(0.05)

    def controller(self) -> int:
        """As the cluster names it, once there is one; Kafka's KRaft names any broker, `active_controller` knows
        better."""
        deadline = time.monotonic() + 120
        while (found := self._told_controller()) not in IDS:
            assert time.monotonic() < deadline, "there is no controller"
            time.sleep(0.05)
        return found

    def _told_controller(self) -> int:
        return int(answered(lambda: self.admin().list_topics(timeout=20)).controller_id)

    def await_members(self, timeout_s: float = 120) -> None:
        """Until all three are in what clients are told."""
        _await(lambda: len(self.admin().list_topics(timeout=5).brokers) == len(IDS), timeout_s, "a broker is missing")

    def make_whole(self) -> None:
        for node in self.nodes.values():
            if not node.running:
                node.start()
        self.await_in_sync()

    def await_in_sync(self, timeout_s: float = 180) -> None:
        """Until every replica of every partition has all of it, and all brokers say so: one that was paused believes
        for a moment that nothing has happened, and serves what it had."""

        def is_in_sync() -> bool:
            told = [self.told_by(address) for address in self.bootstrap.split(",")]
            return all(one == told[0] for one in told) and all(
                brokers == set(IDS) and leader in IDS and len(isr) == len(replicas)
                for brokers, leader, replicas, isr in told[0].values()
            )

        _await(is_in_sync, timeout_s, "a replica does not catch up")

    def told_by(self, address: str) -> dict[tuple[str, int], tuple[set[int], int, list[int], set[int]]]:
        """What one broker says: of each partition all brokers, its leader, replicas and who is in sync."""
        told = self._admin(address).list_topics(timeout=5)
        return {
            (topic.topic, number): (set(told.brokers), one.leader, list(one.replicas), set(one.isrs))
            for topic in told.topics.values()
            for number, one in topic.partitions.items()
        }

    def rss_bytes(self) -> int:
        return sum(node.rss_bytes() for node in self.nodes.values())

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self.nodes.values())

    def logs(self) -> str:
        """The ends of their logs, for the message of a failure."""
        return "\n".join(f"--- {number}\n{node.log_tail(15)}" for number, node in self.nodes.items())


def _await(is_so: Any, timeout_s: float, complaint: str) -> None:
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if is_so():
                return
        except KafkaException:
            pass
        assert time.monotonic() < deadline, complaint
        time.sleep(0.1)


class _KafkaNode(KafkaPeer):
    heap = ("-Xmx512M", "-Xms512M")

    def _choose_ports(self) -> None:
        # Others know them: there is no second choice.
        settings = {"log.dirs": str(self.data_dir), **self._properties}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


class KafkaTrio(Trio):
    label = "kafka"

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        network: Network | None = None,
        data_dirs: Mapping[int, Path] | None = None,
    ) -> None:
        super().__init__(folder, network)
        ports = free_ports(2 * len(IDS))
        voters = ",".join(f"{one}@{self.hosts[one]}:{port}" for one, port in zip(IDS, ports[3:], strict=True))
        cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
        for one, port, controller_port in zip(IDS, ports[:3], ports[3:], strict=True):
            own = {
                "process.roles": "broker,controller",
                "node.id": str(one),
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://{self.hosts[one]}:{port},CONTROLLER://{self.hosts[one]}:{controller_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "share.coordinator.state.topic.replication.factor": "3",
                "share.coordinator.state.topic.min.isr": "2",
            }
            node = _KafkaNode(folder / f"broker-{one}", COMMON | own | dict(properties or {}))
            node.port, node.host, node.cluster_id = port, self.hosts[one], cluster_id
            if network is not None:
                node.prefix = network.prefix(one)
            if data_dirs and one in data_dirs:
                node.data_dir = data_dirs[one]
            self.nodes[one] = node
        self.session_s = float((properties or {}).get("broker.session.timeout.ms", "9000")) / 1000

    def data_dir(self, node: int) -> Path:
        found: Path = self.nodes[node].data_dir  # type: ignore[attr-defined]
        return found


class OttlaTrio(Trio):
    label = "ottla"

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        network: Network | None = None,
        data_dirs: Mapping[int, Path] | None = None,
    ) -> None:
        super().__init__(folder, network)
        self.zookeeper = Zookeeper(folder / "zookeeper")
        if network is not None:
            self.zookeeper.host = network.address(STORE)
        for one, port in zip(IDS, free_ports(len(IDS)), strict=True):
            own = {"node.id": str(one), "zookeeper.connect": f"{self.zookeeper.address}/trio"}
            node = _OttlaNode(folder / f"broker-{one}", COMMON | own | dict(properties or {}))
            node.port, node.host = port, self.hosts[one]
            if network is not None:
                node.prefix = network.prefix(one)
            if data_dirs and one in data_dirs:
                node.data_dir = data_dirs[one]
            self.nodes[one] = node
        self.session_s = float((properties or {}).get("zookeeper.session.timeout.ms", "9000")) / 1000

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stack.callback(self.zookeeper.close)
        try:
            self.zookeeper.start()
            return super().__enter__()
        except BaseException:
            self._stack.close()
            raise

    def data_dir(self, node: int) -> Path:
        found: Path = self.nodes[node].data_dir  # type: ignore[attr-defined]
        return found


class _OttlaNode(OttlaProcess):
    prefix: Sequence[str] = ()

    def command(self) -> list[str]:
        return [*self.prefix, *super().command()]


def trios() -> list[Any]:
    """Parameters for a fixture: Ottla in every run, Apache Kafka too in the slow suite."""
    return [
        pytest.param(OttlaTrio, id="ottla"),
        pytest.param(KafkaTrio, id="kafka", marks=[pytest.mark.jvm, pytest.mark.slow]),
    ]


def require(kind: type[Trio]) -> None:
    """Skips the calling test with the reason where this kind cannot be had."""
    reason = why_no_kafka() if kind is KafkaTrio else why_no_zookeeper()
    if reason is not None:
        pytest.skip(reason)
