"""`ottla connect list`, `status`, `offsets` and `plugins`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.connect.address import Worker, url_option
from ottla.cli.output import confirm, done, facts, paint, show, table
from ottla.cli.settings import Settings, command


@command("list")
@url_option
def list_connectors(settings: Settings, url: str | None) -> None:
    """List connectors with their states.

    \b
      ottla connect list
      ottla connect list --url http://worker-1:8083 --output json
    """
    found = Worker(url).ask("GET", "connectors", expand=["status", "info"])
    rows: list[Any] = []
    for name, row in sorted(found.items()):
        states = [task["state"] for task in row["status"]["tasks"]]
        rows.append(
            {
                "name": name,
                "type": row["status"]["type"],
                "state": row["status"]["connector"]["state"],
                "worker": row["status"]["connector"]["worker_id"],
                "tasks": len(states),
                "running": states.count("RUNNING"),
                "class": row["info"]["config"].get("connector.class"),
            }
        )
    shown = [
        (row["name"], row["type"], row["state"], f"{row['running']}/{row['tasks']}", row["worker"], row["class"])
        for row in rows
    ]
    show(settings, rows, lambda: table(("name", "type", "state", "tasks", "worker", "class"), shown))


@command("status")
@click.argument("name")
@url_option
def status(settings: Settings, name: str, url: str | None) -> None:
    """How a connector and its tasks fare; what is wrong with it comes first, the trace below.

    \b
      ottla connect status orders
    """
    found = Worker(url).ask("GET", "connectors", name, "status")
    show(settings, found, lambda: _status_lines(found))


def _status_lines(found: Any) -> Iterable[str]:
    connector = found["connector"]
    yield from facts(
        [
            ("connector", found["name"]),
            ("type", found["type"]),
            ("state", connector["state"]),
            ("worker", connector["worker_id"]),
        ]
    )
    if found["tasks"]:
        yield ""
        rows = [(task["id"], task["state"], task["worker_id"]) for task in found["tasks"]]
        yield from table(("task", "state", "worker"), rows)
    traces = [one["trace"] for one in (connector, *found["tasks"]) if one.get("trace")]
    for trace in dict.fromkeys(traces):
        first, _, rest = trace.partition("\n")
        yield ""
        yield paint(first, "red")
        yield from rest.rstrip().splitlines()


@command("offsets", changes=True, asks=True)
@click.argument("name")
@click.option("--reset", is_flag=True, help="Forget them: it reads from the start. It has to be stopped.")
@click.option("--set", "given", metavar="JSON", help='{"offsets": [{"partition": ..., "offset": ...}]}. As above.')
@url_option
def offsets(settings: Settings, name: str, reset: bool, given: str | None, url: str | None) -> None:
    """How far a connector has read; or change it.

    \b
      ottla connect offsets orders
      ottla connect stop orders && ottla connect offsets orders --reset
    """
    worker = Worker(url)
    if reset and given is not None:
        raise click.UsageError("--reset and --set are two different things.")
    if settings.dry_run and (reset or given):
        done(settings, {"name": name, "dry_run": True}, f"would change the offsets of {name}")
        return
    if reset or given is not None:
        confirm(settings, f"change how far {name} has read?")
    if reset:
        told = worker.ask("DELETE", "connectors", name, "offsets")
        done(settings, told, told["message"])
        return
    if given is not None:
        try:
            body = json.loads(given)
        except ValueError as error:
            raise click.UsageError(f"--set is no JSON: {error}.") from None
        told = worker.ask("PATCH", "connectors", name, "offsets", body=body)
        done(settings, told, told["message"])
        return
    found = worker.ask("GET", "connectors", name, "offsets")
    rows = [(_compact(row["partition"]), _compact(row["offset"])) for row in found["offsets"]]
    show(settings, found, lambda: table(("partition", "offset"), rows))


def _compact(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False)


@command("plugins")
@click.argument("name", required=False)
@url_option
def plugins(settings: Settings, name: str | None, url: str | None) -> None:
    """List the connectors that a worker has; with a NAME, the settings of one.

    \b
      ottla connect plugins
      ottla connect plugins FilesSink
    """
    worker = Worker(url)
    if name is None:
        found = worker.ask("GET", "connector-plugins")
        rows = [(row["class"], row["type"], row["version"]) for row in found]
        show(settings, found, lambda: table(("class", "type", "version"), rows))
        return
    found = worker.ask("GET", "connector-plugins", name, "config")
    keys = [
        (
            row["name"],
            row["type"].lower(),
            "required" if row["required"] else row["default_value"],
            row["documentation"],
        )
        for row in found
    ]
    show(settings, found, lambda: table(("setting", "type", "default", "meaning"), keys))
