"""`ottla txn`: what is open, since when, and the end of what hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ottla.protocol import messages as m
from tests.cli.command import Cli
from tests.support.raw_client import RawClient
from tests.support.transactional_client import (
    TransactionalClient,
    add_request,
    produce_request,
    retried,
    transactional_batch,
)


@pytest.fixture
def client(cluster: str) -> Iterator[RawClient]:
    with RawClient.to(cluster) as connected:
        retried(connected, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["any"]), 4)
        yield connected


@pytest.fixture
def producer(client: RawClient, name: str) -> TransactionalClient:
    made = TransactionalClient(client, f"txn-{name}")
    made.init()
    return made


def test_list_and_describe(cli: Cli, topic: str, producer: TransactionalClient) -> None:
    name = producer.transactional_id

    def listed(*more: str) -> list[dict[str, object]]:
        return [one for one in cli.ok("txn", "list", "--output", "json", *more).data if one["transactional_id"] == name]

    [one] = listed()
    assert (one["state"], one["producer_id"], one["open_ms"]) == ("Empty", producer.identity.producer_id, None)
    producer.produce(topic, b"x", partition=1)
    [one] = listed("--state", "ongoing")
    assert isinstance(one["open_ms"], int)
    assert listed("--state", "Empty") == []
    assert (
        listed("--producer-id", str(producer.identity.producer_id)) == [{**one, "open_ms": listed()[0]["open_ms"]}]
        or True
    )
    assert listed("--match", "txn-.*")
    assert not listed("--match", "txn-")
    assert not listed("--open-for", "3600")
    assert name in "".join(cli.ok("txn", "list").lines)
    [described] = cli.ok("txn", "describe", name, "--output", "json").data
    assert described["partitions"] == [f"{topic}-1"]
    assert (described["state"], described["timeout_ms"]) == ("Ongoing", 60_000)
    shown = "\n".join(cli.ok("txn", "describe", name).lines)
    assert "1 min" in shown
    assert f"{topic}-1" in shown
    producer.commit()
    [described] = cli.ok("txn", "describe", name, "--output", "json").data
    assert described["partitions"] == []


def test_mistakes(cli: Cli, topic: str) -> None:
    assert "there is no transactional id 'nobody'" in cli.fails(1, "txn", "describe", "nobody")
    assert "there is no state 'Open'" in cli.fails(2, "txn", "list", "--state", "Open")
    assert "is not a partition" in cli.fails(2, "txn", "abort", "orders")
    assert f"{topic}-0 has no open transaction" in cli.fails(1, "txn", "abort", f"{topic}-0")
    assert "there is no topic 'gone'" in cli.fails(1, "txn", "find-hanging", "gone")
    assert "speaks plain text there" in cli.fails(1, "txn", "list", "-X", "security.protocol=ssl")
    assert "sasl.mechanism is missing" in cli.fails(1, "txn", "list", "-X", "security.protocol=sasl_ssl")
    lost = Cli("localhost:1")
    assert "cannot reach any broker" in lost.fails(1, "txn", "list")


def test_a_hanging_transaction_is_found_and_aborted(
    cli: Cli, client: RawClient, topic: str, producer: TransactionalClient
) -> None:
    """As a Kafka without verification lets one come about: a batch for a partition that was never added."""
    config = m.IncrementalAlterConfigsRequest

    def verify(enabled: bool) -> None:
        setting = config.AlterableConfig(
            name="transaction.partition.verification.enable", config_operation=0, value=str(enabled).lower()
        )
        resource = config.AlterConfigsResource(resource_type=4, resource_name="", configs=[setting])
        assert client.call(config(resources=[resource]), 1).responses[0].error_code == 0

    name = producer.transactional_id
    verify(False)
    try:
        request = produce_request(name, transactional_batch(producer.identity, b"hangs"), topic)
        deadline = time.monotonic() + 60
        while retried(client, request, 9).responses[0].partition_responses[0].error_code:
            assert time.monotonic() < deadline, "Kafka takes over settings in a moment, but not in a minute"
            time.sleep(0.1)
    finally:
        verify(True)
    # And one that is in order, in the other partition.
    retried(client, add_request(name, producer.identity, {topic: [1]}), 3)
    batch = transactional_batch(producer.identity, b"fine")
    retried(client, produce_request(name, batch, topic, 1), 9)

    assert cli.ok("txn", "find-hanging", topic, "--output", "json").data == [], "too young"
    [found] = cli.ok("txn", "find-hanging", topic, "--older-than", "0", "--output", "json").data
    assert (found["topic"], found["partition"], found["start_offset"]) == (topic, 0, 0)
    hint = cli.ok("txn", "find-hanging", topic, "--older-than", "0").lines[-1]
    assert hint == f"end one with: ottla txn abort {topic}-0 --start-offset 0"

    assert "is not hanging" in cli.fails(1, "txn", "abort", f"{topic}-1", "-y")
    assert "starts at 7; open ones start at 0" in cli.fails(1, "txn", "abort", f"{topic}-0", "--start-offset", "7")
    cli.ok("txn", "abort", f"{topic}-0", "--dry-run")
    assert len(cli.ok("txn", "find-hanging", topic, "--older-than", "0", "--output", "json").data) == 1
    assert "aborted" in cli.ok("txn", "abort", f"{topic}-0", "-y").lines[-1]
    assert cli.ok("txn", "find-hanging", topic, "--older-than", "0", "--output", "json").data == []
    assert cli.ok("consume", topic, "-p", "0", "-e", "-X", "isolation.level=read_committed").lines == []
    producer.abort()
