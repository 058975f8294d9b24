"""What is in the topic of configurations: connectors, their tasks, and what somebody wants of them.

| key | value |
|---|---|
| `connector-NAME` | `{"properties": {...}}`; a tombstone deletes it |
| `target-state-NAME` | `{"state": "STARTED", "state.v2": "STARTED"}`; `state` has PAUSED for STOPPED |
| `task-NAME-N` | `{"properties": {...}}`, counted once `commit-NAME` says `{"tasks": N}` |
| `restart-connector-NAME` | `{"include-tasks": true, "only-failed": false}` |
| `logger-cluster-NAME` | `{"level": "DEBUG"}` |
| `session-key` | `{"key": BASE64, "algorithm": "HmacSHA256", "creation-timestamp": MS}`: workers sign with it |

What else Kafka Connect writes (task counts of its fencing) is passed over.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
_CONNECTOR, _TARGET, _TASK, _COMMIT = "connector-", "target-state-", "task-", "commit-"
_RESTART, _LOGGER = "restart-connector-", "logger-cluster-"
_SESSION_KEY = "session-key"
_OTHERS = ("tasks-fencing-",)
_LOG = logging.getLogger("ottla.connect.storage")

Pair = tuple[bytes | None, bytes | None]


class Restart(NamedTuple):
    connector: str
    includes_tasks: bool
    only_failed: bool


@dataclass
class ConfigState:
    """As it was read so far."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    # How often a connector of this name was deleted: the next one is another, though it may look the same.
    deletions: dict[str, int] = field(default_factory=dict)
    session_key: bytes | None = None
    # Of connectors whose `commit` has not come yet.
    _pending: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    on_restart: Callable[[Restart], None] | None = None
    on_level: Callable[[str, str], object] | None = None

    def target(self, name: str) -> str:
        return self.targets.get(name, STARTED)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """What cannot be understood is passed over: another version may have written it."""
        try:
            name = (key or b"").decode()
            tree = None if value is None else json.loads(value)
            self._apply(name, tree)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            _LOG.warning("a record of configurations is passed over, key %r: %s", key, error)

    def _apply(self, key: str, tree: Any) -> None:
        if key.startswith(_CONNECTOR):
            name = key.removeprefix(_CONNECTOR)
            if tree is None:
                if self.configs.pop(name, None) is not None:
                    self.deletions[name] = self.deletions.get(name, 0) + 1
                self.tasks.pop(name, None)
                self._pending.pop(name, None)
            else:
                self.configs[name] = _texts(tree["properties"])
        elif key.startswith(_TARGET):
            name = key.removeprefix(_TARGET)
            if tree is None:
                self.targets.pop(name, None)
            else:
                self.targets[name] = tree.get("state.v2") or tree["state"]
        elif key.startswith(_TASK):
            name, _, number = key.removeprefix(_TASK).rpartition("-")
            if tree is not None:
                self._pending.setdefault(name, {})[int(number)] = _texts(tree["properties"])
        elif key.startswith(_COMMIT):
            name = key.removeprefix(_COMMIT)
            if tree is not None:
                pending, before = self._pending.pop(name, {}), self.tasks.get(name, [])
                known = dict(enumerate(before)) | pending
                # After compaction some may be missing: then the connector makes them anew.
                if all(number in known for number in range(tree["tasks"])):
                    self.tasks[name] = [known[number] for number in range(tree["tasks"])]
        elif key.startswith(_RESTART):
            if tree is not None and self.on_restart is not None:
                name = key.removeprefix(_RESTART)
                self.on_restart(Restart(name, bool(tree["include-tasks"]), bool(tree["only-failed"])))
        elif key.startswith(_LOGGER):
            if tree is not None:
                name = key.removeprefix(_LOGGER)
                self.levels[name] = tree["level"]
                if self.on_level is not None:
                    self.on_level(name, tree["level"])
        elif key == _SESSION_KEY:
            self.session_key = None if tree is None else base64.b64decode(tree["key"])
        elif not key.startswith(_OTHERS):
            raise ValueError("nobody knows such a key")


def _texts(properties: Mapping[str, Any]) -> dict[str, str]:
    """Kafka Connect keeps a setting that is null, which is one that is not set."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in properties.items()
        if value is not None
    }


def _pair(key: str, tree: Any) -> Pair:
    return key.encode(), None if tree is None else json.dumps(tree, separators=(",", ":")).encode()


def connector_record(name: str, config: Mapping[str, str]) -> Pair:
    return _pair(_CONNECTOR + name, {"properties": dict(config)})


def target_record(name: str, target: str) -> Pair:
    return _pair(_TARGET + name, {"state": PAUSED if target == STOPPED else target, "state.v2": target})


def delete_records(name: str) -> list[Pair]:
    return [_pair(_CONNECTOR + name, None), _pair(_TARGET + name, None)]


def task_records(name: str, configs: list[dict[str, str]]) -> list[Pair]:
    tasks = [_pair(f"{_TASK}{name}-{number}", {"properties": config}) for number, config in enumerate(configs)]
    return [*tasks, _pair(_COMMIT + name, {"tasks": len(configs)})]


def restart_record(restart: Restart) -> Pair:
    tree = {"include-tasks": restart.includes_tasks, "only-failed": restart.only_failed}
    return _pair(_RESTART + restart.connector, tree)


def level_record(logger: str, level: str) -> Pair:
    return _pair(_LOGGER + logger, {"level": level})


def session_key_record(key: bytes, now_ms: int) -> Pair:
    tree = {"algorithm": "HmacSHA256", "creation-timestamp": now_ms, "key": base64.b64encode(key).decode()}
    return _pair(_SESSION_KEY, tree)
