"""Business processes: what is expected, how many instances are well, and which ones are stuck, missing a step, late,
out of order or doubled."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ottla.console.processes import Watched
from ottla.console.records.masking import HIDDEN
from ottla.console.records.showing import Shown, read
from ottla.console.web.console import Console
from ottla.console.web.handling import NotFound, page
from ottla.console.web.requests import positive
from ottla.console.web.routing import Route
from ottla.tracing.process import PROBLEMS, Case

_PER_PAGE = 50
_PAGES_MAX = 100_000
MEANINGS = {
    "stuck": "a step is overdue, and nothing came after it",
    "missing": "a step is overdue, but a later one came",
    "late": "a step came after it was due",
    "out of order": "a step is older than the one before it",
    "duplicate": "a step came more than once",
}


@dataclass(frozen=True)
class CaseRow:
    case: Case
    id: Shown
    trace: str | None


def processes(console: Console, request: Request) -> Response:
    return console.page(request, "processes.html", watched=list(console.processes.all.values()), problems=PROBLEMS)


def process(console: Console, request: Request) -> Response:
    name = request.path_params["name"]
    watched = console.processes.all.get(name)
    if watched is None:
        raise NotFound(f"The console watches no process '{name}'.")
    only = request.query_params.get("only", "")
    only = only if only in PROBLEMS else ""
    report = watched.report
    cases = [] if report is None else [one for one in report.cases if not only or only in one.problems]
    # The longest overdue first: somebody waits for them.
    cases.sort(key=lambda one: (-one.overdue_ms, one.first_ms))
    pages = max(1, -(-len(cases) // _PER_PAGE))
    number = min(pages, positive(request, "page", 1, _PAGES_MAX))
    is_hidden = _hides_ids(console, request, watched)
    return console.page(
        request,
        "process.html",
        watched=watched,
        report=report,
        problems=PROBLEMS,
        meanings=MEANINGS,
        only=only,
        cases=[_row(one, is_hidden) for one in cases[(number - 1) * _PER_PAGE : number * _PER_PAGE]],
        total=len(cases),
        number=number,
        pages=pages,
        is_hidden=is_hidden,
    )


def _hides_ids(console: Console, request: Request, watched: Watched) -> bool:
    """An id is a part of a record. The console has read it in its own name: whoever logs in at the cluster sees it only
    as one of its admins, and whoever may not unmask not where something is masked."""
    visitor = console.visitor(request)
    if visitor.is_cluster_user and visitor.name not in console.settings.admins:
        return True
    return not console.may_unmask(visitor) and any(console.masks.of(topic) for topic in watched.process.topics)


def _row(case: Case, is_hidden: bool) -> CaseRow:
    seen = next((step.position for step in case.steps if step.position is not None), None)
    trace = None
    if seen is not None:
        trace = "/trace?" + urlencode({"topic": seen.topic, "partition": seen.partition, "offset": seen.offset})
    return CaseRow(case, read(HIDDEN.encode() if is_hidden else case.id, "auto"), trace)


routes = [Route("/processes", page(processes)), Route("/processes/{name}", page(process))]
