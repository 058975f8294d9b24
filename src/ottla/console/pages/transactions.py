"""Transactions: those that coordinators know, and those that partitions hold open and nobody will end."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.admin.transactions import (
    Described,
    Filter,
    Listed,
    OpenInLog,
    abort_in_log,
    describe_transactions,
    is_hanging,
    list_transactions,
    open_in_logs,
    owners,
)
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import LONG_MAX, Form
from ottla.console.web.routing import Route

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")


@dataclass(frozen=True)
class Row:
    listed: Listed
    described: Described | None

    @property
    def open_ms(self) -> float | None:
        if self.described is None or self.described.started_ms is None or self.listed.state not in _OPEN:
            return None
        return max(0.0, time.time() * 1000 - self.described.started_ms)


def transactions(console: Console, request: Request) -> Response:
    known: list[Row] = []
    held: list[tuple[OpenInLog, Described | None, bool]] = []
    problem = None
    try:
        with console.link_of(console.visitor(request)).borrowed() as cluster:
            listed = list_transactions(cluster, Filter())
            described = describe_transactions(cluster, [one.transactional_id for one in listed if one.state in _OPEN])
            known = [Row(one, described.get(one.transactional_id)) for one in listed]
            held = _held(cluster)
    except (OttlaError, OSError) as error:
        problem = str(error)
    found = listing(
        request,
        known,
        lambda row: row.listed.transactional_id,
        {
            "name": lambda row: row.listed.transactional_id,
            "state": lambda row: (row.listed.state not in _OPEN, row.listed.state),
            "open": lambda row: row.open_ms,
        },
        "state",
    )
    return console.page(
        request,
        "transactions.html",
        listing=found,
        held=sorted(held, key=lambda row: not row[2]),
        problem_of_page=problem,
        now_ms=time.time() * 1000,
    )


def _held(cluster: ClusterClient) -> list[tuple[OpenInLog, Described | None, bool]]:
    held = open_in_logs(cluster, None)
    known = owners(cluster, held)
    return [(one, known.get(one.producer_id), is_hanging(one, known.get(one.producer_id))) for one in held]


def abort(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    topic, number = form.text("topic"), form.number("partition", "a partition")
    start = form.number("start", "an offset", most=LONG_MAX)
    producer = form.number("producer", "a producer id", most=LONG_MAX)
    with console.link_of(visitor).borrowed() as cluster:
        for one in open_in_logs(cluster, [topic]):
            if (one.partition.partition, one.start_offset, one.producer_id) == (number, start, producer):
                owner = owners(cluster, [one]).get(producer)
                if not is_hanging(one, owner) and form.text("force") != "1":
                    assert owner is not None
                    raise OttlaError(
                        f"that transaction is not hanging: its coordinator knows it as '{owner.transactional_id}' and "
                        f"aborts it {owner.timeout_ms / 1000:.0f} s after its start."
                    )
                abort_in_log(cluster, one)
                return Done(f"The transaction of producer {producer} in {topic}-{number} is aborted.")
    raise OttlaError(f"{topic}-{number} has no such transaction open any more.")


routes = [
    Route("/transactions", page(transactions)),
    Route("/transactions/abort", change("abort a transaction", abort), methods=["POST"]),
]
