"""Slow requests, and those of a client or a topic, in the broker's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ottla.protocol.messages import MetadataRequest
from ottla.testing import Broker
from tests.support.raw_client import RawClient, batch_of, fetch_request


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def _set(broker: Broker, **settings: str | None) -> None:
    _alter(broker, ResourceType.BROKER, {name.replace("_", "."): value for name, value in settings.items()})


def _alter(broker: Broker, kind: Any, settings: dict[str, str | None]) -> None:
    entries = [
        ConfigEntry(
            name,
            value or "",
            incremental_operation=AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE,
        )
        for name, value in settings.items()
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for answer in admin.incremental_alter_configs([ConfigResource(kind, "1", incremental_configs=entries)]).values():
        answer.result(60)


def _in_a_minute() -> str:
    return str(int((time.time() + 60) * 1_000))


def _client(broker: Broker, client_id: str) -> RawClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return RawClient(host, int(port), client_id=client_id)


def _lines(caplog: pytest.LogCaptureFixture, message: str = "request") -> list[Any]:
    return [record for record in caplog.records if record.getMessage() == message]


@pytest.fixture
def caplog_of_ottla(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Our loggers tell the root logger, where pytest listens, in some processes and not in others."""
    root = logging.getLogger("ottla")
    root.addHandler(caplog.handler)
    before = root.level, root.propagate
    root.setLevel(logging.INFO)
    root.propagate = False
    yield caplog
    root.removeHandler(caplog.handler)
    root.setLevel(before[0])
    root.propagate = before[1]


def test_requests_of_one_client_are_logged_with_their_topics_and_times(
    broker: Broker, caplog_of_ottla: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("logged")
    _set(broker, ottla_request_log="client=wanted", ottla_request_log_until_ms=_in_a_minute())
    with _client(broker, "wanted") as wanted, _client(broker, "other") as other:
        for client in (wanted, other):
            client.produce("logged", batch_of(b"x"))
            client.call(fetch_request([("logged", 0, 0)]), 12)
    lines = _lines(caplog_of_ottla)
    assert [line.api for line in lines] == ["Produce", "Fetch"]
    assert {line.client for line in lines} == {"wanted"}
    assert all(line.total_ms >= line.local_ms >= 0 for line in lines)
    _set(broker, ottla_request_log=None, ottla_request_log_until_ms=None)
    assert broker.server.broker.observer is None
    assert _lines(caplog_of_ottla, "requests are not logged any more")


def test_requests_that_name_a_topic_are_logged_also_by_its_id(
    broker: Broker, caplog_of_ottla: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("named")
    broker.create_topic("unnamed")
    _set(broker, ottla_request_log="topic=named", ottla_request_log_until_ms=_in_a_minute())
    with _client(broker, "any") as client:
        asked = [MetadataRequest.MetadataRequestTopic(name="named")]
        topic_id = bytes(client.call(MetadataRequest(topics=asked), 12).topics[0].topic_id)
        for _ in range(3):  # the second is known by its first bytes, and seen all the same
            client.produce("named", batch_of(b"x"))
        client.produce("unnamed", batch_of(b"x"))
        client.fetch(topic_id, version=13)
    _set(broker, ottla_request_log=None, ottla_request_log_until_ms=None)
    lines = _lines(caplog_of_ottla)
    assert [line.api for line in lines] == ["Metadata", "Produce", "Produce", "Produce", "Fetch"]
    assert {line.topics for line in lines} == {"named"}


def test_the_log_of_requests_ends_by_itself(caplog_of_ottla: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:
        until_ms = int((time.time() + 0.5) * 1_000)
        _set(broker, ottla_request_log="*", ottla_request_log_until_ms=str(until_ms))
        deadline = time.monotonic() + 60
        while broker.server.broker.observer is not None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        caplog_of_ottla.clear()
        with _client(broker, "any") as client:
            client.call(MetadataRequest(topics=[]), 9)
        assert not _lines(caplog_of_ottla)


def test_slow_requests_are_logged_and_those_that_wait_by_design_are_not(
    broker: Broker, caplog_of_ottla: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("quiet")
    _set(broker, ottla_slow_request_log_ms="200")
    with _client(broker, "any") as client:
        client.call(fetch_request([("quiet", 0, 0)], max_wait_ms=400), 12)
        assert not _lines(caplog_of_ottla, "slow request")
        _set(broker, ottla_slow_request_log_ms="0")
        client.produce("quiet", batch_of(b"x"))
    _set(broker, ottla_slow_request_log_ms=None)
    assert "Produce" in {line.api for line in _lines(caplog_of_ottla, "slow request")}


def test_a_filter_that_nobody_understands_is_refused(broker: Broker) -> None:
    with pytest.raises(Exception, match="client="):
        _set(broker, ottla_request_log="everything")


def test_it_ends_within_an_hour_whoever_asks_for_it(broker: Broker) -> None:
    in_two_hours = str(int((time.time() + 7_200) * 1_000))
    with pytest.raises(KafkaException, match="more than an hour ahead"):
        _set(broker, ottla_request_log="*", ottla_request_log_until_ms=in_two_hours)
    assert broker.server.broker.observer is None
    with Broker({"ottla.request.log": "*", "ottla.request.log.until.ms": in_two_hours}) as told_by_a_file:
        assert told_by_a_file.server.broker.observer is None
        _set(told_by_a_file, ottla_request_log_until_ms=_in_a_minute())
        assert told_by_a_file.server.broker.observer is not None
