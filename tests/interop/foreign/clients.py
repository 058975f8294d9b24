"""One face for all clients, so that a test says what happens and not how each library spells it.

`produce`, `consume` and `join` are the same for the agents of other languages and for confluent-kafka in this process.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.interop.foreign.agents import Agent

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


class Seen(NamedTuple):
    """A record as a consumer got it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


@dataclass
class Membership:
    """What a group member owns and has received so far."""

    assignment: set[tuple[str, int]]
    records: list[Seen]
    error: str | None


class Client(Protocol):
    name: str

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", **settings: str
    ) -> Any: ...

    def consume(
        self, bootstrap: str, topic: str, count: int, *, from_ms: int | None = None, **settings: str
    ) -> list[Seen]: ...

    def join(
        self,
        bootstrap: str,
        member: str,
        group: str,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        **settings: str,
    ) -> None: ...

    def seen(self, member: str) -> Membership: ...

    def leave(self, member: str) -> Membership: ...


# --- clients behind an agent -----------------------------------------------------------------------------------------


class AgentClient:
    """`settings` are names of the client's own with `.` written as `_`: `group_protocol="consumer"`."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.name = agent.name

    def produce(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", **settings: str) -> Any:
        return self.agent.call(
            "produce",
            bootstrap=bootstrap,
            topic=topic,
            codec=codec,
            records=[_record_to_json(one) for one in records],
            settings=_dotted(settings),
        )

    def consume(
        self, bootstrap: str, topic: str, count: int, *, from_ms: int | None = None, **settings: str
    ) -> list[Seen]:
        found = self.agent.call(
            "consume", bootstrap=bootstrap, topic=topic, count=count, from_ms=from_ms, settings=_dotted(settings)
        )
        return [_record_from_json(one) for one in found]

    def join(
        self,
        bootstrap: str,
        member: str,
        group: str,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        **settings: str,
    ) -> None:
        self.agent.call(
            "join",
            bootstrap=bootstrap,
            member=member,
            group=group,
            topics=list(topics),
            pattern=pattern,
            settings=_dotted(settings),
        )

    def seen(self, member: str) -> Membership:
        return _membership(self.agent.call("seen", member=member))

    def leave(self, member: str) -> Membership:
        return _membership(self.agent.call("leave", member=member))


def _dotted(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def base64_text(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _record_to_json(one: Sent) -> dict[str, object]:
    return {
        "key": base64_text(one.key),
        "value": base64_text(one.value),
        "headers": [[name, base64_text(value)] for name, value in one.headers],
        "partition": one.partition,
        "timestamp": one.timestamp,
    }


def _record_from_json(one: dict[str, Any]) -> Seen:
    headers = tuple((name, _bytes(value)) for name, value in one["headers"])
    where = one["topic"], one["partition"], one["offset"], one["timestamp"]
    return Seen(*where, _bytes(one["key"]), _bytes(one["value"]), headers)


def _membership(found: dict[str, Any]) -> Membership:
    assignment = {(topic, partition) for topic, partition in found["assignment"]}
    return Membership(assignment, [_record_from_json(one) for one in found["records"]], found["error"])


# --- confluent-kafka in this process ---------------------------------------------------------------------------------


_QUIET = {"log_level": 0}  # else a line for each try to connect to a broker that a test has stopped


@dataclass
class _Member:
    consumer: Consumer
    stopping: threading.Event = field(default_factory=threading.Event)
    membership: Membership = field(default_factory=lambda: Membership(set(), [], None))
    lock: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread | None = None


class ConfluentClient:
    """librdkafka, with the partitioner that agrees with Java's."""

    name = "confluent"

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}

    def produce(self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", **settings: str) -> Any:
        sent: list[list[int]] = [[-1, -1] for _ in records]
        failures: list[object] = []
        config = {**_QUIET, "bootstrap.servers": bootstrap, "compression.type": codec, "partitioner": "murmur2_random"}
        producer = Producer({"linger.ms": "20", **config, **_dotted(settings)})
        for index, one in enumerate(records):

            def delivered(error: Any, message: Any, index: int = index) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    sent[index] = [message.partition(), message.offset()]

            place: dict[str, Any] = {} if one.partition is None else {"partition": one.partition}
            if one.timestamp is not None:
                place["timestamp"] = one.timestamp
            producer.produce(
                topic, key=one.key, value=one.value, headers=list(one.headers), on_delivery=delivered, **place
            )
        if producer.flush(60) or failures:
            raise AssertionError(f"confluent produce failed: {failures[:1]}")
        return sent

    def consume(
        self, bootstrap: str, topic: str, count: int, *, from_ms: int | None = None, **settings: str
    ) -> list[Seen]:
        config = {**_QUIET, "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer({**config, **_dotted(settings)})
        deadline, seen = time.monotonic() + 20, list[Seen]()
        try:
            partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
            places = [TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions]
            if from_ms is not None:
                asked = [TopicPartition(topic, index, from_ms) for index in partitions]
                places = consumer.offsets_for_times(asked, timeout=20)
            consumer.assign(places)
            while len(seen) < count and time.monotonic() < deadline:
                seen += [_seen(message) for message in consumer.consume(1000, timeout=0.1) if not message.error()]
        finally:
            consumer.close()
        return seen

    def join(
        self,
        bootstrap: str,
        member: str,
        group: str,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        **settings: str,
    ) -> None:
        consumer = Consumer(
            {
                **_QUIET,
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
                **_dotted(settings),
            }
        )
        made = _Member(consumer)
        consumer.subscribe([f"^{pattern}$"] if pattern else list(topics))
        made.thread = threading.Thread(target=self._poll, args=(made,), daemon=True)
        made.thread.start()
        self._members[member] = made

    @staticmethod
    def _poll(member: _Member) -> None:
        while not member.stopping.is_set():
            try:
                messages = [one for one in member.consumer.consume(500, timeout=0.1) if not one.error()]
                owned = {(one.topic, one.partition) for one in member.consumer.assignment()}
                with member.lock:
                    member.membership.records += [_seen(message) for message in messages]
                    member.membership.assignment = owned
                if messages:
                    member.consumer.commit(asynchronous=False)
            except KafkaException as error:
                with member.lock:
                    member.membership.error = str(error)

    def seen(self, member: str) -> Membership:
        found = self._members[member]
        with found.lock:
            now = found.membership
            return Membership(set(now.assignment), list(now.records), now.error)

    def leave(self, member: str) -> Membership:
        found = self._members.pop(member)
        found.stopping.set()
        assert found.thread is not None
        found.thread.join(30)
        found.consumer.close()
        return found.membership


def _seen(message: Any) -> Seen:
    return Seen(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
