"""An answer without records: what it means, and what it does not. Against a broker that answers as it is told."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")

from ottla.client.fetching import DataLoss, OffsetRange, fetch_ranges
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.failures import Retriable
from ottla.kernel.decode import Decoder
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.record import Record, build_batch
from tests.support.scripted_broker import ScriptedBroker

END = 10
EARLIEST_LOCAL = -4


class Log:
    """Partitions of 10 records each; where reading begins locally, and when records come are a test's to say."""

    def __init__(self) -> None:
        self.local_start = 0
        self.first = dict.fromkeys(range(4), 0)
        self.is_remote_ready = True
        self.throttled_answers = 0
        self.end_offset = END

    def fetch(self, request: Any, version: int) -> Message:
        if self.throttled_answers:
            self.throttled_answers -= 1
            return m.FetchResponse(throttle_time_ms=5)
        rows, has_remote = [], False
        for asked in request.topics[0].partitions:
            wanted = max(asked.fetch_offset, self.first[asked.partition])
            records = b""
            is_remote = asked.fetch_offset < self.local_start
            if wanted < END and not (is_remote and (has_remote or not self.is_remote_ready)):
                records = bytes(build_batch([Record(wanted, 1_000, None, b"%d" % wanted)]))
                has_remote |= is_remote
            row = m.FetchResponse.PartitionData(
                partition_index=asked.partition,
                high_watermark=self.end_offset,
                last_stable_offset=self.end_offset,
                records=records,
            )
            rows.append(row)
        return m.FetchResponse(
            responses=[m.FetchResponse.FetchableTopicResponse(topic=request.topics[0].topic, partitions=rows)]
        )

    def offsets(self, request: Any, version: int) -> Message:
        rows = []
        for asked in request.topics[0].partitions:
            assert asked.timestamp == EARLIEST_LOCAL
            rows.append(
                m.ListOffsetsResponse.ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index, offset=self.local_start
                )
            )
        topic = m.ListOffsetsResponse.ListOffsetsTopicResponse(name=request.topics[0].name, partitions=rows)
        return m.ListOffsetsResponse(topics=[topic])


@pytest.fixture
def log() -> Log:
    return Log()


def broker_of(log: Log, **versions: tuple[int, int]) -> ScriptedBroker:
    return ScriptedBroker({"t": 4}, versions=versions, Fetch=log.fetch, ListOffsets=log.offsets)


def read(broker: ScriptedBroker, *partitions: int, end: int = END, patience_ms: int = 60_000) -> dict[int, list[int]]:
    settings = ClientSettings(broker.bootstrap, api_timeout_ms=patience_ms, retry_backoff_ms=1, retry_backoff_max_ms=1)
    found: dict[int, list[int]] = {}

    def fail(sentence: str) -> None:
        raise DataLoss(sentence)

    with ClusterReader(settings) as reader:
        for one in fetch_ranges(reader, [OffsetRange("t", index, 0, end) for index in partitions], fail):
            decoder = Decoder(one.records, one.start, one.range.end, one.aborted)
            while (columns := decoder.next_columns()) is not None:
                found.setdefault(one.range.partition, []).extend(columns[2].to_pylist())
    return found


def test_what_is_read_from_far_away_is_waited_for(log: Log) -> None:
    """Kafka with tiered storage answers with nothing when the remote read takes longer than the fetch may."""
    log.local_start, log.is_remote_ready = END, False
    with broker_of(log) as broker:
        empty = iter(range(5))

        def fetch(request: Any, version: int) -> Message:
            log.is_remote_ready = next(empty, None) is None
            return log.fetch(request, version)

        broker.answers["Fetch"] = fetch
        assert read(broker, 0) == {0: list(range(END))}


def test_partitions_that_keep_each_other_from_being_read_are_asked_for_alone(log: Log) -> None:
    """Where one answer has one remote read, and that one fails each time, the others never come."""
    log.local_start = END

    def fetch(request: Any, version: int) -> Message:
        log.is_remote_ready = len(request.topics[0].partitions) == 1
        return log.fetch(request, version)

    with broker_of(log) as broker:
        broker.answers["Fetch"] = fetch
        assert read(broker, 0, 1, 2) == {index: list(range(END)) for index in range(3)}


def test_what_was_cleaned_away_up_to_the_end_of_the_log_ends_the_range_at_once(log: Log) -> None:
    log.first[1] = END
    with broker_of(log) as broker:
        assert read(broker, 0, 1, patience_ms=1) == {0: list(range(END))}
        assert read(broker, 1, patience_ms=1) == {}


def test_what_was_cleaned_away_before_something_else_ends_the_range_with_that(log: Log) -> None:
    log.first[0] = 8
    with broker_of(log) as broker:
        assert read(broker, 0, end=7) == {}
        assert len(broker.asked["Fetch"]) == 1


def test_a_broker_from_before_tiers_has_all_of_its_log(log: Log) -> None:
    log.first[0] = END
    with broker_of(log, ListOffsets=(1, 7)) as broker:
        assert read(broker, 0, patience_ms=1) == {}
        assert not broker.asked["ListOffsets"]


def test_a_broker_that_throttles_is_asked_again(log: Log) -> None:
    log.throttled_answers = 3
    with broker_of(log) as broker:
        assert read(broker, 0, 1) == {0: list(range(END)), 1: list(range(END))}


@pytest.mark.parametrize("is_behind", [True, False])
def test_patience_ends_with_a_sentence_and_never_with_a_gap(log: Log, is_behind: bool) -> None:
    log.local_start, log.is_remote_ready = END, False
    log.end_offset = 3 if is_behind else END
    with broker_of(log) as broker, pytest.raises(Retriable, match=r"partition t-0 .* no record at 0 yet"):
        read(broker, 0, patience_ms=50)
