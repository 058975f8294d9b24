"""Requests that only the controller can carry out: whoever gets one sends it on, as it came, and gives the answer back.

It travels in an Envelope (KIP-590), which says who asked. Before the answer goes out the image here is brought up to
the controller's, so that a client finds what it has just changed at the broker it asked.
"""

from __future__ import annotations

import logging
from importlib import import_module
from inspect import isawaitable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import APIS
from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.controller.topic_plan import NewTopic
from ottla.protocol import codec
from ottla.protocol.codec import Message
from ottla.protocol.messages import CreateTopicsRequest, EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.cluster")

_RETRY_MS = 50
# While a controller is being elected; clients wait for about so long by themselves.
PATIENCE_MS = 20_000
# While the metadata store is away nobody can be elected: clients hear of it before they give up by themselves.
PATIENCE_WITHOUT_STORE_MS = 5_000


class Forwarding:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def ask(self, request: Message) -> Any:
        """The controller's answer to a request of this broker. Raises PeerUnavailable, or ApiError when there is no
        controller to ask; whoever asks tries again."""
        broker = self._broker
        if broker.is_controller:
            return await self._handle_here(request)
        controller = broker.image.controller
        if controller not in broker.image.present or controller == broker.node_id:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "there is no controller now")
        return await broker.peers.request(controller, request, Channel.CONTROL)

    async def _handle_here(self, request: Message) -> Any:
        """As if it had come to us: this broker is the controller itself."""
        api = APIS[codec.definition(type(request).__name__)["key"]]
        context = RequestContext(api.key, api.max_version, 0, None, "", "", 0)
        answer = import_module(f"ottla.broker.handlers.{api.module}").handle(self._broker, context, request)
        if isinstance(answer, GeneratorType):
            answer = self._broker.turns.start(answer)
        return await answer if isawaitable(answer) else answer

    async def create_topic(self, topic: NewTopic) -> None:
        """A topic that this broker needs. Raises ApiError."""
        wanted = CreateTopicsRequest.CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=(),
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in topic.configs.items()
            ],
        )
        try:
            answer = await self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=PATIENCE_MS, validate_only=False))
        except PeerUnavailable as error:
            raise ApiError(ErrorCode.NOT_CONTROLLER, str(error)) from error
        (result,) = answer.topics
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise ApiError(ErrorCode(result.error_code), result.error_message)
        await self._broker.catch_up()

    async def forward(self, context: RequestContext, frame: bytes) -> bytes:
        """The bytes of the controller's answer to a client's request."""
        broker, clock = self._broker, self._broker.clock
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=context.principal.encode(),
            client_host_address=context.client_host.encode(),
        )
        began_ms = clock.monotonic_ms()
        while True:
            if broker.is_controller:  # since a moment ago: it may be elected while a request waits for a controller
                return await broker.answer_enclosed(context, frame)
            try:
                answer: EnvelopeResponse = await self.ask(envelope)
                if answer.error_code == ErrorCode.NONE:
                    break
                failure: Exception = ApiError(ErrorCode(answer.error_code))
            except (PeerUnavailable, ApiError) as error:
                failure = error
            patience_ms = PATIENCE_MS if broker.is_store_reached else PATIENCE_WITHOUT_STORE_MS
            if clock.monotonic_ms() >= began_ms + patience_ms:
                away = "" if broker.is_store_reached else "; the metadata store is away"
                raise ApiError(
                    ErrorCode.NOT_CONTROLLER, f"the controller cannot be asked: {failure}{away}"
                ) from failure
            await broker.timers.sleep(_RETRY_MS)
        await broker.catch_up()
        return bytes(answer.response_data or b"")
