"""The broker's audit trail, if its file was named, and what was changed through this console."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ottla.console.web.console import Console
from ottla.console.web.handling import page
from ottla.console.web.listing import listing
from ottla.console.web.routing import Route

_TAIL_BYTES = 2 * 1024 * 1024
_SHOWN_FIRST = ("time", "ts", "timestamp", "message", "event", "principal", "client", "result")


def audit(console: Console, request: Request) -> Response:
    problem = None
    lines: list[dict[str, Any]] = []
    if console.settings.audit_file is not None:
        try:
            lines = tail(console.settings.audit_file)
        except OSError as error:
            problem = f"{console.settings.audit_file} cannot be read: {error.strerror}."
    found = listing(request, list(reversed(lines)), json.dumps, {"time": lambda line: 0}, "time")
    return console.page(
        request,
        "audit.html",
        listing=found,
        journal=list(console.journal)[:100],
        problem_of_page=problem,
        # Trails have different names for the same: a column that is empty all the way down tells nothing.
        known=[name for name in _SHOWN_FIRST if any(name in line for line in found.rows)],
    )


def tail(path: Path) -> list[dict[str, Any]]:
    """The last lines, oldest first; one that was cut, or is no JSON, is left out."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        data = file.read(_TAIL_BYTES)
    found = []
    for line in data.splitlines():
        try:
            tree = json.loads(line)
        except ValueError:
            continue
        if isinstance(tree, dict):
            found.append(tree)
    return found


routes = [Route("/audit", page(audit))]
