"""What is in the topic of statuses: the state of each connector and task, and which topics a connector uses.

| key | value |
|---|---|
| `status-connector-NAME`, `status-task-NAME-N` | `{"state", "trace", "worker_id", "generation", "version"}` |
| `status-topic-TOPIC:connector-NAME` | `{"topic": {"name", "connector", "task", "discoverTimestamp"}}` |
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any, NamedTuple

UNASSIGNED, RUNNING, PAUSED, FAILED, RESTARTING, STOPPED = (
    "UNASSIGNED",
    "RUNNING",
    "PAUSED",
    "FAILED",
    "RESTARTING",
    "STOPPED",
)
_CONNECTOR, _TASK, _TOPIC, _BETWEEN = "status-connector-", "status-task-", "status-topic-", ":connector-"
_LOG = logging.getLogger("ottla.connect.storage")

Pair = tuple[bytes | None, bytes | None]


class Status(NamedTuple):
    state: str
    worker: str
    generation: int
    trace: str | None = None
    version: str | None = None


@dataclass
class StatusState:
    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[str, dict[int, Status]] = field(default_factory=dict)
    topics: dict[str, dict[str, None]] = field(default_factory=dict)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            name = (key or b"").decode()
            self._apply(name, None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            _LOG.warning("a record of statuses is passed over, key %r: %s", key, error)

    def _apply(self, key: str, tree: Any) -> None:
        if key.startswith(_CONNECTOR):
            name = key.removeprefix(_CONNECTOR)
            if tree is None:
                self.connectors.pop(name, None)
            else:
                self.connectors[name] = _status(tree)
        elif key.startswith(_TASK):
            name, _, number = key.removeprefix(_TASK).rpartition("-")
            if tree is None:
                self.tasks.get(name, {}).pop(int(number), None)
            else:
                self.tasks.setdefault(name, {})[int(number)] = _status(tree)
        elif key.startswith(_TOPIC):
            topic, _, name = key.removeprefix(_TOPIC).partition(_BETWEEN)
            if tree is None:
                self.topics.get(name, {}).pop(topic, None)
            else:
                self.topics.setdefault(name, {})[topic] = None


def _status(tree: Any) -> Status:
    return Status(tree["state"], tree["worker_id"], tree["generation"], tree.get("trace"), tree.get("version"))


def _value(status: Status) -> bytes:
    tree = {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker,
        "generation": status.generation,
        "version": status.version,
    }
    return json.dumps(tree, separators=(",", ":")).encode()


def connector_record(name: str, status: Status | None) -> Pair:
    return (_CONNECTOR + name).encode(), None if status is None else _value(status)


def task_record(name: str, number: int, status: Status | None) -> Pair:
    return f"{_TASK}{name}-{number}".encode(), None if status is None else _value(status)


def topic_record(name: str, topic: str, task: int | None, now_ms: int) -> Pair:
    """`task` None: it is forgotten."""
    key = f"{_TOPIC}{topic}{_BETWEEN}{name}".encode()
    if task is None:
        return key, None
    tree = {"topic": {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}}
    return key, json.dumps(tree, separators=(",", ":")).encode()
