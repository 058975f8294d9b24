"""Searches joined with clicks: which result of a search was clicked within a minute, and which searches led nowhere.

python examples/streams/searches_and_clicks.py
ottla streams run examples/streams/searches_and_clicks.py --create-topics
"""

from __future__ import annotations

from typing import Any

from showing import Row, show

from ottla.streams import Application, JoinWindows, StreamsBuilder, minutes, seconds, serdes

builder = StreamsBuilder(key=serdes.string)
searches, clicks = builder.stream("searches"), builder.stream("clicks")


def joined(search: dict[str, Any], click: dict[str, Any] | None) -> dict[str, Any]:
    return {"query": search["query"], "clicked": None if click is None else click["page"]}


# A click comes after its search: none before it counts.
within = JoinWindows.of(minutes(1), grace=seconds(10)).before(0)
searches.left_join(clicks, joined, within, name="search-with-click").to("searches-with-clicks")

app = Application("searches-and-clicks", builder)

ROWS: list[Row] = [
    ("searches", "ada", {"query": "kafka in python"}, 0),
    ("clicks", "ada", {"page": "/ottla"}, 5_000),
    ("searches", "bob", {"query": "nothing"}, 10_000),
    ("clicks", "bob", {"page": "/late"}, 90_000),
    ("searches", "cy", {"query": "later"}, 200_000),
]

if __name__ == "__main__":
    show(app, ROWS, "searches-with-clicks")
