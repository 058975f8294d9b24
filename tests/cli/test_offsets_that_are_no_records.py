"""Transaction markers and aborted records take offsets, and nobody can read them: what is counted says so."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cli.command import Cli


def writer_of(cluster: str, name: str) -> Producer:
    writer = Producer({"bootstrap.servers": cluster, "transactional.id": name, "linger.ms": 0})
    writer.init_transactions(60)
    return writer


def write(writer: Producer, topic: str, *values: str) -> None:
    writer.begin_transaction()
    for value in values:
        writer.produce(topic, value, partition=0)
    assert writer.flush(60) == 0


def commit_by_hand(cluster: str, group: str, topic: str, offset: int) -> None:
    """As librdkafka's consumers do after the record before `offset`."""
    consumer = Consumer({"bootstrap.servers": cluster, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def lag(cli: Cli, group: str) -> Any:
    return cli.ok("group", "lag", group, "--partitions", "--output", "json").data[0]["lag"]


@pytest.fixture
def written(cli: Cli, cluster: str, topic: str, name: str) -> str:
    """Two committed records and a marker (0, 1, 2), an aborted record and a marker (3, 4)."""
    writer = writer_of(cluster, name)
    write(writer, topic, "one", "two")
    writer.commit_transaction(60)
    write(writer, topic, "never")
    writer.abort_transaction(60)
    return topic


def test_a_group_that_has_read_everything_has_no_lag(cli: Cli, cluster: str, written: str, name: str) -> None:
    commit_by_hand(cluster, name, written, 2)
    assert lag(cli, name) == 0
    described = cli.ok("group", "describe", name, "--output", "json").data[0]
    assert described["lag"] == 0
    assert (described["offsets"][0]["committed_offset"], described["offsets"][0]["end_offset"]) == (2, 5)


def test_a_record_between_markers_is_lag(cli: Cli, cluster: str, written: str, name: str) -> None:
    commit_by_hand(cluster, name, written, 1)
    assert lag(cli, name) == 4  # in offsets: a record, its marker, an aborted record, its marker
    cli.ok("produce", written, "three", "-p", "0", "-q")
    commit_by_hand(cluster, name, written, 2)
    assert lag(cli, name) == 4


def test_records_of_an_open_transaction_are_lag(cli: Cli, cluster: str, written: str, name: str) -> None:
    commit_by_hand(cluster, name, written, 2)
    writer = writer_of(cluster, f"{name}-open")
    write(writer, written, "soon")
    assert lag(cli, name) == 4
    writer.commit_transaction(60)
    assert lag(cli, name) == 5


def test_consume_commits_past_what_cannot_be_read(cli: Cli, written: str, name: str) -> None:
    assert cli.ok("consume", written, "-g", name, "-e").lines == ["one", "two"]
    described = cli.ok("group", "describe", name, "--output", "json").data[0]
    assert described["offsets"][0]["committed_offset"] == 5


def test_a_count_of_offsets_is_called_one(cli: Cli, written: str) -> None:
    assert "records     at most 5" in cli.ok("topic", "describe", written).out
    assert "RECORDS (MAX)" in cli.ok("topic", "offsets", written).lines[0]
    assert "delete at most 5 records" in cli("topic", "trim", written, "--to", "end").err
    assert "with at most 5 records?" in cli("topic", "delete", written).err
