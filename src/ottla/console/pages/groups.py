"""Groups: how far behind they are, who reads what, and the editor of their offsets, which shows its plan first."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.console.cluster import changes
from ottla.console.cluster.offset_plan import TIME, Move, Target, as_text, from_text, parse_target, plan
from ottla.console.cluster.snapshot import Group
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import Form, whole
from ottla.console.web.routing import Route
from ottla.console.web.words import plural

_WAIT_S = 10.0


def groups(console: Console, request: Request) -> Response:
    snapshot = console.seen()
    found = listing(
        request,
        snapshot.groups.values(),
        lambda group: group.name,
        {
            "name": lambda group: group.name,
            "state": lambda group: group.state,
            # The worst of its partitions.
            "verdict": lambda group: _rank(console, group.name),
            "members": lambda group: len(group.members),
            "topics": lambda group: len(group.topics),
            "lag": lambda group: group.lag,
            "rate": lambda group: group.commits_per_s,
        },
        "-lag",
    )
    return console.page(request, "groups.html", listing=found, history=console.collector.history)


def _rank(console: Console, name: str) -> int | None:
    report = console.collector.judged(name)
    return None if report is None else int(report.worst.verdict.status) if report.worst else 0


def _group(console: Console, request: Request) -> Group:
    name = request.path_params["group"]
    found = console.seen().groups.get(name)
    if found is None:
        console.collector.look_now()
        found = console.seen().groups.get(name)
    if found is None:
        raise NotFound(f"There is no group '{name}': it was deleted, its offsets expired, or it never was.")
    return found


def group(console: Console, request: Request) -> Response:
    found = _group(console, request)
    snapshot = console.seen()
    owners = {where: member for member in found.members for where in member.partitions}
    rows = []
    for where in sorted({*found.offsets, *owners}):
        topic = snapshot.topics.get(where.topic)
        partition = next((each for each in topic.partitions if each.index == where.partition), None) if topic else None
        rows.append((where, found.offsets.get(where), partition, found.lags.get(where), owners.get(where)))
    report = console.collector.judged(found.name)
    verdicts = {TopicPartition(one.topic, one.partition): one.verdict for one in report.partitions} if report else {}
    return console.page(
        request, "group.html", group=found, rows=rows, verdicts=verdicts, history=console.collector.history
    )


def offsets(console: Console, request: Request) -> Response:
    """The editor; with a target in the query, its plan."""
    found = _group(console, request)
    given = request.query_params
    moves, problem = None, None
    if "to" in given:
        try:
            target = parse_target(given["to"], given.get("at", ""))
            with console.link_of(console.visitor(request)).borrowed() as cluster:
                moves = _planned(cluster, found.name, target, given.get("topic", ""), given.get("partition", ""))
        except (OttlaError, OSError) as error:
            problem = str(error)
    topics = sorted({*found.topics, *console.seen().topics})
    return console.page(
        request,
        "group_offsets.html",
        group=found,
        moves=moves,
        moves_text=as_text(moves or ()),
        problem_of_plan=problem,
        given=dict(given),
        topics=topics,
    )


def _planned(cluster: ClusterReader, group: str, target: Target, topic: str, partition: str) -> list[Move]:
    committed = {where: one.offset for where, one in committed_offsets(cluster, group, retry_timeout_s=_WAIT_S).items()}
    if topic:
        present = cluster.partitions([topic]).get(topic)
        if present is None:
            raise OttlaError(f"there is no topic '{topic}'.")
        chosen = [TopicPartition(topic, number) for number in present]
    else:
        known = cluster.partitions(sorted({where.topic for where in committed}))
        chosen = [where for where in committed if where.partition in known.get(where.topic, ())]
    if partition.strip():
        if (number := whole(partition)) is None:
            raise OttlaError(f"a partition is a number, not '{partition[:20]}'.")
        chosen = [where for where in chosen if where.partition == number]
    if not chosen:
        raise OttlaError("nothing is chosen: the group has no offsets there. Choose a topic.")
    starts = cluster.offsets(dict.fromkeys(chosen, EARLIEST))
    ends = cluster.offsets(dict.fromkeys(chosen, LATEST))
    at_time = cluster.offsets(dict.fromkeys(chosen, target.value)) if target.kind == TIME else {}
    return plan(target, committed, {where: (starts[where], ends[where]) for where in chosen}, at_time)


def move(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = request.path_params["group"]
    wanted = from_text(form.all("move"))
    if not wanted:
        raise OttlaError("nothing is to be moved.")
    with console.link_of(visitor).borrowed() as cluster:
        now = {where: one.offset for where, one in committed_offsets(cluster, name, retry_timeout_s=_WAIT_S).items()}
        moved = [where for where, (_, before) in wanted.items() if now.get(where) != before]
        if moved:
            raise OttlaError(
                f"nothing was moved: the group has committed since the plan was made (in {moved[0]}). Stop its "
                "consumers, and make the plan again."
            )
        _require_stopped(console, name)
        changes.commit_offsets(cluster, name, {where: after for where, (after, _) in wanted.items()})
    return Done(f"Group {name} is moved in {plural(len(wanted), 'partition')}.", f"/groups/{quote(name, safe='')}")


def _require_stopped(console: Console, name: str) -> None:
    console.collector.look_now()
    group = console.seen().groups.get(name)
    if group is not None and group.members:
        raise OttlaError(f"group '{name}' has {plural(len(group.members), 'active member')}: stop its consumers first.")


def delete(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = request.path_params["group"]
    if form.text("confirm") != name:
        raise OttlaError(f"nothing was deleted: write the name of the group, {name}, to confirm it.")
    with console.link_of(visitor).borrowed() as cluster:
        changes.delete_group(cluster, name)
    return Done(f"Group {name} and its offsets are deleted.", "/groups")


routes = [
    Route("/groups", page(groups)),
    Route("/groups/{group}", page(group)),
    Route("/groups/{group}/offsets", page(offsets)),
    Route("/groups/{group}/offsets", change("move offsets of a group", move), methods=["POST"]),
    Route("/groups/{group}/delete", change("delete a group", delete), methods=["POST"]),
]
