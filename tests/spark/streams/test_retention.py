"""State with a retention does not grow with time: an hour of events needs no more of it than the first minutes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.client.settings import parse_named
from ottla.streams import JoinWindows, StreamsBuilder, TimeWindows, Topology, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.identity import task_topic
from ottla.streams.engine.task_state import open_state
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.streams.test_application import in_order

HOUR_MS, STEP_MS = 3_600_000, 200
KEYS = 20
WINDOW_MS = GRACE_MS = 10_000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def topology(source: str, out: str) -> Topology:
    """A windowed count, and a join of the stream with itself: what each of them keeps has an end."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    stream = builder.stream(source)
    counts = stream.group_by_key().windowed_by(TimeWindows.of(WINDOW_MS, grace=GRACE_MS)).count(store="windows")
    counts.to_stream(lambda window, count: window.key).map_values(str).to(out)
    stream.join(stream, lambda one, other: one, JoinWindows.of(1_000, grace=GRACE_MS), name="pairs").to(out)
    return builder.build()


def feed(servers: str, source: str) -> int:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(HOUR_MS // STEP_MS):
        producer.produce(source, "x", f"key{number % KEYS}", partition=0, timestamp=1 + number * STEP_MS)
        producer.poll(0)
    assert producer.flush(60) == 0
    return HOUR_MS // STEP_MS


@pytest.mark.slow
def test_an_hour_of_events_needs_no_more_state_than_its_first_minutes(spark: Any, servers: str, tmp_path: Path) -> None:
    source, out = topics.create(servers, 1, name="in"), topics.create(servers, 1, name="out")
    application = StreamsApplication(topology(source, out), application_id="hour", bootstrap=servers)
    fed = feed(servers, source)
    application.run_available(spark, checkpoint=str(tmp_path), maxOffsetsPerTrigger=fed // 20)
    notes = [json.loads(row[3]) for row in in_order(servers, task_topic("hour"))]
    entries = [note["entries"] for note in notes if note["remembered"]["stream_time"] > 0]
    assert len(entries) >= 20
    assert max(entries[3:]) <= max(entries[:3]) * 1.1, entries
    # What a process has that has to read it: the changelogs say as well what is gone.
    specs = dict(application.topology.stores)
    state = open_state(parse_named(servers, {}), "hour", "anew", "0_0", 0, specs)
    assert sum(len(overlay) for overlay in state.pending.values()) == entries[-1]
