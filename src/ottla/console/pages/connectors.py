"""Connectors of Kafka Connect's REST API, ours or Kafka's: failures first, with their traces; made and changed with
what their worker says of each setting."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ottla.common.errors import OttlaError
from ottla.console.connect_client import HIDDEN, ConnectClient, Connector, Plugin
from ottla.console.connect_form import (
    OTHERS,
    PREFIX,
    VERSION,
    ConnectorForm,
    differences,
    form_of,
    read_settings,
    version_of,
)
from ottla.console.connector_flow import Flow, flow_of
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.requests import Form
from ottla.console.web.routing import Route

_ACTIONS = ("pause", "resume", "stop", "restart", "restart-task")
_WRONG = 422
# Each is a question to the worker: of more, only the page of the connector asks.
_SOURCES_ASKED_MAX = 20
_VERSION_KEY = secrets.token_bytes(32)


def connectors(console: Console, request: Request) -> Response:
    found: list[Connector] = []
    problems: list[str] = []
    workers: list[tuple[str, str]] = []
    flows: dict[str, Flow] = {}
    for client in console.connect:
        try:
            workers.append((client.url, client.version()))
            mine = client.connectors()
            flows |= _flows(console, client, mine)
            found += mine
        except OttlaError as error:
            problems.append(str(error))
    found.sort(key=lambda one: (one.rank, one.name))
    return console.page(request, "connectors.html", connectors=found, flows=flows, problems=problems, workers=workers)


def _flows(console: Console, client: ConnectClient, some: list[Connector]) -> dict[str, Flow]:
    asked = {one.name for one in [each for each in some if each.kind == "source"][:_SOURCES_ASKED_MAX]}
    seen = console.collector.snapshot
    return {one.name: flow_of(one, client.topics(one.name) if one.name in asked else (), seen) for one in some}


def _one(console: Console, request: Request) -> tuple[ConnectClient, Connector]:
    """Raises NotFound; a worker that does not answer keeps nobody from the connectors of another."""
    name = request.path_params["name"]
    silent: OttlaError | None = None
    for client in console.connect:
        try:
            for one in client.connectors():
                if one.name == name:
                    return client, one
        except OttlaError as error:
            silent = error
    raise silent or NotFound(f"There is no connector '{name}'.")


def connector(console: Console, request: Request) -> Response:
    client, one = _one(console, request)
    return console.page(
        request,
        "connector.html",
        connector=one,
        shown=_shown(client, one),
        worker=client.url,
        flow=flow_of(one, client.topics(one.name), console.collector.snapshot),
        history=console.collector.history,
    )


def _shown(client: ConnectClient, one: Connector) -> Mapping[str, str]:
    """Without secrets: those whose names tell it, and those that the worker knows for such."""
    try:
        config = client.config(one.name)
        fields = form_of(client.validate(config), config).fields
    except OttlaError:
        return dict.fromkeys(one.config, HIDDEN)  # nobody can say which are
    return one.config | {field.name: field.value for field in fields if field.is_secret and field.name in one.config}


def control(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    action = form.text("action")
    if action not in _ACTIONS:
        raise OttlaError(f"a connector is told one of {', '.join(_ACTIONS)}.")
    client, one = _one(console, request)
    task = form.number("task", "a task") if action == "restart-task" else None
    client.control(one.name, action, task)
    return Done(f"Connector {one.name}: {action.replace('-', ' ')} was asked for.")


# --- made and changed


def _worker(console: Console, wanted: str) -> ConnectClient:
    """One of those that the console was started with, and no other address."""
    clients = console.connect
    if not clients:
        raise NotFound("No Kafka Connect was named: start the console with --connect URL.")
    return next((client for client in clients if client.url == wanted), clients[0])


def new(console: Console, request: Request) -> Response:
    """First what kind of connector, then its settings."""
    client = _worker(console, request.query_params.get("worker", ""))
    plugin = request.query_params.get("plugin", "")
    if not plugin:
        workers = [one.url for one in console.connect]
        plugins: list[Plugin] = client.plugins()
        return console.page(request, "connector_plugins.html", plugins=plugins, worker=client.url, workers=workers)
    shown = form_of(client.validate({"connector.class": plugin}), {"connector.class": plugin})
    return _form_page(console, request, client, plugin, shown, is_fresh=True)


def edit(console: Console, request: Request) -> Response:
    client, one = _one(console, request)
    config = client.config(one.name)
    shown = form_of(client.validate(config), config)
    version, plugin = version_of(config, _VERSION_KEY), config.get("connector.class", "")
    return _form_page(console, request, client, plugin, shown, name=one.name, version=version)


def _form_page(
    console: Console,
    request: Request,
    client: ConnectClient,
    plugin: str,
    shown: ConnectorForm,
    *,
    name: str = "",
    typed_name: str = "",
    version: str = "",
    is_fresh: bool = False,
    is_checked: bool = False,
    problem: str | None = None,
) -> Response:
    """`is_fresh`: nobody has filled it in yet, so what is missing is not wrong."""
    is_wrong = not is_fresh and request.method == "POST" and (shown.error_count > 0 or problem is not None)
    return console.page(
        request,
        "connector_form.html",
        _WRONG if is_wrong else 200,
        form=shown,
        connector=name,
        typed_name=typed_name,
        version=version,
        plugin=plugin,
        worker=client.url,
        is_fresh=is_fresh,
        is_checked=is_checked,
        problem_of_form=problem,
        prefix=PREFIX,
    )


def _settings_of(form: Form, stored: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    given = {name.removeprefix(PREFIX): form.text(name) for name in form.names() if name.startswith(PREFIX)}
    return read_settings(given, form.text(OTHERS), stored)


def create(console: Console, visitor: Visitor, form: Form, request: Request) -> Done | Response:
    client = _worker(console, form.text("worker"))
    name, plugin = form.stripped("name"), form.stripped("plugin")
    config, refused = _settings_of(form, {})
    config |= {"name": name, "connector.class": plugin}
    shown = form_of(client.validate(config), config, refused)
    problem = None if name else "A connector needs a name."
    is_check = form.has("check")
    if problem is None and not is_check and not shown.error_count:
        try:
            client.create(name, config, is_stopped=form.has("stopped"))
            return Done(f"Connector {name} is made.", f"/connectors/{quote(name, safe='')}")
        except OttlaError as error:
            problem = str(error)
    return _form_page(console, request, client, plugin, shown, typed_name=name, is_checked=is_check, problem=problem)


def alter(console: Console, visitor: Visitor, form: Form, request: Request) -> Done | Response:
    client, one = _one(console, request)
    stored = client.config(one.name)
    version = form.text(VERSION)
    if version and version != version_of(stored, _VERSION_KEY):
        raise OttlaError(f"nothing was saved: somebody else has changed {one.name} since you opened it. Edit it again.")
    config, refused = _settings_of(form, stored)
    plugin = stored.get("connector.class", "")
    config |= {"name": one.name, "connector.class": plugin}
    shown = form_of(client.validate(config), config, refused)
    problem = None
    is_check = form.has("check")
    if not is_check and not shown.error_count:
        changed = differences(stored, config)
        if not changed:
            return Done(f"Connector {one.name} stays as it is.", f"/connectors/{quote(one.name, safe='')}")
        try:
            client.put_config(one.name, config)
            what = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            return Done(f"Connector {one.name} is changed: {what}.", f"/connectors/{quote(one.name, safe='')}")
        except OttlaError as error:
            problem = str(error)
    return _form_page(
        console,
        request,
        client,
        plugin,
        shown,
        name=one.name,
        version=version,
        is_checked=is_check,
        problem=problem,
    )


def delete(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    client, one = _one(console, request)
    if form.stripped("confirm") != one.name:
        raise OttlaError(f"write {one.name} into the field to delete the connector.")
    client.delete(one.name)
    return Done(f"Connector {one.name} is deleted.", "/connectors")


routes = [
    Route("/connectors", page(connectors)),
    Route("/connectors", change("change connectors", create), methods=["POST"]),
    Route("/connectors-new", page(new)),
    Route("/connectors/{name}", page(connector)),
    Route("/connectors/{name}/edit", page(edit)),
    Route("/connectors/{name}/edit", change("change connectors", alter), methods=["POST"]),
    Route("/connectors/{name}/delete", change("change connectors", delete), methods=["POST"]),
    Route("/connectors/{name}/control", change("control connectors", control), methods=["POST"]),
]
