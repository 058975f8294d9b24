"""All metrics of a broker, as families, in steps that take some tens of microseconds each.

Nothing here is counted twice: most of it is looked up when somebody asks. A scrape runs on the event loop, in turns
(`broker/turns.py`), because all it looks at belongs to the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import CollectorRegistry

from ottla import __version__
from ottla.broker.observing.loop_lag import LoopLag
from ottla.broker.observing.named_software import NamedSoftware, Software
from ottla.broker.observing.named_topics import OTHER, NamedTopics
from ottla.broker.observing.replica_families import IsrCounts, replica_families
from ottla.broker.observing.request_families import request_families
from ottla.broker.observing.request_observer import RequestObserver
from ottla.broker.observing.service_families import (
    DiskSpace,
    coordinator_families,
    storage_families,
    waiting_families,
)
from ottla.broker.observing.topic_families import topic_families
from ottla.common.steps import PIECE
from ottla.exposition.families import counters, gauge, gauges, histograms
from ottla.exposition.histogram import Histogram

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

Connections = Callable[[], list[Any]]
# By listener: how many succeeded, and how many did not.
Logins = Callable[[], dict[str, tuple[int, int]]]


class BrokerState(IntEnum):
    """Kafka's numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Collector:
    """Make it when the broker is open."""

    def __init__(
        self, broker: Broker, observer: RequestObserver, lag: LoopLag, connections: Connections, logins: Logins
    ) -> None:
        self._broker = broker
        self._observer = observer
        self._lag = lag
        self._connections = connections
        self._logins = logins
        self._isr = IsrCounts(broker)
        self._flushes = Histogram()
        self._named = NamedTopics(broker.traffic, broker.config.ottla_metrics_topics_max)
        self._software = NamedSoftware()
        self._process = ProcessCollector(registry=CollectorRegistry())

    def of_system(self) -> list[Metric]:
        """What the system is asked: in a thread."""
        return list(self._process.collect())

    def families(
        self, state: BrokerState, of_system: list[Metric], space: dict[Path, DiskSpace]
    ) -> Iterator[Metric | bytes | None]:
        broker, config = self._broker, self._broker.config
        yield from of_system
        yield gauge(
            "kafka_server_kafkaserver_brokerstate", "1 starting, 2 recovery, 3 running, 6 and 7 stopping.", state
        )
        yield gauges(
            "ottla_build_info",
            "1, with the version and the cluster.",
            ["version", "node_id", "cluster_id", "rack"],
            {(__version__, str(broker.node_id), broker.image.cluster_id, broker.rack or ""): 1},
        )
        yield from self._loop_families()
        yield from request_families(self._observer)
        yield from replica_families(broker, self._isr)
        yield from topic_families(broker, self._named, config.ottla_metrics_partitions_max)
        yield from coordinator_families(broker)
        yield from waiting_families(broker)
        yield from storage_families(broker, self._flushes, space)
        yield from self._connection_families()
        yield from self._login_families()

    def _loop_families(self) -> Iterator[Metric]:
        yield histograms(
            "ottla_event_loop_lag_seconds",
            "By how much timers come too late, which is how long a request waits for the event loop.",
            [],
            [((), self._lag.late_s, 0)],
        )
        yield gauge(
            "ottla_event_loop_lag_worst_seconds", "The worst of it since the last scrape.", self._lag.take_worst()
        )
        yield gauge(
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "Which part of the time since the last scrape the event loop's thread had nothing to compute, from 0 to 1.",
            self._lag.idle_since_last_look(),
        )

    def _connection_families(self) -> Iterator[Metric | None]:
        listeners: Counter[str] = Counter()
        software: Counter[tuple[Software, str]] = Counter()
        for number, connection in enumerate(self._connections()):
            if number % PIECE == 0:
                yield None
            name = connection.listener.name
            listeners[name] += 1
            cached = connection.context
            software[(cached[1].client_software if cached is not None else ("", "")), name] += 1
        yield gauges(
            "kafka_server_socket_server_metrics_connection_count",
            "Connections of clients and brokers, by listener.",
            ["listener"],
            {(name,): count for name, count in listeners.items()},
        )
        connected: Counter[Software] = Counter()
        for (its, _), count in software.items():
            connected[its] += count
        self._software.look(connected, self._broker.clock.monotonic_ms())
        told: Counter[tuple[str, ...]] = Counter()
        for (its, name), count in software.items():
            told[(*(its if its in self._software else (OTHER, "")), name)] += count
        yield gauges(
            "kafka_server_socket_server_metrics_connections",
            "Connections by the software that their clients say they are.",
            ["client_software_name", "client_software_version", "listener"],
            dict(told),
        )

    def _login_families(self) -> Iterator[Metric]:
        told = self._logins()
        yield counters(
            "kafka_server_socket_server_metrics_successful_authentication_total",
            "Logins, and sessions that were prolonged, by listener.",
            ["listener"],
            {(name,): succeeded for name, (succeeded, _) in told.items()},
        )
        yield counters(
            "kafka_server_socket_server_metrics_failed_authentication_total",
            "Logins and TLS handshakes that were refused, by listener.",
            ["listener"],
            {(name,): failed for name, (_, failed) in told.items()},
        )
