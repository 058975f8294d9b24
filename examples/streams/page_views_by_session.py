"""Page views by session: what a visitor looked at without a break of half an hour, once the session is over.

python examples/streams/page_views_by_session.py
ottla streams run examples/streams/page_views_by_session.py --create-topics
"""

from __future__ import annotations

from typing import Any

from showing import Row, show

from ottla.streams import Application, SessionWindows, StreamsBuilder, Windowed, minutes, serdes

builder = StreamsBuilder(key=serdes.string)
views = builder.stream("page-views")


def add(visitor: str, view: dict[str, Any], pages: list[str]) -> list[str]:
    return [*pages, view["page"]]


def both(visitor: str, one: list[str], other: list[str]) -> list[str]:
    return one + other


def told(session: Windowed, pages: list[str]) -> dict[str, Any]:
    seconds = (session.window.end - session.window.start) // 1000
    return {"pages": pages, "seconds": seconds}


sessions = (
    views.group_by_key()
    .windowed_by(SessionWindows.with_gap(minutes(30), grace=minutes(5)))
    .emit_on_close()
    .aggregate(list, add, both, store="sessions")
)
sessions.map_values(told).to_stream(lambda session, about: session.key).to("sessions")

app = Application("page-views-by-session", builder)

ROWS: list[Row] = [
    ("page-views", "ada", {"page": "/"}, minutes(0)),
    ("page-views", "ada", {"page": "/books"}, minutes(10)),
    ("page-views", "bob", {"page": "/"}, minutes(12)),
    ("page-views", "ada", {"page": "/"}, minutes(90)),
    ("page-views", "bob", {"page": "/help"}, minutes(200)),
]

if __name__ == "__main__":
    show(app, ROWS, "sessions")
