"""Coordinators, purgatories, sessions, the cleaner, disks and the process itself as metrics."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import Metric

from ottla.common.steps import PIECE
from ottla.exposition.families import counter, gauge, gauges, histograms
from ottla.exposition.histogram import Histogram
from ottla.transactions.states import TxnState

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
# Kafka's names for the states of a group, with those of both protocols.
_GROUP_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead", "Assigning", "Reconciling")


class DiskSpace(NamedTuple):
    total_bytes: int
    free_bytes: int


def disk_space(paths: list[Path]) -> dict[Path, DiskSpace]:
    """In a thread: a disk may take its time. A directory that does not answer is left out."""
    found = {}
    for path in paths:
        try:
            told = os.statvfs(path)
        except OSError:
            continue
        found[path] = DiskSpace(told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize)
    return found


def coordinator_families(broker: Broker) -> Iterator[Metric | None]:
    states: Counter[str] = Counter()
    number = 0
    for group_shard in broker.groups.runtime.all():
        for group in list(group_shard.state.groups.values()):
            if number % PIECE == 0:
                yield None
            number += 1
            states[group.state_name] += 1
    yield gauge(_GROUPS + "numgroups", "Groups that this broker coordinates.", number)
    for state in _GROUP_STATES:
        yield gauge(f"{_GROUPS}numgroups{state.lower()}", f"Those in the state {state}.", states[state])
    transactions: Counter[str] = Counter()
    for transaction_shard in broker.transactions.runtime.all():
        for transaction in list(transaction_shard.coordinator):
            if number % PIECE == 0:
                yield None
            number += 1
            transactions[transaction.state.text] += 1
    yield gauges(
        "kafka_coordinator_transaction_transactions",
        "Transactional ids that this broker coordinates, by state.",
        ["state"],
        {(state.text,): transactions[state.text] for state in TxnState},
    )


def waiting_families(broker: Broker) -> Iterator[Metric | None]:
    waiting = 0
    for number, partition in enumerate(list(broker.partitions)):
        if number % PIECE == 0:
            yield None
        waiting += partition.waiting_count
    yield gauges(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait: produces for replicas or the disk, fetches for records.",
        ["delayedOperation"],
        {("Produce",): waiting, ("Fetch",): len(broker.parked_fetches) + broker.replica_sessions.waiting_count},
    )
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Incremental fetch sessions.",
        len(broker.fetch_sessions),
    )


def storage_families(broker: Broker, flushes: Histogram, space: dict[Path, DiskSpace]) -> Iterator[Metric | None]:
    took_s = broker.logs.flusher.took_s
    while took_s:
        flushes.add(took_s.popleft())
    yield histograms(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Milliseconds that a sync of a log to disk took.",
        [],
        [((), flushes, 0)],
        scale=1_000,
    )
    dirs = broker.logs.dirs
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that have failed.",
        sum(log_dir.offline is not None for log_dir in dirs),
    )
    yield gauges(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a log directory that has failed.",
        ["logDirectory"],
        {(str(log_dir.path),): float(log_dir.offline is not None) for log_dir in dirs},
    )
    yield gauges(
        "ottla_log_directory_refuses",
        "1 for a log directory without room or file descriptors, which refuses requests until there are some.",
        ["logDirectory"],
        {(str(log_dir.path),): float(log_dir.refusals.current is not None) for log_dir in dirs},
    )
    for name, doc, place in (
        ("ottla_log_directory_total_bytes", "Size of the file system of a log directory.", 0),
        ("ottla_log_directory_free_bytes", "What is free there.", 1),
    ):
        yield gauges(name, doc, ["logDirectory"], {(str(path),): its[place] for path, its in space.items()})
    yield gauges(
        "ottla_log_directory_load_seconds",
        "How long the directory took at the start, which after a crash includes its recovery.",
        ["logDirectory", "after"],
        {
            (str(path), "clean stop" if was_clean else "crash"): took_ms / 1_000
            for path, (took_ms, was_clean) in broker.logs.loaded_in_ms.items()
        },
    )
    yield from _cleaner_families(broker)


def _cleaner_families(broker: Broker) -> Iterator[Metric]:
    totals = broker.cleaning.totals
    yield gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that cannot be compacted until the next start; the log says why.",
        len(broker.cleaning.uncleanable),
    )
    yield counter("ottla_log_cleaner_rounds_total", "Compactions of a log.", totals.rounds)
    yield counter("ottla_log_cleaner_failures_total", "Compactions that failed.", totals.failures)
    yield counter("ottla_log_cleaner_seconds_total", "How long they took.", totals.worked_ms / 1_000)
    yield counter("ottla_log_cleaner_read_bytes_total", "What they read.", totals.bytes_read)
    yield counter("ottla_log_cleaner_written_bytes_total", "What they left.", totals.bytes_written)
    yield counter("ottla_log_cleaner_removed_records_total", "Records that went.", totals.records_removed)
