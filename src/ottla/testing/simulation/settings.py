"""What a run is made of. The seed decides what is not given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

_FOR_EVER_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Settings:
    brokers: int
    replication_factor: int
    partitions: int
    min_insync_replicas: int
    # Whether a record is synced before it counts: then no power cut takes anything.
    flushes_each: bool
    faults: int
    # Whether disks also lose what was synced.
    damages: int = 0
    # Whether records are deleted meanwhile, and a topic is made again and again.
    deletes: int = 0

    def properties(self) -> dict[str, str]:
        """Of every broker. Times are short beside Kafka's defaults, and long beside what a message takes: a fault that
        outlasts them is over sooner, and less time passes in which nothing happens."""
        properties = {
            "zookeeper.session.timeout.ms": "1500",
            "default.replication.factor": str(self.replication_factor),
            "min.insync.replicas": str(self.min_insync_replicas),
            "num.partitions": str(self.partitions),
            "replica.lag.time.max.ms": "1000",
            "replica.fetch.wait.max.ms": "500",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": str(self.replication_factor),
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": str(self.replication_factor),
            "transaction.state.log.min.isr": str(self.min_insync_replicas),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": "200",
            "auto.leader.rebalance.enable": "true",
            "leader.imbalance.check.interval.seconds": "3",
            # Checks compare whole logs.
            "log.cleaner.enable": "false",
            "log.retention.ms": "-1",
            # Clocks jump.
            "log.message.timestamp.before.max.ms": str(_FOR_EVER_MS),
            "log.message.timestamp.after.max.ms": str(_FOR_EVER_MS),
            "log.roll.ms": "4000",
            "log.initial.task.delay.ms": "1000",
            "log.flush.offset.checkpoint.interval.ms": "3000",
            "log.retention.check.interval.ms": "60000",
        }
        if self.deletes:
            properties["log.retention.check.interval.ms"] = "1000"
        if self.flushes_each:
            properties["log.flush.interval.messages"] = "1"
        return properties


def settings_for(seed: int, **given: int | None) -> Settings:
    rng = Random(f"{seed} settings")
    settings = Settings(
        brokers=rng.choice((3, 3, 3, 4)),
        replication_factor=3,
        partitions=rng.choice((1, 2)),
        min_insync_replicas=rng.choice((2, 2, 2, 1)),
        flushes_each=rng.random() < 0.3,
        faults=rng.randint(4, 16),
    )
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    settings = replace(settings, **changed)
    fewest = min(settings.brokers, settings.replication_factor)
    return replace(settings, replication_factor=fewest, min_insync_replicas=min(settings.min_insync_replicas, fewest))
