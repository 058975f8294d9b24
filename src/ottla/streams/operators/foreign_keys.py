"""Joins of a table with another one by a key that is found in its values, as Kafka Streams does it (KIP-213).

Rows of the left table subscribe to their foreign key: a record goes to the task that has the right table's row of that
key, which keeps the subscription, and answers with that row, now and whenever it changes. The answer goes back to the
task of the left row. It carries a digest of the left value that asked: an answer to a question that has been
overtaken is dropped.

Who subscribes for an inner join is not answered by Kafka Streams where there is no row. If the word that a row is gone
was dropped, because the left row had changed meanwhile, a result stays for ever. Here there is always an answer, and it
is known which left rows have a result that must be taken back. Where nothing overtakes anything, no result differs.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.streams.operators.tables import Get, View
from ottla.streams.processing.context import DROPPED_NULL, TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Change, Headers
from ottla.streams.state.bytes_store import prefix_end

ForeignKeyOf = Callable[[Any, Any], Any]
_DIGEST_BYTES = 16
_HEAD = struct.Struct(">bi?")
_SIZE = struct.Struct(">i")


class Instruction(IntEnum):
    # The row has gone elsewhere, and what is there answers.
    UNSUBSCRIBE = 0
    UNSUBSCRIBE_AND_ANSWER_NOTHING = 1
    # Where there is no row, there was no result before; if there was one, a word was overtaken.
    SUBSCRIBE = 2
    SUBSCRIBE_AND_ANSWER = 3


class Subscription(NamedTuple):
    instruction: Instruction
    # Of the left row: its task's partition, its key, a digest of its value.
    partition: int
    key: bytes
    digest: bytes | None


class Found(IntEnum):
    # Not any more, so a result is to be taken back.
    NO_ROW = 0
    ROW = 1
    NEVER_A_ROW = 2


class Answer(NamedTuple):
    partition: int
    digest: bytes | None
    value: bytes | None
    found: Found


class SubscriptionSerde:
    def serialize(self, topic: str, value: Subscription) -> bytes:
        head = _HEAD.pack(value.instruction, value.partition, value.digest is not None)
        return head + (value.digest or b"") + value.key

    def deserialize(self, topic: str, data: bytes) -> Subscription:
        instruction, partition, has_digest = _HEAD.unpack_from(data)
        start = _HEAD.size + (_DIGEST_BYTES if has_digest else 0)
        digest = data[_HEAD.size : start] if has_digest else None
        return Subscription(Instruction(instruction), partition, data[start:], digest)


class AnswerSerde:
    def serialize(self, topic: str, value: Answer) -> bytes:
        head = _HEAD.pack(value.found, value.partition, value.digest is not None)
        return head + (value.digest or b"") + (value.value or b"")

    def deserialize(self, topic: str, data: bytes) -> Answer:
        found, partition, has_digest = _HEAD.unpack_from(data)
        start = _HEAD.size + (_DIGEST_BYTES if has_digest else 0)
        digest = data[_HEAD.size : start] if has_digest else None
        return Answer(partition, digest, data[start:] if found == Found.ROW else None, Found(found))


def to_its_partition(topic: str, key: Any, answer: Answer, count: int) -> int:
    return answer.partition


def _digest(body: bytes | None) -> bytes | None:
    return None if body is None else hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


class Subscribe(Operator):
    """Changes of the left table become subscriptions, with the foreign key as their key."""

    def __init__(self, foreign_key: ForeignKeyOf, key_bytes: Any, value_bytes: Any, is_left: bool) -> None:
        self._foreign_key = foreign_key
        self._key_bytes = key_bytes
        self._value_bytes = value_bytes
        self._is_left = is_left

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._partition = int(context.task_id.rpartition("_")[2])

    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if not change.is_latest:
            return
        before = None if change.old is None else self._foreign_key(key, change.old)
        now = None if change.new is None else self._foreign_key(key, change.new)
        row, digest = self._key_bytes(key), _digest(self._value_bytes(change.new))
        for wanted, instruction in self._instructions(change, before, now):
            subscription = Subscription(instruction, self._partition, row, digest)
            self.forward(wanted, subscription, timestamp, headers)

    def _instructions(self, change: Change, before: Any, now: Any) -> list[tuple[Any, Instruction]]:
        if self._is_left:
            if change.old is None and change.new is None:
                return []
            # A left join always has a result: also a row without a foreign key asks, and gets nothing.
            moved = [(before, Instruction.UNSUBSCRIBE)] if before is not None and before != now else []
            return [*moved, (now, Instruction.SUBSCRIBE_AND_ANSWER)]
        if now is None:
            if change.new is not None:
                self._context.drop(DROPPED_NULL)
            # Whether the row had a result is not known here: it is deleted in any case.
            return [] if before is None else [(before, Instruction.UNSUBSCRIBE_AND_ANSWER_NOTHING)]
        if before is None or before == now:
            return [(now, Instruction.SUBSCRIBE)]
        return [(before, Instruction.UNSUBSCRIBE), (now, Instruction.SUBSCRIBE_AND_ANSWER)]


class _Answering(Operator):
    """`forward` goes to the topic of answers, by the key of the left row."""

    def __init__(self, store: str, key_bytes: Any, value_bytes: Any, left_key_of: Any) -> None:
        self._store_name = store
        self._key_bytes = key_bytes
        self._value_bytes = value_bytes
        self._left_key_of = left_key_of

    def init(self, context: TaskContext) -> None:
        self._context = context
        self._data = context.store(self._store_name).data

    def _prefix(self, foreign_key: Any) -> bytes:
        body: bytes = self._key_bytes(foreign_key)
        return _SIZE.pack(len(body)) + body

    def _answer(self, asked: Subscription, value: Any, at: int, headers: Headers) -> None:
        if value is not None:
            found = Found.ROW
        else:
            found = Found.NEVER_A_ROW if asked.instruction is Instruction.SUBSCRIBE else Found.NO_ROW
        answer = Answer(asked.partition, asked.digest, self._value_bytes(value), found)
        self.forward(self._left_key_of(asked.key), answer, at, headers)


class KeepSubscriptions(_Answering):
    def __init__(self, right: View, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._right = right

    def init(self, context: TaskContext) -> None:
        super().init(context)
        self._get: Get = self._right(context)

    def process(self, key: Any, asked: Subscription, timestamp: int, headers: Headers) -> None:
        instruction = asked.instruction
        value, value_ms = None, timestamp
        if key is not None:
            keeps = instruction in (Instruction.SUBSCRIBE, Instruction.SUBSCRIBE_AND_ANSWER)
            self._data.put(self._prefix(key) + asked.key, SubscriptionSerde().serialize("", asked) if keeps else None)
            value, value_ms = self._get(key)
        if instruction is Instruction.UNSUBSCRIBE:
            return
        at = timestamp if value is None else max(timestamp, value_ms)
        if instruction is Instruction.UNSUBSCRIBE_AND_ANSWER_NOTHING:
            value = None
        self._answer(asked, value, at, headers)


class RightChanged(_Answering):
    def process(self, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._context.drop(DROPPED_NULL)
            return
        if not change.is_latest:
            return
        prefix = self._prefix(key)
        for place, body in list(self._data.range(prefix, prefix_end(prefix))):
            if place.startswith(prefix):
                asked = SubscriptionSerde().deserialize("", body)
                asked = asked._replace(instruction=Instruction.SUBSCRIBE_AND_ANSWER)  # the row was there
                self._answer(asked, change.new, timestamp, headers)


class Resolve(Operator):
    """Answers, in the task of the left row: joined with the value that asked, if it is still there."""

    def __init__(self, left: View, joiner: Callable[[Any, Any], Any], value_bytes: Any, right_of: Any):
        self._left = left
        self._joiner = joiner
        self._value_bytes = value_bytes
        self._right_of = right_of

    def init(self, context: TaskContext) -> None:
        self._get: Get = self._left(context)

    def process(self, key: Any, answer: Answer, timestamp: int, headers: Headers) -> None:
        """A left join: whoever subscribes is answered in any case, so what was overtaken does not matter."""
        current = self._get(key)[0]
        if _digest(self._value_bytes(current)) == answer.digest:
            result = None if current is None else self._joiner(current, self._right_of(answer.value))
            self.forward(key, result, timestamp, headers)


class ResolveInner(Resolve):
    def __init__(self, store: str, foreign_key: ForeignKeyOf, key_bytes: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._store_name = store
        self._foreign_key = foreign_key
        self._key_bytes = key_bytes

    def init(self, context: TaskContext) -> None:
        super().init(context)
        # The left rows that have a result now.
        self._joined = context.store(self._store_name).data

    def process(self, key: Any, answer: Answer, timestamp: int, headers: Headers) -> None:
        current = self._get(key)[0]
        row = self._key_bytes(key)
        has_result = self._joined.get(row) is not None
        if _digest(self._value_bytes(current)) != answer.digest:
            # Whatever the row subscribes to now answers by itself.
            if not has_result or (current is not None and self._foreign_key(key, current) is not None):
                return
            result = None
        elif answer.value is not None:
            result = self._joiner(current, self._right_of(answer.value))
        elif has_result or answer.found is Found.NO_ROW:
            result = None
        else:
            return
        if (result is not None) != has_result:
            self._joined.put(row, None if has_result else b"1")
        self.forward(key, result, timestamp, headers)
