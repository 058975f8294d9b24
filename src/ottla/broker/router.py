"""From a request frame to an answer: header, version check, decode, the API's handler, encode (Kafka's KafkaApis).

`Produce` and `Fetch` carry the load, so their modules export `handle_frame` and work on the bytes themselves; every
other API exports `handle(broker, context, request) -> response` and never sees bytes; one that keeps its answers
encoded (Metadata) may return a bytearray for the version asked. A handler may be a coroutine, or, where its work grows
with what is asked, a generator that may be interrupted (`common/steps.py`). Large requests are decoded in turns as
well, and so is every answer encoded that did not come at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from copy import copy
from importlib import import_module
from inspect import isawaitable
from types import GeneratorType
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.apis import APIS, Api
from ottla.broker.cluster.refusals import refusal
from ottla.broker.context import RequestContext
from ottla.broker.observing.response_errors import errors_in
from ottla.broker.observing.stages import ARRIVED, COUNTED, OBSERVED
from ottla.common.errors import ApiError, CloseConnection, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, Message
from ottla.protocol.definitions import is_within
from ottla.protocol.framing import (
    API_VERSIONS,
    flexible_from,
    kept,
    read_request_header,
    response_prefix,
    skip_header_tags,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.server.client_end import Answer
    from ottla.server.connection import Connection

log = logging.getLogger("ottla.broker")

Route = Callable[[RequestContext, memoryview, int], "Answer | Awaitable[Answer]"]
KnownRoute = Callable[["Broker", RequestContext, memoryview], "Answer | Awaitable[Answer] | None"]

# A request of this size names a thousand things and takes its time.
_LARGE_BYTES = 16 * 1024
_WARM_UP_PAUSE_S = 0.02
_BROKER_LOGGER = 8


class Router:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes: dict[int, Route] = {}
        # What answers a producer's request that is like those before it; also for who observes those.
        self.known_frame: KnownRoute = lambda _broker, _context, _frame: None
        broker.answer_enclosed = self._answer_enclosed

    async def warm_up(self) -> None:
        """Import all handlers, a little at a time: the first request of a kind need not wait for it, and does not fail
        because no file descriptor is left to read a module with."""
        for api in APIS.values():
            if api.key not in self._routes:
                self._add_route(api)
            await asyncio.sleep(_WARM_UP_PAUSE_S)

    def handle(self, connection: Connection, frame: memoryview, stage: int = ARRIVED) -> Answer | Awaitable[Answer]:
        """Every request comes in and goes out here, also those that are known by their first bytes. Never raises: a
        request we cannot read closes the connection, as Kafka does. While requests are observed, or there are quotas,
        it goes there first and comes in again, and `stage` is how far it is; where no login comes before, a listener
        goes to the observer by itself (`server/server.py`)."""
        if stage < OBSERVED and self._broker.observer is not None:
            return self._broker.observer.handle(connection, frame)
        throttling = self._broker.throttling
        if throttling is not None and stage < COUNTED:
            return throttling.handle(self, connection, frame)
        try:
            cached = connection.context
            if cached is not None and cached[1].produce_prefix_end:
                # A producer's connection: most likely it goes on as it began.
                answer = self.known_frame(self._broker, cached[1], frame)
                if answer is not None:
                    return answer
            return self._dispatch(connection, frame)
        except Exception as error:
            self.give_up(connection, error)
            return None

    def give_up(self, connection: Connection, error: Exception) -> None:
        """A request failed, and nothing can be said of it."""
        if isinstance(error, (MalformedMessage, CloseConnection)):
            log.warning("closing connection", extra={"client": connection.client_host, "why": str(error)})
        else:
            log.error("closing connection: request failed", exc_info=error, extra={"client": connection.client_host})
        connection.close()

    def _dispatch(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        header = read_request_header(frame)
        context = self._context(connection, header.client_id)
        context.api_key, context.version, context.correlation_id = header[:3]
        context.is_of_broker = False  # the request before this one may have been
        api = APIS.get(header.api_key)
        if api is None or not api.min_version <= header.version <= api.max_version:
            return self._unsupported(connection, context, api)
        route = self._routes.get(header.api_key) or self._add_route(api)
        return route(context, frame, header.end)

    async def _answer_enclosed(self, context: RequestContext, frame: bytes) -> bytes:
        """A request that another broker has forwarded; only those come that the controller answers. It came in through
        `handle` inside an Envelope, and is observed as that; of quotas only that of changed partitions is for us."""
        view = memoryview(frame)
        header = read_request_header(view)
        context.api_key, context.version, context.correlation_id = header[:3]
        context.client_id = header.client_id.decode() if header.client_id is not None else None
        api = APIS.get(header.api_key)
        if api is None or not api.for_controller or not api.min_version <= header.version <= api.max_version:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        route = self._routes.get(header.api_key) or self._add_route(api)
        answer = route(context, view, header.end)
        if isawaitable(answer):
            answer = await answer
        assert isinstance(answer, (bytes, bytearray))
        return bytes(answer)

    def _context(self, connection: Connection, client_id: bytes | None) -> RequestContext:
        cached = connection.context
        if cached is not None and cached[0] == client_id:
            context: RequestContext = cached[1]
            return context
        try:
            name = client_id.decode() if client_id is not None else None
        except UnicodeDecodeError:
            raise MalformedMessage("client id is not UTF-8") from None
        context = RequestContext(
            0, 0, 0, name, connection.client_host, connection.listener.name, connection.id, connection.principal
        )
        context.is_by_token = connection.login is not None and connection.login.is_by_token
        connection.context = (client_id, context)
        return context

    def _unsupported(self, connection: Connection, context: RequestContext, api: Api | None) -> Answer:
        if context.api_key == API_VERSIONS:
            # The one API whose newer versions we must answer: in the v0 format, so that the client can step down.
            context.version = 0
            response = import_module("ottla.broker.handlers.cluster.api_versions").unsupported(self._broker)
            body = codec.encode(response, 0)
            return response_prefix(len(body), context.correlation_id, False) + body
        log.warning(
            "closing connection: API or version not served",
            extra={"client": connection.client_host, "api_key": context.api_key, "version": context.version},
        )
        connection.close()
        return None

    def _add_route(self, api: Api) -> Route:
        module = import_module(f"ottla.broker.handlers.{api.module}")
        if api.name == "Produce":
            self.known_frame = module.handle_known_frame
        if api.works_on_frames:
            route = _frame_route(self._broker, module, api)
        else:
            route = _message_route(self._broker, module, api)
        self._routes[api.key] = route
        return route


def _frame_route(broker: Broker, module: Any, api: Api) -> Route:
    handle_frame = module.handle_frame
    flexible = flexible_from(f"{api.name}Request")

    def route(context: RequestContext, frame: memoryview, position: int) -> Answer | Awaitable[Answer]:
        if context.version >= flexible:
            position = skip_header_tags(frame, position)
        answer: Answer | Awaitable[Answer] = handle_frame(broker, context, frame, position)
        return answer

    return route


def _guarded(name: str, handle: Any) -> Any:
    from ottla.broker.access.guards import guarded  # only a broker with an authorizer loads it

    return handle if name == "Metadata" else guarded(name, handle)


def _message_route(broker: Broker, module: Any, api: Api) -> Route:
    handle = module.handle if broker.access is None else _guarded(api.name, module.handle)
    request_name, response_name = f"{api.name}Request", f"{api.name}Response"
    flexible = flexible_from(request_name)
    fields = {field["name"]: field["versions"] for field in codec.definition(response_name)["fields"]}

    def framed(version: int, correlation_id: int, body: bytearray) -> bytes:
        flexible_header = version >= flexible and api.key != API_VERSIONS
        return response_prefix(len(body), correlation_id, flexible_header) + body

    def count_errors(response: Message) -> None:
        if broker.observer is not None:
            for code in errors_in(response_name, response):
                broker.observer.failed(api.key, code)

    def failed(version: int, error: Exception) -> Message:
        """What a handler did not answer itself, in the response's own error code. Where the version has none the error
        is raised, which closes the connection: an empty answer would be taken for a success."""
        if not isinstance(error, ApiError):
            log.error("request failed", exc_info=error, extra={"api": api.name})
        code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
        if not is_within(version, fields.get("error_code")):
            raise error
        response_class: Any = codec.message_class(response_name)
        response: Any = response_class(error_code=code)
        if "error_message" in fields:
            response.error_message = error.message if isinstance(error, ApiError) else None
        return cast(Message, response)

    def is_for_another(context: RequestContext, request: Any) -> bool:
        """Only the controller can do it, and that is another broker."""
        if not api.for_controller or not broker.is_clustered or broker.is_controller:
            return False
        if api.by_login_only and not broker.tokens.may_be_asked(context):
            return False  # refused here: only we know how the client came in
        # The levels of loggers are those of the broker that is asked.
        return api.name != "IncrementalAlterConfigs" or all(
            resource.resource_type != _BROKER_LOGGER for resource in request.resources
        )

    async def from_controller(context: RequestContext, request: Message, frame: bytes) -> Answer:
        try:
            return await broker.forward(context, frame)
        except ApiError as error:
            response = refusal(api.name, request, error) or failed(context.version, error)
            body = codec.encode(response, context.version)
            return framed(context.version, context.correlation_id, body)

    def large(context: RequestContext, frame: memoryview, position: int) -> Steps[Answer]:
        try:
            request = yield from codec.decode_in_steps(request_name, context.version, frame, position)
        except MalformedMessage as error:
            raise CloseConnection(str(error)) from None
        if is_for_another(context, request):
            answer: Answer = yield from_controller(context, request, bytes(frame))
            return answer
        try:
            response = handle(broker, context, request)
        except Exception as error:
            response = failed(context.version, error)
        return (yield from later(context.version, context.correlation_id, response))

    def later(version: int, correlation_id: int, response: Any) -> Steps[bytes]:
        """`response` is an answer, or a promise of one."""
        try:
            if isinstance(response, GeneratorType):
                response = yield from response
            elif not isinstance(response, (Message, bytearray)):
                response = yield response
        except Exception as error:
            response = failed(version, error)
        if isinstance(response, Message):
            count_errors(response)
            response = yield from codec.encode_in_steps(response, version)
        return framed(version, correlation_id, response)

    def route(context: RequestContext, frame: memoryview, position: int) -> Answer | Awaitable[Answer]:
        version, correlation_id = context.version, context.correlation_id
        if version >= flexible:
            position = skip_header_tags(frame, position)
        if len(frame) > _LARGE_BYTES:
            # Both are the connection's, and ours only until we wait.
            return broker.turns.queue(large(copy(context), kept(frame), position))
        request = codec.decode(request_name, version, frame, position)
        if is_for_another(context, request):
            return from_controller(copy(context), request, bytes(frame))
        try:
            response = handle(broker, context, request)
            if isinstance(response, GeneratorType):
                response = broker.turns.start(response)
        except Exception as error:
            response = failed(version, error)
        # What was found at once is short enough to be encoded at once.
        if isinstance(response, Message):
            count_errors(response)
            return framed(version, correlation_id, codec.encode(response, version))
        if isinstance(response, bytearray):
            return framed(version, correlation_id, response)
        return broker.turns.start(later(version, correlation_id, response))

    return route
