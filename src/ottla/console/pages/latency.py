"""How long things take: requests by API, as brokers measure them, and how old what groups have not read yet is."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ottla.console.web.console import Console
from ottla.console.web.handling import page
from ottla.console.web.routing import Route

# These are plotted first, whatever else is asked more often.
_WANTED = ("Produce", "Fetch")
_PLOTS = 4
_GROUPS = 8


def latency(console: Console, request: Request) -> Response:
    snapshot = console.seen()
    apis = console.metrics.apis
    names = [one.api for one in apis]
    plotted = [name for name in _WANTED if name in names]
    plotted += [name for name in names if name not in plotted][: _PLOTS - len(plotted)]
    behind = [
        (report.seconds_behind, snapshot.groups[name])
        for name in snapshot.groups
        if (report := console.collector.judged(name)) is not None and report.seconds_behind is not None
    ]
    behind.sort(key=lambda row: (-row[0], row[1].name))
    return console.page(
        request,
        "latency.html",
        apis=apis,
        plotted=plotted,
        history=console.collector.history,
        times=console.metrics.history,
        measured=console.metrics.rows,
        behind=behind[:_GROUPS],
    )


routes = [Route("/latency", page(latency))]
