"""The path of a record: a time line over topics, its hops, who has read them, and how far was searched.

The page is a form; the trace runs in a thread, in the visitor's name and with what they may see, and comes as
server-sent events. It takes one of the places of searches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from ottla.common.errors import OttlaError
from ottla.console.records.showing import Shown, read
from ottla.console.records.story import WINDOW, Story, masking_view, parse_story
from ottla.console.web.console import Console, Visitor, console_of
from ottla.console.web.handling import page
from ottla.console.web.routing import Route
from ottla.console.web.streaming import SEARCH_S_MAX, Emit, searches, streamed
from ottla.tracing import Budget, Hop, Limits, Preview, Searched, Trace, render_svg, trace
from ottla.tracing.model import READ
from ottla.tracing.picture import duration_text
from ottla.tracing.search import as_it_is

_HOPS_MAX = 500
_BYTES_MAX = 4 * 1024**3
_TOLD_EVERY_S = 0.25
_TOPICS_SHOWN_MAX = 200
_READERS_SHOWN_MAX = 500
_FEWER = "a smaller window or fewer topics take less"
_CUT_SHORT = {
    "time": f"A trace takes {SEARCH_S_MAX:.0f} seconds at most: {_FEWER}, and ottla trace may take longer.",
    "bytes": f"A trace reads 4 GiB at most: {_FEWER}, and ottla trace may read more.",
    "hops": f"More than {_HOPS_MAX} records share this: follow what fewer of them have; {_FEWER}, too.",
    "cancelled": "It was cancelled.",
}


def trace_page(console: Console, request: Request) -> Response:
    story, problem = None, None
    try:
        story = parse_story(request.query_params.multi_items())
    except OttlaError as error:
        problem = str(error)
    pairs = [(name, value) for name, value in request.query_params.multi_items() if value]
    shown = {name: ", ".join(value for key, value in pairs if key == name) for name, _ in pairs}
    return console.page(
        request,
        "trace.html",
        given=shown,
        window=WINDOW,
        story=story,
        problem_of_query=problem,
        stream=f"/trace/stream?{urlencode(pairs)}" if story is not None else None,
        is_masked=console.masks.are_there and not console.may_unmask(console.visitor(request)),
    )


async def stream(request: Request) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    given = request.query_params.multi_items()

    def work(emit: Emit, is_cancelled: Callable[[], bool]) -> None:
        story = parse_story(given)
        if story is None:
            raise OttlaError("say which record is meant: its topic, partition and offset.")
        found = _traced(console, visitor, story, emit, is_cancelled)
        emit("trace", console.fragment("_trace.html", **_shown(found)))
        emit("done", _told(found.records, found.bytes, len(found.hops), found.took_s))

    return streamed(work, searches)


def _traced(console: Console, visitor: Visitor, story: Story, emit: Emit, is_cancelled: Callable[[], bool]) -> Trace:
    next_s = 0.0

    def on_progress(budget: Budget) -> None:
        nonlocal next_s
        if (now_s := time.monotonic()) >= next_s:
            next_s = now_s + _TOLD_EVERY_S
            emit("progress", _told(budget.records, budget.bytes, budget.hops, budget.took_s))

    sees_all = console.may_unmask(visitor) or not console.masks.are_there
    return trace(
        console.link_of(visitor).settings,
        story.start,
        by=story.by,
        topics=story.topics,
        window_ms=story.window_ms,
        limits=Limits(seconds_max=SEARCH_S_MAX, bytes_max=_BYTES_MAX, hops_max=_HOPS_MAX),
        is_cancelled=is_cancelled,
        on_progress=on_progress,
        view=as_it_is if sees_all else masking_view(console.masks),
    )


def _told(records: int, size: int, hops: int, seconds: float) -> dict[str, float]:
    return {"records": records, "bytes": size, "hops": hops, "seconds": round(seconds, 2)}


@dataclass(frozen=True)
class HopRow:
    hop: Hop
    key: Shown
    value: Shown

    @property
    def latency(self) -> str:
        return "–" if self.hop.latency_ms is None else duration_text(self.hop.latency_ms)

    @property
    def writer(self) -> str:
        hop = self.hop
        return "" if hop.writer is None else hop.writer if hop.batch is None else f"{hop.writer} #{hop.batch}"


def _shown(found: Trace) -> dict[str, object]:
    # Those that have not read it first: of them one would like to know.
    readers = sorted(
        ((hop, group) for hop in found.hops for group in hop.groups), key=lambda reader: reader[1].verdict == READ
    )
    topics = sorted(found.searched, key=lambda topic: (topic.is_complete, not topic.found, topic.topic))
    return {
        "found": found,
        "looked_for": [(by, _preview(value)) for by, value in found.looked_for],
        # It escapes whatever comes from records.
        "picture": Markup(render_svg(found)),
        "hops": [HopRow(hop, _preview(hop.key), _preview(hop.value)) for hop in found.hops],
        "readers": readers[:_READERS_SHOWN_MAX],
        "readers_more": max(0, len(readers) - _READERS_SHOWN_MAX),
        "cut_short": None if found.cut_short is None else _CUT_SHORT[found.cut_short],
        "topics": [(topic, _short_of(topic)) for topic in topics[:_TOPICS_SHOWN_MAX]],
        "topics_more": max(0, len(topics) - _TOPICS_SHOWN_MAX),
        "incomplete": sum(not topic.is_complete for topic in topics),
    }


def _preview(preview: Preview | None) -> Shown:
    if preview is None:
        return read(None)
    text = preview.text
    return read(preview.start if text is None else text.encode())


def _short_of(topic: Searched) -> str:
    """Partitions that were not searched to their end."""
    return ", ".join(
        f"{number}: {reached:,} of {end:,}"
        for number, (_, reached, end) in sorted(topic.partitions.items())
        if reached < end
    )


routes = [
    Route("/trace", page(trace_page)),
    Route("/trace/stream", stream),
]
