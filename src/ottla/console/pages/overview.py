"""Health first, then what moves; and the way from a name to its page."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ottla.console.cluster.health import findings, verdict
from ottla.console.web.console import Console
from ottla.console.web.handling import page
from ottla.console.web.requests import whole
from ottla.console.web.routing import Route

_SHOWN = 8


def overview(console: Console, request: Request) -> Response:
    snapshot = console.seen()
    found = findings(snapshot, console.collector.reports)
    rates = [topic.records_per_s for topic in snapshot.topics.values() if topic.records_per_s is not None]
    named = [topic for topic in snapshot.topics.values() if not topic.is_internal]
    return console.page(
        request,
        "overview.html",
        findings=found,
        verdict=verdict(found),
        history=console.collector.history,
        records_rate=sum(rates) if rates else None,
        busiest=sorted(named, key=lambda topic: (-(topic.records_per_s or 0), -(topic.log_bytes or 0)))[:_SHOWN],
        behind=sorted(
            (group for group in snapshot.groups.values() if group.lag is not None), key=lambda group: -(group.lag or 0)
        )[:_SHOWN],
        measured=console.metrics.rows,
    )


def find(console: Console, request: Request) -> Response:
    """One that has exactly this name is opened; else the list that has names like it."""
    wanted = request.query_params.get("q", "").strip()
    snapshot = console.seen()
    if wanted in snapshot.topics:
        return RedirectResponse(f"/topics/{quote(wanted, safe='')}", 303)
    if wanted in snapshot.groups:
        return RedirectResponse(f"/groups/{quote(wanted, safe='')}", 303)
    if (number := whole(wanted)) in snapshot.brokers:
        return RedirectResponse(f"/brokers/{number}", 303)
    is_topic = any(wanted.lower() in name.lower() for name in snapshot.topics)
    is_group = any(wanted.lower() in name.lower() for name in snapshot.groups)
    where = "/groups" if is_group and not is_topic else "/topics"
    return RedirectResponse(f"{where}?q={quote(wanted)}", 303)


routes = [Route("/", page(overview)), Route("/find", page(find))]
