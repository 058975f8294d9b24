"""The application: which path is answered by what. Handlers are plain functions, which run in threads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import ottla
from ottla.common.basic_logins import BasicLogins
from ottla.common.errors import OttlaError
from ottla.connect.rest import loggers, plugin_answers
from ottla.connect.rest.access import Login
from ottla.connect.rest.answers import answer, nothing, on_any_error, on_http_error, on_ottla_error, on_refused
from ottla.connect.rest.forwarding import Call, by_leader
from ottla.connect.storage import configs
from ottla.connect.storage.configs import Restart
from ottla.connect.worker import moving, operations
from ottla.connect.worker.errors import Refused
from ottla.connect.worker.signing import SIGNATURE, is_signed
from ottla.connect.worker.worker import Worker

_FORWARD_S = 100.0
_BODY_BYTES_MAX = 4 * 1024 * 1024


class Asked:
    """A request with its body, for handlers that run in a thread."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.worker: Worker = request.app.state.worker
        self.names = request.path_params
        self.query = request.query_params
        self.path = request.url.path
        # As it came: decoded and quoted again, a name that has % or ? in it would be another one's.
        parts = [request.scope["raw_path"], *([query] if (query := request.scope["query_string"]) else [])]
        self._call = Call(request.method, b"?".join(parts).decode("latin-1"), body, request.headers)
        self._client: httpx.Client = request.app.state.forwarding
        self._body = body

    @property
    def name(self) -> str:
        return str(self.names["name"])

    def flag(self, name: str) -> bool:
        return self.query.get(name, "false").lower() == "true"

    def tree(self) -> Any:
        try:
            tree = json.loads(self._body, parse_constant=_refuse_constant)
            # Halves of characters, which Python takes and nobody could write down.
            json.dumps(tree, ensure_ascii=False).encode()
        except RecursionError:
            raise Refused(400, "the body of the request has too many levels") from None
        except ValueError as error:
            raise Refused(400, f"the body of the request is no JSON: {error}") from None
        return tree

    def map(self) -> dict[str, Any]:
        tree = self.tree()
        if not isinstance(tree, dict):
            raise Refused(400, "the body of the request is a JSON object")
        return tree

    def check_signed(self) -> None:
        """That another worker asks. Raises Refused."""
        if not is_signed(
            self.worker.configs.session_key, self._call.path, self._body, self._call.proofs.get(SIGNATURE)
        ):
            raise Refused(403, "this is for workers only, who sign what they ask.")

    def by_leader(self, change: Callable[[], Response]) -> Response:
        return by_leader(self.worker, self._client, self._call, change)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


Handler = Callable[[Asked], Response]


