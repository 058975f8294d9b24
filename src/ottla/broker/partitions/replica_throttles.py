"""Which replicas are held back while they are copied, and for how long (KIP-73).

A topic says which (`leader.` and `follower.replication.throttled.replicas`: `*`, or pairs of partition and broker), a
broker how fast (`leader.` and `follower.replication.throttled.rate`). Over its rate a leader leaves throttled replicas
out of its answers, and a follower leaves them out of its fetches. What is in sync is never held back, though its bytes
count: a throttle is for copies that are made, and must not cost a replica its place among those in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.common.clock import Clock
from ottla.replication.quota import UNLIMITED, ReplicationQuota

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
# How long somebody who is held back waits before it is tried again.
HELD_BACK_MS = 100


class ReplicaThrottle:
    """Of this broker, as a leader or as a follower."""

    def __init__(self, broker: Broker, setting: str, rate: Callable[[], int], clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._setting = setting
        self._rate = rate
        config = broker.config
        self._quota = ReplicationQuota(
            config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
        )
        # What was parsed of a topic, as long as it has these settings.
        self._parsed: dict[str, tuple[Mapping[str, str], frozenset[int] | None]] = {}

    @property
    def is_on(self) -> bool:
        return self._rate() < UNLIMITED

    def concerns(self, topic: str, index: int) -> bool:
        """Whether this replica is throttled here."""
        if not self.is_on:
            return False
        known = self._broker.image.topics.get(topic)
        if known is None or self._setting not in known.configs:
            return False
        cached = self._parsed.get(topic)
        if cached is None or cached[0] is not known.configs:
            cached = known.configs, throttled_partitions(known.configs[self._setting], self._broker.node_id)
            self._parsed[topic] = cached
        return cached[1] is None or index in cached[1]

    def is_exceeded(self, more: int = 0) -> bool:
        return self._quota.is_exceeded(self._rate(), self._clock.monotonic_ms(), more)

    def record(self, size: int) -> None:
        self._quota.record(size, self._clock.monotonic_ms())


class ReplicaThrottles:
    def __init__(self, broker: Broker, clock: Clock | None = None) -> None:
        config, clock = broker.config, clock or broker.clock
        self.leader = ReplicaThrottle(broker, LEADER_REPLICAS, lambda: config.leader_replication_throttled_rate, clock)
        self.follower = ReplicaThrottle(
            broker, FOLLOWER_REPLICAS, lambda: config.follower_replication_throttled_rate, clock
        )


def throttled_partitions(value: str, broker: int) -> frozenset[int] | None:
    """Of this broker; None: all."""
    pairs = [pair.strip() for pair in value.split(",") if pair.strip()]
    if pairs == ["*"]:
        return None
    return frozenset(
        int(partition) for partition, _, replica in (pair.partition(":") for pair in pairs) if int(replica) == broker
    )
