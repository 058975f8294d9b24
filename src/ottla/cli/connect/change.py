"""`ottla connect create`, `pause`, `resume`, `stop`, `restart` and `delete`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ottla.cli.connect.address import Worker, url_option
from ottla.cli.given import GivenPath
from ottla.cli.output import confirm, done
from ottla.cli.settings import Settings, command, parse_assignment
from ottla.common.errors import OttlaError


@command("create", changes=True)
@click.argument("name")
@click.option(
    "-f", "--file", "file", metavar="FILE", type=GivenPath(str), help="The configuration: .properties or .json."
)
@click.option("-c", "--config", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting; repeatable.")
@click.option("--stopped", is_flag=True, help="Do not start it yet.")
@url_option
def create(
    settings: Settings, name: str, file: str | None, pairs: tuple[str, ...], stopped: bool, url: str | None
) -> None:
    """Create a connector, or give one that is there another configuration.

    \b
      ottla connect create lines -c connector.class=FileStreamSource -c file=/var/log/app.log -c topic=lines
      ottla connect create orders -f orders.properties -c tasks.max=4
    """
    config = {} if file is None else _read(file)
    config |= dict(parse_assignment(pair, "-c") for pair in pairs)
    if config.setdefault("name", name) != name:
        raise click.UsageError(f"{file} is of the connector '{config['name']}', not of '{name}'.")
    worker = Worker(url)
    if settings.dry_run:
        kind = config.get("connector.class", "")
        found = worker.ask("PUT", "connector-plugins", kind, "config", "validate", body=config)
        wrong = [error for row in found["configs"] for error in row["value"]["errors"]]
        if wrong:
            raise OttlaError("\n".join(wrong))
        done(settings, found, f"the configuration of {name} is right; nothing was created")
        return
    if stopped:
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        made = worker.ask("POST", "connectors", body=body)
    else:
        made = worker.ask("PUT", "connectors", name, "config", body=config)
    done(settings, made, f"connector {name} is there: `ottla connect status {name}` says how it fares")


def _read(file: str) -> dict[str, str]:
    if not file.endswith(".json"):
        from ottla.connect.worker.properties import read_properties

        return read_properties(file)
    try:
        tree: Any = json.loads(Path(file).read_text())
    except OSError as error:
        raise OttlaError(f"cannot read {file}: {error.strerror}.") from None
    except ValueError as error:
        raise OttlaError(f"{file} is no JSON: {error}.") from None
    tree = tree.get("config", tree) if isinstance(tree, dict) else tree
    if not isinstance(tree, dict) or any(isinstance(value, dict | list) for value in tree.values()):
        raise OttlaError(f"{file} is no configuration: expected a map of names to texts, or one with `config` in it.")
    return {key: str(value) for key, value in tree.items()}


def _simple(verb: str, method: str, past: str, line: str) -> Callable[..., Any]:
    def run(settings: Settings, names: tuple[str, ...], url: str | None) -> None:
        worker = Worker(url)
        for name in names:
            if not settings.dry_run:
                worker.ask(method, "connectors", name, verb)
        would = "would be " if settings.dry_run else ""
        done(settings, {"connectors": list(names), "done": verb}, f"{', '.join(names)}: {would}{past}")

    run.__doc__ = line
    return run


def _verb(verb: str, past: str, line: str) -> click.Command:
    function = url_option(
        click.argument("names", nargs=-1, required=True, metavar="NAME...")(_simple(verb, "PUT", past, line))
    )
    return command(verb, changes=True)(function)


pause = _verb("pause", "paused", "Let connectors rest; they keep their tasks.")
resume = _verb("resume", "resumed", "Let connectors that were paused or stopped go on.")
stop = _verb("stop", "stopped", "Stop connectors: their offsets can be changed, or they can be deleted, later.")


@command("restart", changes=True)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--only-failed", is_flag=True, help="Those that say FAILED.")
@url_option
def restart(settings: Settings, names: tuple[str, ...], only_failed: bool, url: str | None) -> None:
    """Restart connectors with their tasks now, without waiting for the pause after a failure.

    \b
      ottla connect restart orders
      ottla connect restart --only-failed orders lines
    """
    worker = Worker(url)
    for name in names:
        if not settings.dry_run:
            worker.ask("POST", "connectors", name, "restart", includeTasks="true", onlyFailed=str(only_failed).lower())
    would = "would be " if settings.dry_run else ""
    done(settings, {"connectors": list(names), "done": "restart"}, f"{', '.join(names)}: {would}restarted")


@command("delete", changes=True, asks=True)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@url_option
def delete(settings: Settings, names: tuple[str, ...], url: str | None) -> None:
    """Delete connectors. Their offsets stay: one that is created anew under the same name goes on there.

    \b
      ottla connect delete orders
    """
    worker = Worker(url)
    if not settings.dry_run:
        confirm(settings, f"delete {', '.join(names)}?")
        for name in names:
            worker.ask("DELETE", "connectors", name)
    would = "would be " if settings.dry_run else ""
    done(settings, {"connectors": list(names), "done": "delete"}, f"{', '.join(names)}: {would}deleted")
