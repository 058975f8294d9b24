"""`ottla txn find-hanging` and `abort` (KIP-664).

A partition may have a transaction open that its coordinator does not know of, left by a bug or by lost data: nobody
will end it, and readers of committed records wait behind it for ever. A marker in that partition ends it by hand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.name_completion import complete_topic
from ottla.cli.output import Planned, human_ms, show, table
from ottla.cli.settings import INT32_MAX, INT64_MAX, Settings, at_least, command
from ottla.cli.txn.show import cluster_of, utc
from ottla.client.admin.transactions import Described, OpenInLog, abort_in_log, is_hanging, open_in_logs, owners
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition

# Kafka's transaction.max.timeout.ms: no transaction that a coordinator knows is open for longer.
DEFAULT_OLDER_THAN_S = 900.0


def _hanging(cluster: ClusterClient, topics: tuple[str, ...], older_than_s: float) -> list[OpenInLog]:
    now_ms = time.time_ns() // 1_000_000
    suspects = [
        transaction
        for transaction in open_in_logs(cluster, list(topics) or None)
        if now_ms - transaction.last_timestamp_ms >= older_than_s * 1000
    ]
    known = owners(cluster, suspects)
    return [suspect for suspect in suspects if is_hanging(suspect, known.get(suspect.producer_id))]


def _data(transaction: OpenInLog) -> dict[str, Any]:
    return {
        "topic": transaction.partition.topic,
        "partition": transaction.partition.partition,
        "start_offset": transaction.start_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "coordinator_epoch": transaction.coordinator_epoch,
        "last_write": utc(transaction.last_timestamp_ms),
    }


def _lines(data: list[dict[str, Any]]) -> list[str]:
    headings = ["TOPIC", "PARTITION", "START OFFSET", "PRODUCER", "EPOCH", "COORDINATOR EPOCH", "LAST WRITE"]
    return table(headings, [list(row.values()) for row in data])


# -- find-hanging --------------------------------------------------------------------------------------------------


@command("find-hanging")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topic)
@click.option(
    "--older-than",
    "older_than_s",
    type=at_least(0.0),
    default=DEFAULT_OLDER_THAN_S,
    metavar="SECONDS",
    help="Only those whose last record is older [900, the longest time-out that brokers allow by default].",
)
def find_hanging(settings: Settings, topics: tuple[str, ...], older_than_s: float) -> None:
    """Find transactions that partitions (of all topics unless named) hold open and no coordinator will ever end."""
    with cluster_of(settings) as cluster:
        data: list[Any] = [_data(transaction) for transaction in _hanging(cluster, topics, older_than_s)]
    show(settings, data, lambda: _hanging_lines(data, older_than_s))


def _hanging_lines(data: list[dict[str, Any]], older_than_s: float) -> Iterable[str]:
    if not data:
        yield f"no transaction hangs (of those that wrote nothing for {human_ms(round(older_than_s * 1000))})"
        return
    yield from _lines(data)
    first = data[0]
    yield ""
    yield f"end one with: ottla txn abort {first['topic']}-{first['partition']} --start-offset {first['start_offset']}"


# -- abort ---------------------------------------------------------------------------------------------------------


@command("abort", changes=True, asks=True)
@click.argument("partition", metavar="TOPIC-PARTITION")
@click.option("--start-offset", type=at_least(0, INT64_MAX), help="Which, if the partition has several open.")
@click.option("--force", is_flag=True, help="Also one that its coordinator knows and will end itself.")
def abort(settings: Settings, partition: str, start_offset: int | None, force: bool) -> None:
    """Abort an open transaction in one partition, as `find-hanging` shows them: TOPIC-PARTITION is orders-3."""
    where = _parse(partition)
    with cluster_of(settings) as cluster:
        found = [transaction for transaction in open_in_logs(cluster, [where.topic]) if transaction.partition == where]
        chosen = _choose(where, found, start_offset)
        owner = owners(cluster, [chosen]).get(chosen.producer_id)
        if not force and not is_hanging(chosen, owner):
            assert owner is not None
            raise OttlaError(_not_hanging(owner))
        plan = Planned(settings, [_data(chosen)], _lines([_data(chosen)]))
        if plan.agreed(f"abort it? its records in {where} will not be read by read_committed consumers", "nothing"):
            abort_in_log(cluster, chosen)
            plan.done(f"aborted the transaction of producer {chosen.producer_id} in {where}")


def _not_hanging(owner: Described) -> str:
    return (
        f"that transaction is not hanging: its coordinator knows it as '{owner.transactional_id}' ({owner.state}) and"
        f" aborts it {human_ms(owner.timeout_ms)} after its start; --force if you must."
    )


def _parse(text: str) -> TopicPartition:
    match = re.fullmatch(r"(.+)-([0-9]{1,10})", text)
    if match is None or int(match[2]) > INT32_MAX:
        raise click.UsageError(f"'{text}' is not a partition: write TOPIC-NUMBER, such as orders-3.")
    return TopicPartition(match[1], int(match[2]))


def _choose(where: TopicPartition, found: list[OpenInLog], start_offset: int | None) -> OpenInLog:
    if not found:
        raise OttlaError(f"{where} has no open transaction.")
    chosen = [transaction for transaction in found if start_offset in (None, transaction.start_offset)]
    if not chosen:
        offsets = ", ".join(str(transaction.start_offset) for transaction in found)
        raise OttlaError(f"{where} has no transaction that starts at {start_offset}; open ones start at {offsets}.")
    if len(chosen) > 1:
        offsets = ", ".join(str(transaction.start_offset) for transaction in chosen)
        raise OttlaError(f"{where} has {len(chosen)} open transactions: choose with --start-offset of {offsets}.")
    return chosen[0]
