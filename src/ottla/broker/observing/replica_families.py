"""Partitions, replicas and the controller as metrics: what says first that a cluster is not well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from ottla.common.steps import PIECE
from ottla.exposition.families import counter, gauge, gauges
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_REPLICAS = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"


class IsrCounts:
    """How often somebody left or joined the in-sync replicas of a partition that is led here."""

    def __init__(self, broker: Broker) -> None:
        self._node_id = broker.node_id
        self.shrinks = 0
        self.expands = 0
        self.elections = 0
        self.unclean = 0
        broker.topics.subscribe(self._on_image)

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.topics is new.topics:
            return
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before is topic or before.id != topic.id:
                continue
            for was, now in zip(before.partitions, topic.partitions, strict=False):
                if was is not now:
                    self._compare(was, now)

    def _compare(self, was: PartitionImage, now: PartitionImage) -> None:
        if now.leader != was.leader and now.leader != NO_LEADER:
            self.elections += 1
            self.unclean += now.leader not in was.isr and now.leader not in was.elr
        if now.leader == self._node_id:
            self.shrinks += len(now.isr) < len(was.isr)
            self.expands += len(now.isr) > len(was.isr)


def replica_families(broker: Broker, isr: IsrCounts) -> Iterator[Metric | None]:
    image, node_id = broker.image, broker.node_id
    count: Counter[str] = Counter()
    # Replicas that are not in sync, by the broker that has them: which one is it?
    missing: Counter[int] = Counter()
    number = 0
    for topic in image.topics.values():
        min_insync = topic.min_insync
        for partition in topic.partitions:
            if number % PIECE == 0:
                yield None
            number += 1
            count["partitions"] += 1
            count["offline"] += partition.leader == NO_LEADER
            count["not preferred"] += partition.leader != partition.replicas[0]
            if partition.adding or partition.removing:
                count["reassigning"] += 1
            if node_id in partition.replicas:
                count["here"] += 1
            if partition.leader != node_id:
                continue
            count["led"] += 1
            lacking = len(partition.replicas) - len(partition.isr)
            count["under-replicated"] += lacking > 0
            for replica in partition.replicas:
                if replica not in partition.isr:
                    missing[replica] += 1
            if min_insync is not None:
                wanted = min(min_insync, len(partition.replicas))
                count["under min isr"] += len(partition.isr) < wanted
                count["at min isr"] += len(partition.isr) == wanted and lacking > 0
    yield gauge(_REPLICAS + "partitioncount", "Partitions with a replica on this broker.", count["here"])
    yield gauge(_REPLICAS + "leadercount", "Partitions that this broker leads.", count["led"])
    yield gauge(
        _REPLICAS + "underreplicatedpartitions",
        "Partitions led here of which a replica is not in sync.",
        count["under-replicated"],
    )
    yield gauges(
        "ottla_replicas_not_in_sync",
        "Replicas that are not in sync where this broker leads, by the broker that has them.",
        ["replica"],
        {(str(replica),): missing[replica] for replica in sorted({*missing, *image.registrations} - {node_id})},
    )
    yield gauge(
        _REPLICAS + "underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas: acks=all is refused.",
        count["under min isr"],
    )
    yield gauge(
        _REPLICAS + "atminisrpartitioncount",
        "Partitions led here that lose acks=all with the next replica.",
        count["at min isr"],
    )
    yield gauge(_REPLICAS + "reassigningpartitions", "Partitions of which replicas come or go.", count["reassigning"])
    yield counter(_REPLICAS + "isrshrinks_total", "How often a replica left the in-sync replicas.", isr.shrinks)
    yield counter(_REPLICAS + "isrexpands_total", "How often a replica joined the in-sync replicas.", isr.expands)
    yield from _controller_families(broker, count, isr)


def _controller_families(broker: Broker, count: Counter[str], isr: IsrCounts) -> Iterator[Metric]:
    image, is_controller = broker.image, broker.is_controller
    yield gauge(_CONTROLLER + "activecontrollercount", "1 on the controller.", float(is_controller))
    # As in Kafka the controller speaks for the cluster, and the others say 0: so a sum is right.
    of_cluster = (
        ("offlinepartitionscount", "Partitions without a leader; told by the controller.", count["offline"]),
        ("globaltopiccount", "Topics of the cluster; told by the controller.", len(image.topics)),
        ("globalpartitioncount", "Partitions of the cluster; told by the controller.", count["partitions"]),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another than the preferred replica leads; told by the controller.",
            count["not preferred"],
        ),
        ("activebrokercount", "Brokers that take part; told by the controller.", len(image.brokers)),
        (
            "fencedbrokercount",
            "Brokers that were here once and are not now; told by the controller.",
            sum(known not in image.brokers for known in image.registrations),
        ),
    )
    for name, doc, value in of_cluster:
        yield gauge(_CONTROLLER + name, doc, value if is_controller else 0)
    yield counter(
        "ottla_leader_elections_total",
        "Elections of leaders that this broker has heard of.",
        isr.elections,
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Elections of leaders that may have lost records, as this broker has heard of them.",
        isr.unclean,
    )
