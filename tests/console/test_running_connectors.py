"""The pages of connectors that really run: a file becomes a topic and a file again, on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.testing import Broker, Connect
from tests.connect.conftest import SETTINGS
from tests.console.running import RunningConsole, Visitor
from tests.console.test_pages import found, until
from tests.spark.conftest import spark  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.xdist_group("spark")]
LINES = 500


@pytest.fixture(scope="module")
def worker(broker: Broker, spark: Any) -> Iterator[Connect]:  # noqa: F811
    with Connect(broker.bootstrap_servers, spark=spark, **SETTINGS) as running:
        yield running


def make(visitor: Visitor, name: str, plugin: str, **settings: str) -> None:
    fields = {f"setting:{key.replace('_', '.')}": value for key, value in settings.items()}
    made = visitor.post("/connectors", {"name": name, "plugin": plugin, **fields})
    assert f"Connector {name} is made." in made.text, made.text


def lag_of(running: RunningConsole, sink: str) -> int:
    lag = running.console.seen().groups[f"connect-{sink}"].lag
    assert lag is not None
    return lag


def test_connectors_are_made_run_paused_and_seen_to_fail(
    broker: Broker, worker: Connect, topic: str, tmp_path: Path
) -> None:
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("".join(f"line {number}\n" for number in range(LINES)))
    # One partition: of those that a group has committed nothing in no lag is known.
    broker.create_topic(topic, 1)
    source, sink, ill = f"{topic}-in", f"{topic}-out", f"{topic}-ill"
    with RunningConsole(broker.bootstrap_servers, connect=(worker.url,)) as running:
        visitor = running.visitor()
        make(visitor, source, "FileStreamSourceConnector", file=str(lines), topic=topic, tasks_max="1")
        make(visitor, sink, "FileStreamSinkConnector", file=str(copy), topics=topic, tasks_max="1")
        make(visitor, ill, "FileStreamSinkConnector", file=str(tmp_path / "nowhere" / "x"), topics=topic)
        until(lambda: copy.exists() and len(copy.read_text().splitlines()) == LINES)
        assert found(visitor, topic, text="line 77", limit="50")[1]["matches"] == 1
        worker.wait_for(ill, "FAILED")

        # The one that failed comes first, with its reason; the sink has read everything, as a group.
        page = visitor.get("/connectors").text
        assert page.index(f">{ill}<") < page.index(f">{source}<") and "nowhere" in page
        until(lambda: "1 of 1" in visitor.get(f"/connectors/{source}").text)
        assert f'href="/topics/{topic}/records"' in visitor.get(f"/connectors/{source}").text
        until(lambda: f'href="/groups/connect-{sink}"' in visitor.get(f"/connectors/{sink}").text)
        # Markers of the source's transactions count, as Kafka counts them.
        until(lambda: lag_of(running, sink) < LINES)

        # What a sink does not read while it is paused is its lag, and it falls once the sink goes on.
        visitor.post(f"/connectors/{sink}/control", {"action": "pause"})
        worker.wait_for(sink, "PAUSED")
        assert "Resume" in visitor.get(f"/connectors/{sink}").text
        with lines.open("a") as file:
            file.writelines(f"more {number}\n" for number in range(LINES))
        until(lambda: found(visitor, topic, text="more", limit="500")[1]["matches"] == LINES)
        until(lambda: lag_of(running, sink) >= LINES)
        until(lambda: f"<dd>{lag_of(running, sink)}</dd>" in visitor.get(f"/connectors/{sink}").text)
        visitor.post(f"/connectors/{sink}/control", {"action": "resume"})
        until(lambda: len(copy.read_text().splitlines()) == 2 * LINES)
        until(lambda: lag_of(running, sink) < LINES)

        # Restarted in vain, then mended by an edit: the folder is there now.
        visitor.post(f"/connectors/{ill}/control", {"action": "restart"})
        worker.wait_for(ill, "FAILED")
        (tmp_path / "nowhere").mkdir()
        visitor.post(f"/connectors/{ill}/control", {"action": "restart"})
        worker.wait_for(ill, "RUNNING")
        until(lambda: "It failed" not in visitor.get(f"/connectors/{ill}").text)
        for name in (source, sink, ill):
            assert "is deleted" in visitor.post(f"/connectors/{name}/delete", {"confirm": name}).text
