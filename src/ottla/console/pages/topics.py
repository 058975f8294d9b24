"""Topics: the list, one of them with its partitions, groups and settings, and what can be changed."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.lookup import LATEST
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.moments import parse_time
from ottla.console.cluster import changes
from ottla.console.cluster.config import describe_settings
from ottla.console.cluster.snapshot import Topic
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import LONG_MAX, Form, whole
from ottla.console.web.routing import Route

_REPLICAS_MAX = 2**15 - 1


def topics(console: Console, request: Request) -> Response:
    snapshot = console.seen()
    with_internal = request.query_params.get("internal") == "1"
    lags = snapshot.lag_by_topic
    found = listing(
        request,
        [topic for topic in snapshot.topics.values() if with_internal or not topic.is_internal],
        lambda topic: topic.name,
        {
            "name": lambda topic: topic.name,
            "partitions": lambda topic: len(topic.partitions),
            "replication": lambda topic: topic.replication,
            "records": lambda topic: topic.records,
            "size": lambda topic: topic.log_bytes,
            "rate": lambda topic: topic.records_per_s,
            "lag": lambda topic: lags.get(topic.name),
        },
        "name",
    )
    return console.page(
        request,
        "topics.html",
        listing=found,
        lags=lags,
        with_internal=with_internal,
        internal_count=sum(topic.is_internal for topic in snapshot.topics.values()),
        history=console.collector.history,
    )


def topic_of(console: Console, request: Request) -> Topic:
    name = request.path_params["topic"]
    topic = console.seen().topics.get(name)
    if topic is None:
        console.collector.look_now()
        topic = console.seen().topics.get(name)
    if topic is None:
        raise NotFound(f"There is no topic '{name}': it was deleted, or never was.")
    return topic


def topic(console: Console, request: Request) -> Response:
    found = topic_of(console, request)
    groups = []
    for group in console.seen().groups_of(found.name):
        lags = [lag for where, lag in group.lags.items() if where.topic == found.name]
        members = sum(any(where.topic == found.name for where in member.partitions) for member in group.members)
        groups.append((group, sum(lags) if lags else None, members))
    return console.page(
        request,
        "topic.html",
        topic=found,
        tab="partitions",
        groups=sorted(groups, key=lambda row: -(row[1] or 0)),
        history=console.collector.history,
    )


def settings(console: Console, request: Request) -> Response:
    found = topic_of(console, request)
    with console.link_of(console.visitor(request)).borrowed() as cluster:
        entries = describe_settings(cluster, "topic", found.name)
    return console.page(request, "topic_settings.html", topic=found, tab="settings", entries=entries)


def manage(console: Console, request: Request) -> Response:
    return console.page(request, "topic_manage.html", topic=topic_of(console, request), tab="manage")


# --- changes


def create(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = form.stripped("name")
    partitions = replication = -1
    if form.stripped("partitions"):
        partitions = form.number("partitions", "the number of partitions", least=1)
    if form.stripped("replication"):
        replication = form.number("replication", "the replication factor", least=1, most=_REPLICAS_MAX)
    with console.link_of(visitor).borrowed() as cluster:
        changes.create_topic(cluster, name, partitions, replication, _assignments(form.text("settings")))
    return Done(f"Topic {name} is there.", f"/topics/{quote(name, safe='')}")


def _assignments(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        if line.strip():
            name, equals, value = line.partition("=")
            if not equals or not name.strip():
                raise OttlaError(f"a setting is written as name=value, one in each line, not '{line.strip()[:60]}'.")
            found[name.strip()] = value.strip()
    return found


def alter(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name, setting = request.path_params["topic"], form.stripped("setting")
    value = None if form.has("reset") else form.text("value").strip()
    if not setting:
        raise OttlaError("say which setting is meant.")
    with console.link_of(visitor).borrowed() as cluster:
        changes.alter_settings(cluster, "topic", name, {setting: value})
    what = f"{setting} is back to its default" if value is None else f"{setting} is {value}"
    return Done(f"{what} now, for topic {name}.")


def grow(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = request.path_params["topic"]
    count = form.number("count", "the number of partitions", least=1)
    with console.link_of(visitor).borrowed() as cluster:
        changes.add_partitions(cluster, name, count)
    return Done(f"Topic {name} has {count} partitions now; keys may be in other partitions than before.")


def delete(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = topic_of(console, request).name  # one that nobody knows would be waited for
    if form.text("confirm") != name:
        raise OttlaError(f"nothing was deleted: write the name of the topic, {name}, to confirm it.")
    with console.link_of(visitor).borrowed() as cluster:
        changes.delete_topic(cluster, name)
    return Done(f"Topic {name} is deleted.", "/topics")


def trim(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    """Before an offset, a time, or all."""
    found = topic_of(console, request)
    kind = form.text("before")
    chosen = [partition.index for partition in found.partitions]
    if text := form.stripped("partition"):
        if (number := whole(text)) not in chosen:
            raise OttlaError(f"topic '{found.name}' has no partition '{text[:20]}'.")
        chosen = [number]
    places = [TopicPartition(found.name, number) for number in chosen]
    with console.link_of(visitor).borrowed() as cluster:
        if kind == "offset":
            offset = form.number("at", "the offset", most=LONG_MAX)
            ends = cluster.offsets(dict.fromkeys(places, LATEST))
            before = {place: min(offset, end) for place, end in ends.items()}
        elif kind == "time":
            at_ms = parse_time(form.stripped("at").removeprefix("@"))
            if at_ms is None:
                raise OttlaError(f"'{form.stripped('at')[:40]}' is not a time: write -7d or 2026-01-31T12:00.")
            # Nothing is that new: all of it goes.
            before = cluster.offsets(dict.fromkeys(places, at_ms))
        elif kind == "all":
            before = dict.fromkeys(places, -1)
        else:
            raise OttlaError("say what to delete: all, before an offset, or before a time.")
        if form.text("confirm") != found.name:
            raise OttlaError(f"nothing was deleted: write the name of the topic, {found.name}, to confirm it.")
        changes.trim(cluster, before)
    return Done(f"Topic {found.name} is trimmed.")


routes = [
    Route("/topics", page(topics)),
    Route("/topics", change("create a topic", create), methods=["POST"]),
    Route("/topics/{topic}", page(topic)),
    Route("/topics/{topic}/settings", page(settings)),
    Route("/topics/{topic}/manage", page(manage)),
    Route("/topics/{topic}/settings", change("change settings of a topic", alter), methods=["POST"]),
    Route("/topics/{topic}/grow", change("add partitions", grow), methods=["POST"]),
    Route("/topics/{topic}/delete", change("delete a topic", delete), methods=["POST"]),
    Route("/topics/{topic}/trim", change("trim a topic", trim), methods=["POST"]),
]
