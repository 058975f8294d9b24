"""Questions to coordinators of transactions on other brokers: AddPartitionsToTxn, one request under way per broker
(Kafka's AddPartitionsToTxnManager).

A leader asks before it takes the first batch of a transaction (`verification_guard.py`), a group coordinator before it
takes offsets of one (KIP-890): does this partition belong to the open transaction (`verify_only`), or may it join? What
is asked while a request is under way goes with the next one, all transactions together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_TIMEOUT_MS = 30_000
_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Answer = asyncio.Future[None]


class Question(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int
    verify_only: bool


class TransactionPeers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._desks: dict[int, _Desk] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, coordinator: int, question: Question, partition: TopicPartition) -> Awaitable[None]:
        """Raises ApiError with what the coordinator says, or NETWORK_EXCEPTION."""
        desk = self._desks.get(coordinator)
        if desk is None:
            desk = self._desks[coordinator] = _Desk()
        answer: Answer = self._broker.loop.create_future()
        desk.next.setdefault(question, {}).setdefault(partition, []).append(answer)
        if not desk.is_busy:
            desk.is_busy = True
            # A task of its own begins when this turn is over: what the rest of a request asks goes with it.
            task = self._broker.loop.create_task(self._ask_all(coordinator, desk))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return answer

    def stop(self) -> None:
        for desk in self._desks.values():
            desk.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for task in self._tasks:
            task.cancel()

    def on_image(self) -> None:
        """Whoever asks one that is the coordinator no longer need not wait for it."""
        for coordinator, desk in self._desks.items():
            for questions in (desk.next, desk.under_way):
                for question in [waiting for waiting in questions if self._coordinator_of(waiting) != coordinator]:
                    _tell(questions.pop(question), ErrorCode.NOT_COORDINATOR)

    def _coordinator_of(self, question: Question) -> int | None:
        try:
            return self._broker.transactions.runtime.leader_of(question.transactional_id)
        except ApiError:
            return None

    async def _ask_all(self, coordinator: int, desk: _Desk) -> None:
        try:
            while desk.begin():
                desk.answer(await self._send(coordinator, desk.under_way))
        finally:
            desk.is_busy = False
            desk.fail(ErrorCode.NETWORK_EXCEPTION)

    async def _send(self, coordinator: int, questions: _Questions) -> AddPartitionsToTxnResponse:
        request = AddPartitionsToTxnRequest(transactions=[_asked(*question) for question in questions.items()])
        try:
            answer: AddPartitionsToTxnResponse = await self._broker.peers.request(
                coordinator, request, Channel.TRANSACTIONS, timeout_ms=_TIMEOUT_MS
            )
        except PeerUnavailable:
            return AddPartitionsToTxnResponse(error_code=ErrorCode.NETWORK_EXCEPTION)
        return answer


_Questions = dict[Question, dict[TopicPartition, list[Answer]]]


class _Desk:
    """What one coordinator is asked."""

    def __init__(self) -> None:
        self.next: _Questions = {}
        self.under_way: _Questions = {}
        self.is_busy = False

    def begin(self) -> bool:
        """Whether there is something to ask; it is under way then. Answers go by transactional id, so one request asks
        about each of them once."""
        names: set[str] = set()
        for question in list(self.next):
            if question.transactional_id not in names:
                names.add(question.transactional_id)
                self.under_way[question] = self.next.pop(question)
        return bool(self.under_way)

    def answer(self, response: AddPartitionsToTxnResponse) -> None:
        codes = {
            (transaction.transactional_id, topic.name, row.partition_index): row.partition_error_code
            for transaction in response.results_by_transaction
            for topic in transaction.topic_results
            for row in topic.results_by_partition
        }
        missing = response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
        answered, self.under_way = self.under_way, {}
        for question, partitions in answered.items():
            for partition, answers in partitions.items():
                code = codes.get((question.transactional_id, *partition), missing)
                _tell({partition: answers}, ErrorCode(code))

    def fail(self, error: ErrorCode) -> None:
        for questions in (self.next, self.under_way):
            for partitions in questions.values():
                _tell(partitions, error)
        self.next, self.under_way = {}, {}


def _tell(partitions: dict[TopicPartition, list[Answer]], code: ErrorCode) -> None:
    for answers in partitions.values():
        for answer in answers:
            if answer.done():
                continue  # its connection is gone
            if code is ErrorCode.NONE:
                answer.set_result(None)
            else:
                answer.set_exception(ApiError(code))


def _asked(question: Question, partitions: Iterable[TopicPartition]) -> _Asked:
    return _Asked(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.epoch,
        verify_only=question.verify_only,
        topics=[_Topic(name=name, partitions=indexes) for name, indexes in partitions_by_topic(partitions).items()],
    )
