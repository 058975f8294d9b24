"""Requests in the log: slow ones (`ottla.slow.request.log.ms`), and for a while those of a client or a topic
(`ottla.request.log`), with where their time went.

A request whose topics are asked for is decoded a second time for it, which is why such a log ends by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.apis import APIS
from ottla.common.clock import Clock
from ottla.common.ids import TopicId
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, Message
from ottla.protocol.framing import flexible_from, read_request_header, skip_header_tags

if TYPE_CHECKING:
    from ottla.common.config import BrokerConfig
    from ottla.metadata.image import ClusterImage
    from ottla.server.connection import Connection

request_log = logging.getLogger("ottla.request")
slow_log = logging.getLogger("ottla.request.slow")

_FETCH, _JOIN_GROUP, _SYNC_GROUP = 1, 11, 14
# They wait for records or for other members, as they were asked to.
_WAIT_BY_DESIGN = frozenset((_FETCH, _JOIN_GROUP, _SYNC_GROUP))
# Topics named in a line, and elements looked at for them.
_TOPICS_TOLD = 10
_LOOKED_AT_MAX = 2_000
_BYTES_MAX = 1024 * 1024
_TOPIC_FIELDS = frozenset(("topic", "name", "topic_name"))
_ID_BYTES = 16
# For how long requests are logged at most, and what whoever says so may be ahead of us.
_LOGGED_MS_MAX = 3_600_000
_CLOCKS_APART_MS = 60_000
TOO_FAR = "ottla.request.log.until.ms is more than an hour ahead; say when it ends within an hour."


def is_too_far(until_ms: int, clock: Clock) -> bool:
    return until_ms > clock.now_ms() + _LOGGED_MS_MAX + _CLOCKS_APART_MS


class Seen(NamedTuple):
    """What is known of a request before it is handled, and whether it is to be logged however long it takes."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    size: int
    topics: tuple[str, ...]
    is_wanted: bool


class RequestLog:
    def __init__(self, config: BrokerConfig, clock: Clock, image: Callable[[], ClusterImage]) -> None:
        self._clock = clock
        self._image = image
        self._slow_s = config.ottla_slow_request_log_ms / 1_000 if config.ottla_slow_request_log_ms >= 0 else None
        self.until_ms = config.ottla_request_log_until_ms
        filters = config.ottla_request_log if self.until_ms > clock.now_ms() else ()
        if filters and is_too_far(self.until_ms, clock):
            request_log.warning("requests are not logged: %s", TOO_FAR)
            filters = ()
        self._is_for_all = "*" in filters
        self._wanted: dict[str, set[str]] = {}
        for wanted in filters:
            field, _, value = wanted.partition("=")
            self._wanted.setdefault(field, set()).add(value)
        self.is_logging_requests = bool(filters)

    @property
    def is_on(self) -> bool:
        return self._slow_s is not None or self.is_logging_requests

    def look_at(self, connection: Connection, frame: memoryview) -> Seen | None:
        """Before the request is handled: its frame is not there any more afterwards."""
        is_logging = self.is_logging_requests and self._clock.now_ms() < self.until_ms
        if not is_logging and self._slow_s is None:
            return None
        try:
            header = read_request_header(frame)
            client_id = None if header.client_id is None else header.client_id.decode(errors="replace")
        except MalformedMessage:
            return None  # the router will say so
        topics: tuple[str, ...] = ()
        if is_logging and (self._is_for_all or "topic" in self._wanted):
            topics = tuple(self._topics(header.api_key, header.version, frame, header.end))
        is_wanted = is_logging and self._is_wanted(connection, header.api_key, client_id, topics)
        if not is_wanted and self._slow_s is None:
            return None
        key, version, correlation_id = header[:3]
        return Seen(key, version, correlation_id, client_id, len(frame), topics, is_wanted)

    def _is_wanted(self, connection: Connection, key: int, client_id: str | None, topics: tuple[str, ...]) -> bool:
        if self._is_for_all:
            return True
        wanted = self._wanted
        return (
            (client_id or "") in wanted.get("client", ())
            or connection.client_host in wanted.get("address", ())
            or connection.principal.partition(":")[2] in wanted.get("user", ())
            or (key in APIS and APIS[key].name in wanted.get("api", ()))
            or not wanted.get("topic", set()).isdisjoint(topics)
        )

    def tell(
        self, seen: Seen, connection: Connection, queue_s: float, local_s: float, remote_s: float, answer_bytes: int
    ) -> None:
        own_s = queue_s + local_s + (0.0 if seen.key in _WAIT_BY_DESIGN else remote_s)
        is_slow = self._slow_s is not None and own_s > self._slow_s
        if not is_slow and not seen.is_wanted:
            return
        api = APIS.get(seen.key)
        facts = {
            "api": api.name if api is not None else seen.key,
            "version": seen.version,
            "correlation": seen.correlation_id,
            "client": seen.client_id,
            "address": connection.client_host,
            "user": connection.principal,
            "listener": connection.listener.name,
            "request_bytes": seen.size,
            "answer_bytes": answer_bytes,
            "total_ms": round((queue_s + local_s + remote_s) * 1_000, 3),
            "queue_ms": round(queue_s * 1_000, 3),
            "local_ms": round(local_s * 1_000, 3),
            "remote_ms": round(remote_s * 1_000, 3),
        }
        if seen.topics:
            facts["topics"] = ",".join(seen.topics[:_TOPICS_TOLD]) + (",..." if len(seen.topics) > _TOPICS_TOLD else "")
        if is_slow:
            slow_log.warning("slow request", extra=facts)
        if seen.is_wanted:
            request_log.info("request", extra=facts)

    # --- which topics a request names

    def _topics(self, key: int, version: int, frame: memoryview, position: int) -> Iterator[str]:
        api = APIS.get(key)
        if api is None or not api.min_version <= version <= api.max_version or len(frame) > _BYTES_MAX:
            return
        name = f"{api.name}Request"
        try:
            at = skip_header_tags(frame, position) if version >= flexible_from(name) else position
            request = codec.decode(name, version, frame, at)
        except MalformedMessage:
            return
        by_id = self._image().topics_by_id
        found: dict[str, None] = {}
        for field, value in _fields(request):
            if field == "topic_id" and len(value) == _ID_BYTES:
                known = by_id.get(TopicId(bytes(value)))
                topic = None if known is None else known.name
            else:
                topic = value if field in _TOPIC_FIELDS and isinstance(value, str) else None
            if topic and topic not in found:
                found[topic] = None
                yield topic


def _fields(message: Message) -> Iterator[tuple[str, Any]]:
    """All fields of a message and of what it consists of, up to a limit."""
    waiting: list[Any] = [message]
    looked_at = 0
    while waiting and looked_at < _LOOKED_AT_MAX:
        one = waiting.pop()
        looked_at += 1
        for field in type(one).__slots__:
            value = getattr(one, field)
            if isinstance(value, (list, tuple)):
                waiting += [element for element in value[:_LOOKED_AT_MAX] if isinstance(element, Message)]
                if field == "topics":
                    yield from (("topic", element) for element in value if isinstance(element, str))
            elif isinstance(value, Message):
                waiting.append(value)
            elif value is not None:
                yield field, value
