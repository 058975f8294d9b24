"""Partitions and replicas over all topics: who leads, who is in sync, moves and elections."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.admin.elections import elect_leaders
from ottla.client.admin.reassignments import alter_reassignments
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.console.cluster.snapshot import Partition
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import Form, whole
from ottla.console.web.routing import Route

_AT_ONCE_MAX = 1_000


@dataclass(frozen=True)
class Row:
    topic: str
    partition: Partition
    moving_to: tuple[int, ...] | None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition.index}"


def _shown(show: str, partition: Partition) -> bool:
    if show == "leaderless":
        return partition.leader < 0
    if show == "under":
        return partition.is_under_replicated
    if show == "astray":
        return 0 <= partition.leader != partition.preferred
    return True


def partitions(console: Console, request: Request) -> Response:
    snapshot = console.seen()
    show = request.query_params.get("show", "all")
    moving = {one.partition: one.target for one in snapshot.reassignments}
    everything = [
        Row(topic.name, partition, moving.get(TopicPartition(topic.name, partition.index)))
        for topic in snapshot.topics.values()
        for partition in topic.partitions
    ]
    rows = [
        row
        for row in everything
        if (show == "moving" and row.moving_to) or (show != "moving" and _shown(show, row.partition))
    ]
    found = listing(
        request,
        rows,
        lambda row: row.name,
        {
            "name": lambda row: (row.topic, row.partition.index),
            "leader": lambda row: row.partition.leader,
            "size": lambda row: row.partition.log_bytes,
            "records": lambda row: row.partition.records,
        },
        "name",
    )
    counts = {
        "all": len(everything),
        "under": sum(row.partition.is_under_replicated for row in everything),
        "leaderless": sum(row.partition.leader < 0 for row in everything),
        "astray": sum(_shown("astray", row.partition) for row in everything),
        "moving": len(moving),
    }
    return console.page(request, "partitions.html", listing=found, show=show, counts=counts)


def _named(text: str) -> TopicPartition:
    topic, dash, number = text.strip().rpartition("-")
    index = whole(number)
    if not dash or not topic or index is None:
        raise OttlaError(f"'{text[:60]}' is not a partition: write TOPIC-NUMBER, such as orders-3.")
    return TopicPartition(topic, index)


def move(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    where = _named(form.text("partition"))
    if form.has("cancel"):
        wanted: list[int] | None = None
    else:
        parts = [whole(part) for part in form.text("replicas").split(",") if part.strip()]
        wanted = [part for part in parts if part is not None]
        if not wanted or len(wanted) < len(parts):
            raise OttlaError("replicas are numbers of brokers with commas between, such as 1,2,3.")
    with console.link_of(visitor).borrowed() as cluster:
        refusals = alter_reassignments(cluster, {where: wanted})
    if where in refusals:
        raise OttlaError(f"{where} is not moved: {refusals[where]}.")
    return Done(
        f"The move of {where} is stopped."
        if wanted is None
        else f"{where} is on its way to brokers {form.text('replicas')}."
    )


def elect(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    """One partition, or all that are not led by their preferred replica."""
    if form.text("partition"):
        wanted = [_named(form.text("partition"))]
    else:
        wanted = [
            TopicPartition(topic.name, partition.index)
            for topic in console.seen().topics.values()
            for partition in topic.partitions
            if _shown("astray", partition) and partition.preferred in partition.isr
        ][:_AT_ONCE_MAX]
    if not wanted:
        return Done("Every partition is led by its preferred replica already.")
    unclean = form.text("unclean") == "1"
    if unclean and form.text("confirm") != form.text("partition"):
        raise OttlaError("nothing was done: write the partition's name to confirm that records may be lost.")
    with console.link_of(visitor).borrowed() as cluster:
        refusals = elect_leaders(cluster, wanted, unclean=unclean)
    if refusals:
        first = next(iter(refusals.items()))
        raise OttlaError(f"{len(refusals)} of {len(wanted)} were refused, the first ({first[0]}) because: {first[1]}.")
    return Done(f"Leaders are elected for {len(wanted)} partition{'' if len(wanted) == 1 else 's'}.")


routes = [
    Route("/partitions", page(partitions)),
    Route("/partitions/move", change("move partitions", move), methods=["POST"]),
    Route("/partitions/elect", change("elect leaders", elect), methods=["POST"]),
]
