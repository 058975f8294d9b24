"""What can be asked of a worker, and done as its leader, in the words of Kafka Connect's REST API.

Functions that change something are for the leader; whoever else is asked forwards (`rest/forwarding.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.connect.api import ConnectorFailure
from ottla.connect.plugins import UnknownPlugin, find
from ottla.connect.storage import configs, statuses
from ottla.connect.storage.configs import Restart
from ottla.connect.storage.statuses import Status
from ottla.connect.validation import errors, validate
from ottla.connect.worker.errors import Refused, not_found
from ottla.connect.worker.providers import REFERENCE, resolved
from ottla.connect.worker.worker import Worker, kind_of

_TARGETS = {"RUNNING": configs.STARTED, "PAUSED": configs.PAUSED, "STOPPED": configs.STOPPED}
_SEE = "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"


# --- looking


def config_of(worker: Worker, name: str) -> dict[str, str]:
    config = worker.configs.configs.get(name)
    if config is None:
        raise not_found(name)
    return dict(config)


def info(worker: Worker, name: str, *, tasks: int | None = None) -> dict[str, Any]:
    config = config_of(worker, name)
    count = len(worker.configs.tasks.get(name, [])) if tasks is None else tasks
    return {
        "name": name,
        "config": config,
        "tasks": [{"connector": name, "task": number} for number in range(count)],
        "type": kind_of(config),
    }


def status(worker: Worker, name: str) -> dict[str, Any]:
    known = worker.statuses.connectors.get(name)
    if known is None:
        raise Refused(404, f"No status found for connector {name}")
    tasks = worker.statuses.tasks.get(name, {})
    return {
        "name": name,
        "connector": _state(known),
        "tasks": [{"id": number, **_state(tasks[number])} for number in sorted(tasks)],
        "type": kind_of(worker.configs.configs.get(name, {})),
    }


def task_status(worker: Worker, name: str, number: int) -> dict[str, Any]:
    known = worker.statuses.tasks.get(name, {}).get(number)
    if known is None:
        raise Refused(404, f"No status found for task {name}-{number}")
    return {"id": number, **_state(known)}


def _state(known: Status) -> dict[str, Any]:
    found: dict[str, Any] = {"state": known.state, "worker_id": known.worker, "version": known.version}
    if known.trace is not None:
        found["trace"] = known.trace
    return found


def tasks(worker: Worker, name: str) -> list[dict[str, Any]]:
    config_of(worker, name)
    return [
        {"id": {"connector": name, "task": number}, "config": config}
        for number, config in enumerate(worker.configs.tasks.get(name, []))
    ]


def topics(worker: Worker, name: str) -> dict[str, Any]:
    return {name: {"topics": list(worker.statuses.topics.get(name, {}))}}


# --- changing


def checked(worker: Worker, name: str, config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration with its name in it. Raises Refused with everything that is wrong with it."""
    if any(not isinstance(value, str | int | float | bool | None) for value in config.values()):
        raise Refused(400, "the configuration of a connector is a flat map of names to texts")
    given = {key: _text(value) for key, value in config.items() if value is not None}
    if given.setdefault("name", name) != name:
        raise Refused(
            400, f"Connector name configuration ({given['name']}) doesn't match connector name in the URL ({name})"
        )
    if "connector.class" not in given:
        shown = ", ".join(f"{key}={given[key]}" for key in sorted(given))
        raise Refused(400, f"Connector config {{{shown}}} contains no connector type")
    try:
        plugin = find(given["connector.class"])
    except UnknownPlugin as error:
        raise Refused(400, str(error)) from None
    found = _unknown_providers(worker, given)
    try:
        looked_up = resolved(given, worker.settings.providers)
        told = errors(validate(plugin, looked_up.config, worker.settings.defaults))
        found += [looked_up.hidden(error) for error in told]
    except ConnectorFailure as error:
        found.append(str(error))
    if found:
        lines = [f"Connector configuration is invalid and contains the following {len(found)} error(s):", *found, _SEE]
        raise Refused(400, "\n".join(lines))
    return given


def _unknown_providers(worker: Worker, given: Mapping[str, str]) -> list[str]:
    return [
        f"{key} refers to {match[0]}, and the worker has no config provider '{match[1]}': see its config.providers."
        for key, value in given.items()
        for match in REFERENCE.finditer(value)
        if match[1] not in worker.settings.providers
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def create(worker: Worker, name: str, config: Mapping[str, Any], initial: Any = None) -> dict[str, Any]:
    # Clients take . and .. out of a path, so nobody could ask for such a connector, or delete it.
    is_odd = name in ("", ".", "..") or name != name.strip() or "/" in name
    if is_odd or any(ord(character) < 32 for character in name):
        raise Refused(
            400, f"'{name}' is no name for a connector: it is empty, or has characters that a path cannot have"
        )
    target = _TARGETS.get(initial.upper()) if isinstance(initial, str) else None
    if initial is not None and target is None:
        raise Refused(400, f"initial_state is '{initial}', expected one of {', '.join(_TARGETS)}")
    given = checked(worker, name, config)
    if name in worker.configs.configs:
        raise Refused(409, f"Connector {name} already exists")
    records = [configs.connector_record(name, given)]
    if target is not None:
        records.insert(0, configs.target_record(name, target))
    worker.write_configs(records)
    return info(worker, name, tasks=0)


def put_config(worker: Worker, name: str, config: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether it is new, and the connector."""
    if name not in worker.configs.configs:
        return True, create(worker, name, config)
    given = checked(worker, name, config)
    worker.write_configs([configs.connector_record(name, given)])
    return False, info(worker, name)


def patch_config(worker: Worker, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = config_of(worker, name) | dict(changes)
    return put_config(worker, name, {key: value for key, value in merged.items() if value is not None})[1]


def delete(worker: Worker, name: str) -> None:
    config_of(worker, name)
    worker.write_configs(configs.delete_records(name))
    assert worker.board is not None
    worker.board.forget(name)


def set_target(worker: Worker, name: str, target: str) -> None:
    if name not in worker.configs.configs:
        raise Refused(404, f"Unknown connector {name}")
    records = [configs.target_record(name, target)]
    if target == configs.STOPPED:
        # Nobody is to find tasks of a connector that has none.
        records += configs.task_records(name, [])
    worker.write_configs(records)


def restart(worker: Worker, wanted: Restart) -> dict[str, Any]:
    """The state that it is in now."""
    name = wanted.connector
    if name not in worker.configs.configs:
        raise Refused(404, f"Unknown connector: {name}")
    before = status(worker, name)
    worker.write_configs([configs.restart_record(wanted)])
    touched = [before["connector"], *(before["tasks"] if wanted.includes_tasks else [])]
    for one in touched:
        if one["state"] == statuses.FAILED or not wanted.only_failed:
            one["state"] = statuses.RESTARTING
            one.pop("trace", None)
    return before


def restart_task(worker: Worker, name: str, number: int) -> None:
    """A round belongs to all tasks: they begin anew together."""
    if name not in worker.configs.configs:
        raise Refused(404, f"Unknown connector: {name}")
    if number not in range(len(worker.configs.tasks.get(name, []))):
        raise Refused(404, f"Unknown task: {name}-{number}")
    worker.write_configs([configs.restart_record(Restart(name, True, False))])
