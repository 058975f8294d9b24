"""What `cluster.json` of a local cluster says: how many brokers, where, with which properties."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ottla.exposition.address import consecutive

HOST = "127.0.0.1"
CHROOT = "/ottla"
# Each broker has the next port.
METRICS = "ottla.metrics.listen"
# What is decided here; a property of the user's would be overruled in silence.
DECIDED_HERE = frozenset(
    {"node.id", "broker.id", "listeners", "advertised.listeners", "port", "log.dirs", "log.dir", "zookeeper.connect"}
)


@dataclass(frozen=True)
class Plan:
    """Brokers 1 to `brokers` on consecutive ports, ZooKeeper on the one before them."""

    brokers: int
    base_port: int
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> range:
        return range(1, self.brokers + 1)

    def port_of(self, broker: int) -> int:
        return self.base_port + broker - 1

    @property
    def zookeeper_port(self) -> int:
        return self.base_port - 1

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self.port_of(broker)}" for broker in self.ids)

    def broker_properties(self, broker: int, data_dir: Path) -> dict[str, str]:
        """Three copies of everything, where there are three brokers; what the user says is stronger."""
        copies = str(min(3, self.brokers))
        metrics = self.properties.get(METRICS)
        own_metrics = {METRICS: consecutive(metrics, broker - 1, what=METRICS)} if metrics else {}
        return {
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": str(min(2, self.brokers)),
            **self.properties,
            **own_metrics,
            "node.id": str(broker),
            "listeners": f"PLAINTEXT://{HOST}:{self.port_of(broker)}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port_of(broker)}",
            "log.dirs": str(data_dir),
            "zookeeper.connect": f"{HOST}:{self.zookeeper_port}{CHROOT}",
        }
