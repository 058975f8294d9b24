"""`ottla txn list` and `describe`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import click

from ottla.cli.output import facts, human_ms, show, table
from ottla.cli.settings import INT64_MAX, Settings, at_least, command
from ottla.client.access.security_settings import parse_security
from ottla.client.address import ClusterAddress
from ottla.client.admin import transactions
from ottla.client.admin.transactions import Described, Filter, Listed
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError

OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")


def cluster_of(settings: Settings) -> ClusterClient:
    """These requests are not in librdkafka, so they are sent by our own small client. Of librdkafka's settings it takes
    those about TLS and SASL."""
    client = settings.client_settings()
    return ClusterClient(ClusterAddress(client["bootstrap.servers"], parse_security(client)))


def utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- list ----------------------------------------------------------------------------------------------------------


@command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only in this state; repeatable.")
@click.option(
    "--producer-id",
    "producer_ids",
    multiple=True,
    type=at_least(0, INT64_MAX),
    help="Only of this producer; repeatable.",
)
@click.option("--open-for", "open_for_s", type=at_least(0.0), metavar="SECONDS", help="Only open for longer than this.")
@click.option("--match", "pattern", metavar="REGEX", help="Only ids that match as a whole (RE2).")
def list_transactions(
    settings: Settings,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    open_for_s: float | None,
    pattern: str | None,
) -> None:
    """List transactional ids with their coordinators, producer ids and states."""
    known = {state.lower(): state for state in STATES}
    unknown = [state for state in states if state.lower() not in known]
    if unknown:
        raise click.UsageError(f"there is no state '{unknown[0]}': choose of {', '.join(STATES)}.")
    wanted = Filter([known[state.lower()] for state in states], producer_ids, pattern)
    if open_for_s is not None:
        wanted.longer_than_ms = round(open_for_s * 1000)
        wanted.states = wanted.states or OPEN
    with cluster_of(settings) as cluster:
        found = transactions.list_transactions(cluster, wanted)
        open_ = [listed.transactional_id for listed in found if listed.state == "Ongoing"]
        described = transactions.describe_transactions(cluster, open_)
    data: list[Any] = [_row(listed, described.get(listed.transactional_id)) for listed in found]
    show(settings, data, lambda: _list_lines(data))


def _row(listed: Listed, described: Described | None) -> dict[str, Any]:
    return {
        "transactional_id": listed.transactional_id,
        "coordinator": listed.coordinator,
        "producer_id": listed.producer_id,
        "state": listed.state,
        "open_ms": open_ms(described),
    }


def open_ms(described: Described | None) -> int | None:
    if described is None or described.started_ms is None or described.state not in OPEN:
        return None
    return max(0, time.time_ns() // 1_000_000 - described.started_ms)


def _list_lines(data: list[dict[str, Any]]) -> Iterable[str]:
    if not data:
        return ["no transactions"]
    rows = [[*list(row.values())[:-1], None if row["open_ms"] is None else human_ms(row["open_ms"])] for row in data]
    return table(["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER", "STATE", "OPEN FOR"], rows)


# -- describe ------------------------------------------------------------------------------------------------------


@command("describe")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def describe(settings: Settings, ids: tuple[str, ...]) -> None:
    """State, producer, epoch, time-out, age and partitions of transactional ids."""
    with cluster_of(settings) as cluster:
        found = transactions.describe_transactions(cluster, dict.fromkeys(ids))
    for name, described in found.items():
        if described is None:
            raise OttlaError(f"there is no transactional id '{name}': `ottla txn list` shows what there is.")
    data: list[Any] = [_description(found[name]) for name in dict.fromkeys(ids)]  # type: ignore[arg-type]
    show(settings, data, lambda: [line for row in data for line in _description_lines(row)])


def _description(described: Described) -> dict[str, Any]:
    return {
        "transactional_id": described.transactional_id,
        "state": described.state,
        "coordinator": described.coordinator,
        "producer_id": described.producer_id,
        "producer_epoch": described.epoch,
        "timeout_ms": described.timeout_ms,
        "started": None if described.started_ms is None else utc(described.started_ms),
        "open_ms": open_ms(described),
        "partitions": [str(partition) for partition in described.partitions],
    }


def _description_lines(description: dict[str, Any]) -> Iterable[str]:
    shown = {**description, "timeout_ms": human_ms(description["timeout_ms"])}
    shown["open_ms"] = None if description["open_ms"] is None else human_ms(description["open_ms"])
    names = {"timeout_ms": "timeout", "open_ms": "open for"}
    yield from facts(
        (names.get(name, name.replace("_", " ")), value) for name, value in shown.items() if name != "partitions"
    )
    yield from facts([("partitions", ", ".join(description["partitions"]) or None)])
    yield ""