class WithoutSlash:
    """A path that ends in a slash is the same one, as in Kafka Connect; Starlette would answer with a redirect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["path"] = scope["path"].rstrip("/") or "/"
        await self._app(scope, receive, send)


def _route(path: str, method: str, handler: Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(handler, Asked(request, await _body(request)))

    return Route(path, endpoint, methods=[method])


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _BODY_BYTES_MAX:
            raise Refused(413, f"the body of a request has at most {_BODY_BYTES_MAX} bytes")
    return bytes(body)


def build(worker: Worker) -> Starlette:
    one = "/connectors/{name}"
    table: list[tuple[str, str, Handler]] = [
        ("GET", "/", _root),
        ("GET", "/health", _health),
        ("GET", "/connectors", _connectors),
        ("POST", "/connectors", _create),
        ("GET", one, lambda asked: answer(operations.info(asked.worker, asked.name))),
        ("DELETE", one, _delete),
        ("GET", f"{one}/config", lambda asked: answer(operations.config_of(asked.worker, asked.name))),
        ("PUT", f"{one}/config", _put_config),
        ("PATCH", f"{one}/config", _patch_config),
        ("GET", f"{one}/status", lambda asked: answer(operations.status(asked.worker, asked.name))),
        ("PUT", f"{one}/pause", lambda asked: _target(asked, configs.PAUSED, 202)),
        ("PUT", f"{one}/resume", lambda asked: _target(asked, configs.STARTED, 202)),
        ("PUT", f"{one}/stop", lambda asked: _target(asked, configs.STOPPED, 204)),
        ("POST", f"{one}/restart", _restart),
        ("GET", f"{one}/tasks", lambda asked: answer(operations.tasks(asked.worker, asked.name))),
        ("GET", f"{one}/tasks/{{task:int}}/status", _task_status),
        ("POST", f"{one}/tasks/{{task:int}}/restart", _restart_task),
        ("GET", f"{one}/offsets", lambda asked: answer(moving.offsets(asked.worker, asked.name))),
        ("PATCH", f"{one}/offsets", _alter_offsets),
        ("DELETE", f"{one}/offsets", _reset_offsets),
        ("GET", f"{one}/topics", lambda asked: answer(operations.topics(asked.worker, asked.name))),
        ("PUT", f"{one}/topics/reset", _reset_topics),
        ("GET", "/connector-plugins", plugin_answers.listed),
        ("GET", "/connector-plugins/{plugin}/config", plugin_answers.config),
        ("PUT", "/connector-plugins/{plugin}/config/validate", plugin_answers.validated),
        ("GET", "/admin/loggers", loggers.listed),
        ("GET", "/admin/loggers/{logger}", loggers.get),
        ("PUT", "/admin/loggers/{logger}", loggers.put),
        # Between workers: how many tasks a connector has, told by who runs it to who writes it down.
        ("PUT", "/ottla/tasks/{name}", _set_tasks),
    ]
    app = Starlette(
        routes=[_route(path, method, handler) for method, path, handler in table],
        exception_handlers={
            Refused: on_refused,
            HTTPException: on_http_error,
            OttlaError: on_ottla_error,
            Exception: on_any_error,
        },
    )
    app.add_middleware(WithoutSlash)
    rest = worker.settings.rest
    if rest.credentials is not None:
        app.add_middleware(Login, logins=BasicLogins(rest.credentials))
    app.state.worker = worker
    app.state.forwarding = httpx.Client(timeout=_FORWARD_S, trust_env=False, verify=rest.verify())
    return app


# --- the worker


def _root(asked: Asked) -> Response:
    tree = {"version": ottla.__version__, "commit": "ottla", "kafka_cluster_id": asked.worker.cluster_id}
    return answer(tree)


def _health(asked: Asked) -> Response:
    if asked.worker.is_ready:
        message = "Worker has completed startup and is ready to handle requests."
        return answer({"status": "healthy", "message": message})
    message = "Worker is still starting up: it has not joined its group yet."
    return answer({"status": "starting", "message": message}, 503)


# --- connectors


def _connectors(asked: Asked) -> Response:
    worker, wanted = asked.worker, asked.query.getlist("expand")
    names = sorted(worker.configs.configs)
    if not wanted:
        return answer(names)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            row: dict[str, Any] = {}
            if "info" in wanted:
                row["info"] = operations.info(worker, name)
            if "status" in wanted:
                row["status"] = operations.status(worker, name)
            found[name] = row
        except Refused:
            continue  # it has no state yet, or is gone
    return answer(found)


def _create(asked: Asked) -> Response:
    body = asked.map()
    name, config = body.get("name"), body.get("config")
    if not isinstance(name, str) or not isinstance(config, dict):
        raise Refused(400, 'a connector is created with {"name": "...", "config": {...}}')

    def change() -> Response:
        made = operations.create(asked.worker, name, config, body.get("initial_state"))
        return answer(made, 201, Location=f"{asked.worker.url}/connectors/{quote(name)}")

    return asked.by_leader(change)


def _put_config(asked: Asked) -> Response:
    config = asked.map()

    def change() -> Response:
        is_new, made = operations.put_config(asked.worker, asked.name, config)
        if is_new:
            return answer(made, 201, Location=f"{asked.worker.url}/connectors/{quote(asked.name)}")
        return answer(made)

    return asked.by_leader(change)


def _patch_config(asked: Asked) -> Response:
    changes = asked.map()
    return asked.by_leader(lambda: answer(operations.patch_config(asked.worker, asked.name, changes)))


def _delete(asked: Asked) -> Response:
    def change() -> Response:
        operations.delete(asked.worker, asked.name)
        return nothing(204)

    return asked.by_leader(change)


def _target(asked: Asked, target: str, status: int) -> Response:
    def change() -> Response:
        operations.set_target(asked.worker, asked.name, target)
        return nothing(status)

    return asked.by_leader(change)


def _restart(asked: Asked) -> Response:
    wanted = Restart(asked.name, asked.flag("includeTasks"), asked.flag("onlyFailed"))

    def change() -> Response:
        told = operations.restart(asked.worker, wanted)
        return answer(told, 202) if wanted.includes_tasks or wanted.only_failed else nothing(204)

    return asked.by_leader(change)


def _task_status(asked: Asked) -> Response:
    return answer(operations.task_status(asked.worker, asked.name, asked.names["task"]))


def _restart_task(asked: Asked) -> Response:
    def change() -> Response:
        operations.restart_task(asked.worker, asked.name, asked.names["task"])
        return nothing(204)

    return asked.by_leader(change)


def _set_tasks(asked: Asked) -> Response:
    asked.check_signed()
    body = asked.map()
    task_class, count = body.get("class"), body.get("tasks")
    if not isinstance(task_class, str) or not isinstance(count, int) or count < 0:
        raise Refused(400, 'workers tell each other {"class": "...", "tasks": N}')

    def change() -> Response:
        asked.worker.write_tasks(asked.name, task_class, count)
        return nothing(204)

    return asked.by_leader(change)


# --- offsets and topics


def _alter_offsets(asked: Asked) -> Response:
    body = asked.tree()
    return asked.by_leader(lambda: answer(moving.alter(asked.worker, asked.name, body)))


def _reset_offsets(asked: Asked) -> Response:
    return asked.by_leader(lambda: answer(moving.reset(asked.worker, asked.name)))


def _reset_topics(asked: Asked) -> Response:
    operations.config_of(asked.worker, asked.name)
    assert asked.worker.board is not None
    asked.worker.board.reset_topics(asked.name)
    return nothing(202)
