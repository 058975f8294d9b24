"""Runs an example on a few records with the test driver and prints what it writes: `python examples/streams/X.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.streams import Application, Record, TopologyTestDriver

# topic, key, value, time in ms
Row = tuple[str, Any, Any, int]


def run(app: Application, rows: Iterable[Row], *outputs: str) -> dict[str, list[Record]]:
    """What each of these topics has in the end."""
    with TopologyTestDriver(app.topology, handling=app.handling) as driver:
        for topic, key, value, timestamp in rows:
            driver.input_topic(topic).pipe(value, key=key, timestamp=timestamp)
        return {topic: driver.output_topic(topic).read_all() for topic in outputs}


def show(app: Application, rows: Iterable[Row], *outputs: str) -> None:
    for topic, records in run(app, rows, *outputs).items():
        for record in records:
            print(f"{topic}\t{record.timestamp}\t{record.key}\t{record.value}")
