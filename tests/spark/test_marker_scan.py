"""The scan for the last published batch comes to an end, also if the log ends earlier than it did a moment ago."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import FetchRequest, ListOffsetsRequest
from ottla.spark.sink.marker import read_marker


class ShrinkingTopic:
    """A cluster with a topic of markers that says it ends at 5 for a while, and holds nothing."""

    def __init__(self, code: ErrorCode, asked_in_vain: int) -> None:
        self.code = code
        self.asked_in_vain = asked_in_vain
        self.fetches = 0

    def leaders(self, topics: list[str]) -> dict[TopicPartition, int]:
        return {TopicPartition(topics[0], 0): 1}

    def broker(self, leader: int) -> Any:
        return self

    def close(self) -> None:
        self.asked_in_vain -= 1

    def call(self, request: Any, version_max: int | None = None) -> Any:
        if isinstance(request, ListOffsetsRequest):
            is_latest = request.topics[0].partitions[0].timestamp == -1
            row = SimpleNamespace(error_code=0, offset=5 if is_latest and self.asked_in_vain > 0 else 0)
            return SimpleNamespace(topics=[SimpleNamespace(partitions=[row])])
        assert isinstance(request, FetchRequest)
        self.fetches += 1
        assert self.fetches < 100, "it goes on for ever"
        row = SimpleNamespace(error_code=self.code, records=b"")
        return SimpleNamespace(responses=[SimpleNamespace(partitions=[row])])


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE])
def test_a_log_that_went_back_is_read_anew(code: ErrorCode) -> None:
    topic: Any = ShrinkingTopic(code, asked_in_vain=2)
    assert read_marker(topic, "markers", "query") is None
    assert topic.fetches == 2


def test_one_that_stays_out_of_step_is_an_error() -> None:
    topic: Any = ShrinkingTopic(ErrorCode.NONE, asked_in_vain=1_000)
    with pytest.raises(OttlaError, match="nothing at 0"):
        read_marker(topic, "markers", "query", retry_timeout_s=0.05)
