"""A conversation with a Connect worker: the same questions for Kafka Connect (recorded) and for ours (compared).

A step is a request; `until` says what its answer must show before the conversation goes on, for what takes a moment.
`{folder}` stands for a folder of the run. Answers are kept as they came but for what differs from run to run.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.connect_processes import ask

SOURCE = {
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "file": "{folder}/in.txt",
    "topic": "lines",
}
SINK = {"connector.class": "FileStreamSink", "tasks.max": "1", "file": "{folder}/out.txt", "topics": "lines"}
# Of a validation answer: what Kafka says at length, in words of its own.
_WORDS = {"documentation"}
_PATIENCE_S = 180.0


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    body: Any = None
    until: Callable[[int, Any], bool] | None = None

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def _states(*wanted: str) -> Callable[[int, Any], bool]:
    def look(status: int, answer: Any) -> bool:
        if status != 200:
            return False
        return [one["state"] for one in (answer["connector"], *answer["tasks"])] == list(wanted)

    return look


def _is(wanted: int) -> Callable[[int, Any], bool]:
    return lambda status, _: status == wanted


def _offsets(status: int, answer: Any) -> bool:
    return status == 200 and bool(answer["offsets"])


STEPS = [
    Step("GET", "/"),
    Step("GET", "/health"),
    Step("GET", "/connectors"),
    Step("GET", "/connectors/nobody"),
    Step("GET", "/connectors/nobody/status"),
    Step("GET", "/connectors/nobody/config"),
    Step("GET", "/connectors/nobody/tasks"),
    Step("GET", "/connectors/nobody/offsets"),
    Step("GET", "/connectors/nobody/topics"),
    Step("PUT", "/connectors/nobody/pause"),
    Step("PUT", "/connectors/nobody/resume"),
    Step("PUT", "/connectors/nobody/stop"),
    Step("POST", "/connectors/nobody/restart"),
    Step("DELETE", "/connectors/nobody"),
    Step("PATCH", "/connectors/nobody/config", {"a": "b"}),
    Step("GET", "/nothing"),
    Step("POST", "/connectors", {"name": "src", "config": {"tasks.max": "1"}}),
    Step("POST", "/connectors", {"name": "src", "config": {**SOURCE, "connector.class": "NoSuchThing"}}),
    Step("POST", "/connectors", {"name": "src", "config": {"connector.class": "FileStreamSource"}}),
    Step("POST", "/connectors", {"name": "src", "config": {**SOURCE, "tasks.max": "many"}}),
    Step("POST", "/connectors", {"name": "src", "config": {**SOURCE, "tasks.max": "0"}}),
    Step("POST", "/connectors", {"name": "src", "config": {**SOURCE, "name": "other"}}),
    Step("POST", "/connectors", {"name": "snk", "config": {**SINK, "topics": ""}}),
    Step("POST", "/connectors", {"name": "snk", "config": {**SINK, "topics.regex": "x.*"}}),
    Step("POST", "/connectors", {"name": "snk", "config": {**SINK, "errors.tolerance": "some"}}),
    Step("POST", "/connectors", {"name": "src", "config": SOURCE, "initial_state": "STOPPED"}),
    Step("GET", "/connectors/src/status", until=_states("STOPPED")),
    Step("GET", "/connectors/src/tasks"),
    Step("GET", "/connectors/src/offsets"),
    Step("PUT", "/connectors/src/resume"),
    Step("GET", "/connectors/src/status", until=_states("RUNNING", "RUNNING")),
    Step("POST", "/connectors", {"name": "src", "config": SOURCE}),
    Step("GET", "/connectors"),
    Step("GET", "/connectors/src"),
    Step("GET", "/connectors/src/config"),
    Step("GET", "/connectors/src/tasks"),
    Step("GET", "/connectors/src/tasks/0/status"),
    Step("GET", "/connectors/src/tasks/9/status"),
    Step("POST", "/connectors/src/tasks/9/restart"),
    Step("POST", "/connectors/src/tasks/0/restart"),
    Step("GET", "/connectors/src/status", until=_states("RUNNING", "RUNNING")),
    Step("GET", "/connectors/src/offsets", until=_offsets),
    Step("PATCH", "/connectors/src/offsets", {"offsets": []}),
    Step("DELETE", "/connectors/src/offsets"),
    Step("PUT", "/connectors/src/pause"),
    Step("GET", "/connectors/src/status", until=_states("PAUSED", "PAUSED")),
    Step("PUT", "/connectors/src/pause"),
    Step("PUT", "/connectors/src/resume"),
    Step("GET", "/connectors/src/status", until=_states("RUNNING", "RUNNING")),
    Step("POST", "/connectors/src/restart"),
    Step("GET", "/connectors/src/status", until=_states("RUNNING", "RUNNING")),
    Step("POST", "/connectors/src/restart?includeTasks=true&onlyFailed=true"),
    Step("POST", "/connectors/src/restart?includeTasks=true"),
    Step("GET", "/connectors/src/status", until=_states("RUNNING", "RUNNING")),
    Step("GET", "/connectors/src/topics", until=lambda _, answer: bool(answer["src"]["topics"])),
    Step("PUT", "/connectors/src/topics/reset"),
    Step("PATCH", "/connectors/src/config", {"batch.size": "500", "tasks.max": "1", "gone": None}),
    Step("PUT", "/connectors/src/config", {**SOURCE, "name": "other"}),
    Step("PUT", "/connectors/src/config", SOURCE),
    Step("PUT", "/connectors/snk/config", SINK),
    Step("GET", "/connectors/snk/status", until=_states("RUNNING", "RUNNING")),
    Step("GET", "/connectors/snk/offsets", until=_offsets),
    Step("GET", "/connectors?expand=info&expand=status"),
    Step("PUT", "/connectors/snk/stop"),
    Step("GET", "/connectors/snk/status", until=_states("STOPPED")),
    Step("PATCH", "/connectors/snk/offsets", {}),
    Step("PATCH", "/connectors/snk/offsets", {"offsets": [{"partition": {"x": 1}, "offset": {"kafka_offset": 1}}]}),
    Step(
        "PATCH",
        "/connectors/snk/offsets",
        {"offsets": [{"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]},
        until=_is(200),
    ),
    Step("GET", "/connectors/snk/offsets"),
    Step("DELETE", "/connectors/snk/offsets", until=_is(200)),
    Step("GET", "/connectors/snk/offsets"),
    Step("PUT", "/connectors/src/stop"),
    Step("GET", "/connectors/src/status", until=_states("STOPPED")),
    Step("GET", "/connectors/src/tasks"),
    Step(
        "PATCH",
        "/connectors/src/offsets",
        {"offsets": [{"partition": {"filename": "{folder}/in.txt"}, "offset": {"position": 4}}]},
        until=_is(200),
    ),
    Step("GET", "/connectors/src/offsets"),
    Step("DELETE", "/connectors/src/offsets", until=_is(200)),
    Step("GET", "/connectors/src/offsets"),
    Step("GET", "/connector-plugins"),
    Step("GET", "/connector-plugins?connectorsOnly=false"),
    Step("GET", "/connector-plugins/FileStreamSource/config"),
    Step("GET", "/connector-plugins/FileStreamSink/config"),
    Step("GET", "/connector-plugins/NoSuchThing/config"),
    Step("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "name": "src"}),
    Step("PUT", "/connector-plugins/FileStreamSource/config/validate", {"connector.class": "FileStreamSource"}),
    Step("PUT", "/connector-plugins/FileStreamSink/config/validate", {**SINK, "name": "snk"}),
    Step("PUT", "/connector-plugins/FileStreamSink/config/validate", {"connector.class": "FileStreamSource"}),
    Step("PUT", "/connector-plugins/NoSuchThing/config/validate", {"connector.class": "NoSuchThing"}),
    Step("GET", "/admin/loggers/root"),
    Step("PUT", "/admin/loggers/org.example", {"level": "DEBUG"}),
    Step("GET", "/admin/loggers/org.example"),
    Step("PUT", "/admin/loggers/org.example", {"level": "LOUD"}),
    Step("PUT", "/admin/loggers/org.example?scope=cluster", {"level": "INFO"}),
    Step("PUT", "/admin/loggers/org.example", {}),
    Step("DELETE", "/connectors/snk"),
    Step("DELETE", "/connectors/src"),
    Step("GET", "/connectors", until=lambda _, answer: answer == []),
]


def converse(url: str, folder: str) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Each step with its answer."""
    for step in STEPS:
        body = json.loads(json.dumps(step.body).replace("{folder}", folder))
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            status, answer, location = ask(url, step.method, step.path, body)
            is_moving = status == 409 and "rebalance" in str(answer).lower()
            if not is_moving and (step.until is None or step.until(status, answer)):
                break
            assert time.monotonic() < deadline_s, f"{step.name}: {status} {answer}"
            time.sleep(0.2)
        told = {"step": step.name, "body": step.body, "status": status, "answer": answer}
        if location is not None:
            told["location"] = location
        yield step, _settled(told, url, folder)


def _settled(told: dict[str, Any], url: str, folder: str) -> dict[str, Any]:
    text = (
        json.dumps(told)
        .replace(folder, "{folder}")
        .replace(url, "{url}")
        .replace(url.removeprefix("http://"), "{worker}")
    )
    text = re.sub(r'"last_modified": \d+', '"last_modified": 0', text)
    tree: dict[str, Any] = json.loads(text)
    return _without_words(tree)  # type: ignore[no-any-return]


def _without_words(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _without_words(value) for name, value in tree.items() if name not in _WORDS}
    return [_without_words(value) for value in tree] if isinstance(tree, list) else tree
