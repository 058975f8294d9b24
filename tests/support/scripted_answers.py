"""A real broker that refuses, by script: the next answers to a kind of request say an error code.

    with scripted({"EndTxn": [ErrorCode.NOT_COORDINATOR] * 3}) as script:
        ...
    assert script.is_over

Only our own client hears it, in this process: the request is not sent, as by a broker that refuses before it does
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ottla.client.connection import BrokerConnection


class Script:
    def __init__(self, codes: Mapping[str, Sequence[int]]) -> None:
        self.left = {name: list(its) for name, its in codes.items()}

    @property
    def is_over(self) -> bool:
        return not any(self.left.values())

    def answer(self, request: Any) -> Any:
        """None where the broker is to be asked."""
        name = type(request).__name__.removesuffix("Request")
        return _REFUSALS[name](request, self.left[name].pop(0)) if self.left.get(name) else None


@contextmanager
def scripted(codes: Mapping[str, Sequence[int]]) -> Iterator[Script]:
    script = Script(codes)
    send, receive = BrokerConnection._send, BrokerConnection.receive
    answers: dict[int, Any] = {}

    def say(connection: BrokerConnection, request: Any, version: int) -> Any:
        answer = script.answer(request)
        if answer is None:
            return send(connection, request, version)
        sent = SimpleNamespace()
        answers[id(sent)] = (sent, answer)
        return sent

    def hear(connection: BrokerConnection, sent: Any) -> Any:
        return answers.pop(id(sent))[1] if id(sent) in answers else receive(connection, sent)

    with patch.object(BrokerConnection, "_send", say), patch.object(BrokerConnection, "receive", hear):
        yield script


def _plain(request: Any, code: int) -> Any:
    return SimpleNamespace(error_code=code, producer_id=-1, producer_epoch=-1)


def _coordinators(request: Any, code: int) -> Any:
    return SimpleNamespace(error_code=code, node_id=-1, coordinators=[SimpleNamespace(error_code=code, node_id=-1)])


def _produce(request: Any, code: int) -> Any:
    return SimpleNamespace(
        responses=[
            SimpleNamespace(
                name=topic.name,
                partition_responses=[
                    SimpleNamespace(index=one.index, error_code=code, error_message=None)
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _offsets(request: Any, code: int) -> Any:
    return SimpleNamespace(
        topics=[
            SimpleNamespace(partitions=[SimpleNamespace(error_code=code) for _ in topic.partitions])
            for topic in request.topics
        ]
    )


def _add_partitions(request: Any, code: int) -> Any:
    return SimpleNamespace(
        results_by_topic_v3_and_below=[
            SimpleNamespace(results_by_partition=[SimpleNamespace(partition_error_code=code) for _ in topic.partitions])
            for topic in request.v3_and_below_topics
        ]
    )


def _created(request: Any, code: int) -> Any:
    return SimpleNamespace(topics=[SimpleNamespace(name=one.name, error_code=code) for one in request.topics])


_REFUSALS = {
    "FindCoordinator": _coordinators,
    "InitProducerId": _plain,
    "AddPartitionsToTxn": _add_partitions,
    "AddOffsetsToTxn": _plain,
    "Produce": _produce,
    "TxnOffsetCommit": _offsets,
    "EndTxn": _plain,
    "CreateTopics": _created,
}
