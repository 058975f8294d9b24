"""The commit of a batch write, which Spark calls in a process of its own: no Spark is started here."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from ottla.client.connection import BrokerConnection
from ottla.client.producing import TransactionalProducer
from ottla.common.errors import OttlaError
from ottla.kernel.encode import BatchEncoder
from ottla.spark.sink.batch import BatchWriter, TaskIsDone
from ottla.spark.sink.spooling import Report
from ottla.spark.spool.sending import send
from ottla.spark.spool.server import SpoolServer
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


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolServer]:
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as running:
        yield running


def written(servers: str, spool: SpoolServer, *topics: str) -> tuple[BatchWriter, list[TaskIsDone]]:
    """As the one task of a write would, a record for each topic."""
    encoder = BatchEncoder()
    encoder.append(
        array("i", [0]), pa.nulls(1, pa.binary()), pa.array([b"v"]), None, pa.array([1_700_000_000_000], pa.int64())
    )
    data = encoder.finish()[0][1]
    options = {"kafka.bootstrap.servers": servers, "topic": topics[0]}
    writer = BatchWriter(options, StructType().add("value", BinaryType()), spool.address)
    sent = send(writer._target, 0, 0, [(topic, 0, 1, data) for topic in topics])
    return writer, [TaskIsDone(Report(0, 0, sent.frames, sent.bytes, None))]


def failing(sentence: str) -> object:
    def fail(*arguments: object, **more: object) -> None:
        raise OttlaError(sentence)

    return fail


def test_an_abort_that_fails_does_not_hide_why_there_was_one(
    servers: str, spool: SpoolServer, connections: set[BrokerConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, messages = written(servers, spool, topics.create(servers))
    monkeypatch.setattr(TransactionalProducer, "produce", failing("the disk is full."))
    monkeypatch.setattr(TransactionalProducer, "abort", failing("nobody answers."))
    with pytest.raises(OttlaError, match="the disk is full"):
        writer.commit(messages)  # type: ignore[arg-type]
    assert not connections


def test_a_commit_that_fails_leaves_no_connection_open_and_no_file(
    servers: str, spool: SpoolServer, connections: set[BrokerConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, messages = written(servers, spool, topics.create(servers))
    monkeypatch.setattr(TransactionalProducer, "_end", failing("nobody answers."))
    with pytest.raises(OttlaError, match="nobody answers"):
        writer.commit(messages)  # type: ignore[arg-type]
    assert not connections
    assert not writer._batch.path.exists()


def test_a_commit_that_nobody_answers_is_told_of_and_nothing_is_written_twice(
    servers: str, spool: SpoolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a marker nobody can say what became of it."""
    topic = topics.create(servers)
    writer, messages = written(servers, spool, topic)
    commit = TransactionalProducer.commit

    def lose(producer: TransactionalProducer) -> None:
        commit(producer)
        raise ConnectionResetError("the answer is lost")

    monkeypatch.setattr(TransactionalProducer, "commit", lose)
    with pytest.raises(OttlaError, match="whether the rows are written: look for them before you write them again"):
        writer.commit(messages)  # type: ignore[arg-type]
    assert len(topics.consumed(servers, topic)) == 1


def test_records_that_are_refused_at_last_leave_no_transaction_open(servers: str, spool: SpoolServer) -> None:
    """The name of a batch write is used once: nobody would come and abort it before its time is over."""
    topic = topics.create(servers)
    # Larger than the topic takes, which is known when the answer comes, after everything was sent.
    refusing = topics.create(servers, config={"max.message.bytes": "10"})
    writer, messages = written(servers, spool, topic, refusing)
    with pytest.raises(OttlaError, match="TOO_LARGE"):
        writer.commit(messages)  # type: ignore[arg-type]
    topics.produce(servers, topic, range(1))
    assert len(topics.consumed(servers, topic)) == 1, "an open transaction hides what follows it"
