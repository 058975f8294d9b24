"""What guards are made of: a request on its way to its handler, and what is asked of it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import isawaitable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ottla.broker.access.access import Asker
from ottla.broker.access.rules import DENIED, RULES, Rule
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.common.steps import Steps
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

Handle = Callable[["Broker", RequestContext, Any], Any]
Guard = Callable[["Request"], Steps[Any]]
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_AUTHORIZED = "Authorization failed."
# Where a request names the one group or transactional id that it is about.
_NAMED_BY = {ResourceType.GROUP: "group_id", ResourceType.TRANSACTIONAL_ID: "transactional_id"}


class Request:
    """One request on its way through a guard."""

    __slots__ = ("_handle", "ask", "broker", "context", "message", "version")

    def __init__(self, handle: Handle, broker: Broker, context: RequestContext, message: Any) -> None:
        assert broker.access is not None
        self._handle = handle
        self.broker = broker
        self.context = copy(context)  # the connection's, and ours only until we are interrupted
        self.message = message
        self.version = context.version
        self.ask: Asker = broker.access.of(context)

    def answer(self) -> Steps[Any]:
        """What the handler makes of the message as it is now."""
        answer = self._handle(self.broker, self.context, self.message)
        if isinstance(answer, GeneratorType):
            return (yield from answer)
        if isawaitable(answer):
            return (yield answer)
        return answer

    def without_topics(self, operation: Operation, field: str = "name", *, by_id: bool = False) -> Steps[list[Any]]:
        """The topics of the message for which it is not allowed; the others stay, and so does an id that nobody has:
        there is nothing to hide."""
        allowed: list[Any] = []
        denied: list[Any] = []
        for topic in self.message.topics:
            known = self.broker.image.topics_by_id.get(TopicId(topic.topic_id)) if by_id else None
            name = getattr(topic, field) if not by_id else None if known is None else known.name
            (allowed if name is None or self.ask.may_topic(operation, name) else denied).append(topic)
            yield None
        self.message.topics = allowed
        return denied


def as_a_whole(rules: tuple[Rule, ...], request: Request) -> Steps[Any]:
    for rule in rules:
        check(request, rule)
    return (yield from request.answer())


def check(request: Request, rule: Rule) -> None:
    """Raises ApiError, which the router answers with."""
    field = _NAMED_BY.get(rule.resource)
    name: str = CLUSTER_NAME if field is None else getattr(request.message, field)
    if not request.ask.may(rule.operation, rule.resource, name):
        raise ApiError(DENIED[rule.resource], NOT_AUTHORIZED)


def whole_or(refused: Callable[[Any, ErrorCode], Any]) -> Guard:
    """For answers that have no error code of their own: `refused` has another place for it."""

    def guard(request: Request) -> Steps[Any]:
        name = type(request.message).__name__.removesuffix("Request")
        rule = RULES[name][0]
        if not request.ask.may_cluster(rule.operation):
            return refused(request.message, DENIED[rule.resource])
        return (yield from request.answer())

    return guard
