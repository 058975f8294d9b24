"""Topics are fetched by their ids where the broker knows them, and by their names elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")

from ottla.client.fetching import DataLoss, OffsetRange, fetch_ranges
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.errors import ErrorCode
from ottla.common.failures import Retriable
from ottla.common.ids import TopicId
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.record import Record, build_batch
from tests.support.scripted_broker import ScriptedBroker

PLANNED, OTHER = TopicId(b"p" * 16), TopicId(b"o" * 16)


def answering(codes: list[int]) -> Any:
    """Errors, one after the other, and then a record."""

    def fetch(request: Any, version: int) -> Message:
        code = codes.pop(0) if codes else 0
        records = b"" if code else bytes(build_batch([Record(0, 1_000, None, b"x")]))
        row = m.FetchResponse.PartitionData(
            partition_index=0, error_code=code, high_watermark=1, last_stable_offset=1, records=records
        )
        (asked,) = request.topics
        topic = m.FetchResponse.FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id, partitions=[row])
        return m.FetchResponse(responses=[topic])

    return fetch


def read(broker: ScriptedBroker, topic_id: TopicId | None, patience_ms: int = 60_000) -> tuple[int, list[str]]:
    """How many answers there were, and what was said to be lost."""
    settings = ClientSettings(broker.bootstrap, api_timeout_ms=patience_ms, retry_backoff_ms=1, retry_backoff_max_ms=1)
    lost: list[str] = []
    with ClusterReader(settings) as reader:
        count = len(list(fetch_ranges(reader, [OffsetRange("t", 0, 0, 1, topic_id)], lost.append)))
    return count, lost


@pytest.mark.parametrize(
    ("topic_id", "versions", "name", "sent"),
    [
        (PLANNED, (4, 18), "", PLANNED),
        (PLANNED, (4, 12), "t", bytes(16)),
        (None, (4, 18), "t", bytes(16)),
    ],
)
def test_by_id_or_by_name(topic_id: TopicId | None, versions: tuple[int, int], name: str, sent: bytes) -> None:
    with ScriptedBroker(
        {"t": 1}, topic_ids={"t": PLANNED}, versions={"Fetch": versions}, Fetch=answering([])
    ) as broker:
        assert read(broker, topic_id) == (1, [])
        (asked,) = broker.asked["Fetch"][0].topics
    assert (asked.topic, bytes(asked.topic_id)) == (name, sent)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID])
def test_a_broker_that_does_not_know_the_id_yet_is_asked_again(code: ErrorCode) -> None:
    with ScriptedBroker({"t": 1}, topic_ids={"t": PLANNED}, Fetch=answering([code] * 3)) as broker:
        assert read(broker, PLANNED) == (1, [])


def test_an_id_that_stays_unknown_is_no_loss_while_the_cluster_has_the_topic() -> None:
    codes: list[int] = [ErrorCode.UNKNOWN_TOPIC_ID] * 10_000
    with (
        ScriptedBroker({"t": 1}, topic_ids={"t": PLANNED}, Fetch=answering(codes)) as broker,
        pytest.raises(Retriable, match="does not know topic t by its id"),
    ):
        read(broker, PLANNED, patience_ms=50)


def test_another_topic_of_the_name_is_a_loss_at_once() -> None:
    with ScriptedBroker({"t": 1}, topic_ids={"t": OTHER}, Fetch=answering([ErrorCode.UNKNOWN_TOPIC_ID])) as broker:
        assert read(broker, PLANNED) == (0, ["topic t was deleted and made anew before it was read."])
        assert len(broker.asked["Fetch"]) == 1


def test_whoever_wants_to_hear_of_losses_is_raised_to() -> None:
    def fail(sentence: str) -> None:
        raise DataLoss(sentence)

    with (
        ScriptedBroker({"t": 1}, topic_ids={"t": OTHER}, Fetch=answering([ErrorCode.UNKNOWN_TOPIC_ID])) as broker,
        ClusterReader(ClientSettings(broker.bootstrap)) as reader,
        pytest.raises(DataLoss, match="topic t was deleted and made anew"),
    ):
        list(fetch_ranges(reader, [OffsetRange("t", 0, 0, 1, PLANNED)], fail))
