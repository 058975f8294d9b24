"""The commit of a batch write, which Spark calls in a process of its own: no Spark is started here."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from ottla.client.connection import BrokerConnection
from ottla.client.producing import TransactionalProducer
from ottla.common.errors import OttlaError
from ottla.kernel.encode import BatchEncoder
from ottla.spark.sink.batch import BatchWriter, EncodedByTask
from ottla.testing import Broker
from tests.spark import topics


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> set[BrokerConnection]:
    """Those of our client that are open."""
    opened: set[BrokerConnection] = set()
    begin, end = BrokerConnection.__init__, BrokerConnection.close

    def opening(self: BrokerConnection, *arguments: object, **more: object) -> None:
        begin(self, *arguments, **more)  # type: ignore[arg-type]
        opened.add(self)

    def closing(self: BrokerConnection) -> None:
        opened.discard(self)
        end(self)

    monkeypatch.setattr(BrokerConnection, "__init__", opening)
    monkeypatch.setattr(BrokerConnection, "close", closing)
    return opened


def written(servers: str, topic: str) -> tuple[BatchWriter, list[EncodedByTask]]:
    encoder = BatchEncoder()
    encoder.append(
        array("i", [0]), pa.nulls(1, pa.binary()), pa.array([b"v"]), None, pa.array([1_700_000_000_000], pa.int64())
    )
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    writer = BatchWriter(options, StructType().add("value", BinaryType()))
    return writer, [EncodedByTask([(topic, 0, encoder.finish()[0][1])])]


def failing(sentence: str) -> object:
    def fail(*arguments: object, **more: object) -> None:
        raise OttlaError(sentence)

    return fail


def test_an_abort_that_fails_does_not_hide_why_there_was_one(
    servers: str, connections: set[BrokerConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, messages = written(servers, topics.create(servers))
    monkeypatch.setattr(TransactionalProducer, "produce", failing("the disk is full."))
    monkeypatch.setattr(TransactionalProducer, "abort", failing("nobody answers."))
    with pytest.raises(OttlaError, match="the disk is full"):
        writer.commit(messages)  # type: ignore[arg-type]
    assert not connections


def test_a_commit_that_fails_leaves_no_connection_open(
    servers: str, connections: set[BrokerConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, messages = written(servers, topics.create(servers))
    monkeypatch.setattr(TransactionalProducer, "_end", failing("nobody answers."))
    with pytest.raises(OttlaError, match="nobody answers"):
        writer.commit(messages)  # type: ignore[arg-type]
    assert not connections


def test_records_that_are_refused_at_last_leave_no_transaction_open(servers: str) -> None:
    """The name of a batch write is used once: nobody would come and abort it before its time is over."""
    topic = topics.create(servers)
    writer, messages = written(servers, topic)
    # Larger than the topic takes, which is known when the answer comes, after everything was sent.
    refusing = topics.create(servers, config={"max.message.bytes": "10"})
    (_, _, data) = messages[0].batches[0]
    messages[0].batches += [(refusing, 0, data)]
    with pytest.raises(OttlaError, match="TOO_LARGE"):
        writer.commit(messages)  # type: ignore[arg-type]
    topics.produce(servers, topic, range(1))
    assert len(topics.consumed(servers, topic)) == 1, "an open transaction hides what follows it"
