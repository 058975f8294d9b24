"""Brokers: what they lead, how full their disks are, and their settings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ottla.common.errors import OttlaError
from ottla.console.cluster import changes
from ottla.console.cluster.config import describe_settings
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.requests import Form
from ottla.console.web.routing import Route


def brokers(console: Console, request: Request) -> Response:
    return console.page(request, "brokers.html", history=console.collector.history, measured=console.metrics.rows)


def broker(console: Console, request: Request) -> Response:
    number = request.path_params["broker"]
    snapshot = console.seen()
    found = snapshot.brokers.get(number)
    if found is None:
        gone = "it is gone, and has replicas of partitions" if number in snapshot.absent_brokers else "nobody knows it"
        raise NotFound(f"There is no broker {number} now: {gone}.")
    entries, problem = [], None
    try:
        with console.link_of(console.visitor(request)).borrowed() as cluster:
            entries = describe_settings(cluster, "broker", str(number))
    except (OttlaError, OSError) as error:
        problem = str(error)
    sizes: dict[str, int] = {}
    for topic in snapshot.topics.values():
        mine = [each.log_bytes or 0 for each in topic.partitions if number in each.replicas]
        if mine:
            sizes[topic.name] = sum(mine)
    return console.page(
        request,
        "broker.html",
        broker=found,
        entries=entries,
        problem_of_settings=problem,
        largest=sorted(sizes.items(), key=lambda row: -row[1])[:8],
        history=console.collector.history,
    )


def alter(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    number, setting = str(request.path_params["broker"]), form.stripped("setting")
    if int(number) not in console.seen().brokers:  # else it would be waited for
        raise OttlaError(f"there is no broker {number} in the cluster now.")
    value = None if form.has("reset") else form.text("value").strip()
    with console.link_of(visitor).borrowed() as cluster:
        changes.alter_settings(cluster, "broker", number, {setting: value})
    what = f"{setting} is back to its default" if value is None else f"{setting} is changed"
    return Done(f"{what}, for broker {number}.")


# Each broker has its own of these: that they differ is no finding.
_OF_EACH = frozenset(
    (
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "ottla.metrics.listen",
    )
)


def configuration(console: Console, request: Request) -> Response:
    """Every setting of the brokers beside each other: what is set, and where they differ."""
    snapshot = console.seen()
    columns: dict[int, dict[str, str | None]] = {}
    rows: dict[str, object] = {}
    problems: list[str] = []
    visitor = console.visitor(request)
    for number in list(snapshot.brokers)[:12]:
        try:
            with console.link_of(visitor).borrowed() as cluster:
                entries = describe_settings(cluster, "broker", str(number))
        except (OttlaError, OSError) as error:
            problems.append(f"broker {number}: {error}")
            continue
        columns[number] = {entry.name: entry.value for entry in entries}
        for entry in entries:
            known = rows.get(entry.name)
            if known is None or entry.is_set:
                rows[entry.name] = entry
    differing = {
        name for name in rows if len({values.get(name) for values in columns.values()}) > 1 and name not in _OF_EACH
    }
    return console.page(
        request,
        "configuration.html",
        entries=[rows[name] for name in sorted(rows)],
        columns=columns,
        differing=differing,
        problems=problems,
    )


routes = [
    Route("/brokers", page(brokers)),
    Route("/brokers/{broker:int}", page(broker)),
    Route("/brokers/{broker:int}/settings", change("change settings of a broker", alter), methods=["POST"]),
    Route("/configuration", page(configuration)),
]
