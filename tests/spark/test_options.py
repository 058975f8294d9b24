"""The options of the source, and one clear sentence for each that is wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from ottla.client.lookup import EARLIEST, LATEST
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.source.options import KNOWN, parse_options

BASE = {"kafka.bootstrap.servers": "one:9092", "subscribe": "orders"}
SERVERS = {"kafka.bootstrap.servers": "one:9092"}


def test_the_defaults_are_those_of_sparks_connector() -> None:
    batch, stream = parse_options(BASE, is_streaming=False), parse_options(BASE, is_streaming=True)
    assert (batch.starting.word, batch.ending.word, stream.starting.word) == (EARLIEST, LATEST, LATEST)
    assert batch.fail_on_data_loss and not batch.include_headers
    assert stream.max_trigger_delay_ms == 15 * 60_000
    assert batch.topics == ("orders",)


def test_names_are_the_same_in_any_case() -> None:
    lower = {name.lower(): value for name, value in {**BASE, "failOnDataLoss": "FALSE"}.items()}
    assert not parse_options(lower, is_streaming=False).fail_on_data_loss


def test_several_topics_partitions_and_patterns() -> None:
    assert parse_options({**BASE, "subscribe": " a, b,a"}, is_streaming=False).topics == ("a", "b")
    assigned = parse_options({**SERVERS, "assign": '{"a": [1, 0]}'}, is_streaming=False).assigned
    assert assigned == (TopicPartition("a", 0), TopicPartition("a", 1))
    assert parse_options({**SERVERS, "subscribePattern": "a.*"}, is_streaming=False).pattern == "a.*"


def test_times_win_over_offsets_and_one_time_over_many() -> None:
    given = {**BASE, "startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}
    assert parse_options(given, is_streaming=False).starting.are_times
    assert parse_options({**given, "startingTimestamp": "7"}, is_streaming=False).starting.time_ms == 7


def test_options_that_tune_a_java_consumer_are_accepted() -> None:
    parse_options({**BASE, "kafkaConsumer.pollTimeoutMs": "1", "groupIdPrefix": "x"}, is_streaming=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (SERVERS, "none of them is given"),
        ({**BASE, "assign": '{"a": [0]}'}, "not both assign and subscribe"),
        ({**SERVERS, "subscribe": " , "}, "wants one or more topics"),
        ({**SERVERS, "subscribePattern": "("}, "not a regular expression"),
        ({**SERVERS, "subscribePattern": ""}, "wants a regular expression"),
        ({**SERVERS, "assign": "orders"}, "wants JSON such as"),
        ({**SERVERS, "assign": '{"a": [-1]}'}, "wants JSON such as"),
        ({**SERVERS, "assign": '{"a": ["x"]}'}, "wants JSON such as"),
        ({**SERVERS, "assign": "{}"}, "wants JSON such as"),
        ({**BASE, "startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({**BASE, "colour": "blue"}, "the source has no option colour"),
        ({**BASE, "startingOffsets": "latest"}, "a batch query that begins at the end reads nothing"),
        ({**BASE, "endingOffsets": "earliest"}, "a query that ends at the beginning reads nothing"),
        ({**BASE, "startingOffsets": "newest"}, "wants JSON such as"),
        ({**BASE, "startingOffsets": '{"orders": 5}'}, "wants JSON such as"),
        ({**BASE, "startingOffsets": '{"orders": {"0": "5"}}'}, "wants JSON such as"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -3}}'}, "has -3 for partition orders-0"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -1}}'}, "cannot have -1 for partition orders-0"),
        ({**BASE, "endingOffsets": '{"orders": {"0": -2}}'}, "cannot have -2 for partition orders-0"),
        ({**BASE, "startingTimestamp": "-5"}, "wants a whole number of 0 or more, not '-5'"),
        ({**BASE, "startingOffsetsByTimestamp": '{"orders": {"0": -5}}'}, "has -5 for partition orders-0"),
        ({**BASE, "startingOffsetsByTimestampStrategy": "guess"}, "error or latest, not 'guess'"),
        ({**BASE, "failOnDataLoss": "perhaps"}, "true or false, not 'perhaps'"),
        ({**BASE, "includeHeaders": "1"}, "true or false, not '1'"),
        ({**BASE, "minPartitions": "0"}, "wants a whole number of 1 or more, not '0'"),
        ({**BASE, "maxOffsetsPerTrigger": "many"}, "wants a whole number of 1 or more, not 'many'"),
        ({**BASE, "maxBytesPerTrigger": "much"}, "wants a number of bytes such as 268435456, 256m or 1g, not 'much'"),
        ({**BASE, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "more than maxOffsetsPerTrigger, 5"),
        ({**BASE, "maxTriggerDelay": "soon"}, "a duration such as 30s, 15m or 1h, not 'soon'"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(options: dict[str, str], words: str) -> None:
    with pytest.raises(OttlaError) as refused:
        parse_options(options, is_streaming=False)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name in KNOWN if name.startswith("ending")])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OttlaError, match=f"the option {name} is for batch queries"):
        parse_options({**BASE, name: "5"}, is_streaming=True)


@pytest.mark.parametrize(
    ("given", "bytes_max"),
    [
        ({}, 256 << 20),
        ({"maxBytesPerTrigger": "64m"}, 64 << 20),
        ({"maxBytesPerTrigger": "0"}, None),
        ({"maxOffsetsPerTrigger": "5"}, None),
        ({"maxOffsetsPerTrigger": "5", "maxBytesPerTrigger": "1000"}, 1000),
    ],
)
def test_batches_are_limited_by_bytes_unless_told_otherwise(given: dict[str, str], bytes_max: int | None) -> None:
    assert parse_options({**BASE, **given}, is_streaming=True).max_bytes_per_trigger == bytes_max
