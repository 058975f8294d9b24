"""Connectors of Kafka Connect's REST API, ours or Kafka's: failures first, with their traces."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.common.errors import OttlaError
from ottla.console.connect_client import ConnectClient, Connector
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.requests import Form

_ACTIONS = ("pause", "resume", "stop", "restart", "restart-task")


def _clients(console: Console) -> list[ConnectClient]:
    return [ConnectClient(url) for url in console.settings.connect]


def connectors(console: Console, request: Request) -> Response:
    found: list[Connector] = []
    problems: list[str] = []
    workers: list[tuple[str, str]] = []
    for client in _clients(console):
        try:
            workers.append((client.url, client.version()))
            found += client.connectors()
        except OttlaError as error:
            problems.append(str(error))
    found.sort(key=lambda one: (one.rank, one.name))
    return console.page(request, "connectors.html", connectors=found, problems=problems, workers=workers)


def _one(console: Console, request: Request) -> tuple[ConnectClient, Connector]:
    name = request.path_params["name"]
    for client in _clients(console):
        for one in client.connectors():
            if one.name == name:
                return client, one
    raise NotFound(f"There is no connector '{name}'.")


def connector(console: Console, request: Request) -> Response:
    client, one = _one(console, request)
    return console.page(request, "connector.html", connector=one, worker=client.url)


def control(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    action = form.text("action")
    if action not in _ACTIONS:
        raise OttlaError(f"a connector is told one of {', '.join(_ACTIONS)}.")
    client, one = _one(console, request)
    task = form.number("task", "a task") if action == "restart-task" else None
    client.control(one.name, action, task)
    return Done(f"Connector {one.name}: {action.replace('-', ' ')} was asked for.")


routes = [
    Route("/connectors", page(connectors)),
    Route("/connectors/{name}", page(connector)),
    Route("/connectors/{name}/control", change("control connectors", control), methods=["POST"]),
]
