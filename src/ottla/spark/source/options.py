"""The options of the source, under the names, defaults and rules of Spark's Kafka integration."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.lookup import EARLIEST, LATEST
from ottla.client.settings import PREFIX, ClientSettings, parse_settings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.source.gate import TOKEN
from ottla.spark.source.positions import Positions, parse_by_partition, parse_offsets
from ottla.spark.source.quantities import parse_bytes, parse_duration_ms

_SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
_ENDINGS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
# They tune Spark's use of a Java consumer. Ours retries by time, as kafka.default.api.timeout.ms says.
_WITHOUT_EFFECT = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)
KNOWN = (
    *_SUBSCRIPTIONS,
    *_ENDINGS,
    *_WITHOUT_EFFECT,
    "failOnDataLoss",
    "includeHeaders",
    "maxBytesPerTrigger",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
    "rangesOnly",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "wholePartitions",
)
_MAX_TRIGGER_DELAY = "15m"
# A backlog is worked off in steps of so many bytes: large enough that what a batch costs by itself does not count.
BYTES_PER_TRIGGER_DEFAULT = 256 * 1024 * 1024


@dataclass(frozen=True)
class SourceOptions:
    client: ClientSettings
    topics: tuple[str, ...]
    pattern: str | None
    assigned: tuple[TopicPartition, ...]
    starting: Positions
    ending: Positions
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_records_per_split: int | None
    # None: as many as there are.
    max_bytes_per_trigger: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    # Partitions are not cut, and those of the same number are read by the same task.
    has_whole_partitions: bool = False
    # A row for each range of offsets, and no records.
    ranges_only: bool = False


def parse_options(options: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """Raises OttlaError: one sentence about the first thing that is wrong."""
    given = _canonical(options)
    client = parse_settings(options)
    topics, pattern, assigned = _subscription(given)
    if is_streaming:
        for name in _ENDINGS:
            if name in given:
                raise OttlaError(f"the option {name} is for batch queries: a streaming query has no end.")
    least, most = _count(given, "minOffsetsPerTrigger"), _count(given, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OttlaError(f"minOffsetsPerTrigger is {least}, which is more than maxOffsetsPerTrigger, {most}.")
    return SourceOptions(
        client=client,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=_starting(given, is_streaming),
        ending=_ending(given),
        fail_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
        include_headers=includes_headers(options),
        min_partitions=_count(given, "minPartitions"),
        max_records_per_split=_count(given, "maxRecordsPerPartition"),
        max_bytes_per_trigger=_bytes_per_trigger(given),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=parse_duration_ms("maxTriggerDelay", given.get("maxTriggerDelay", _MAX_TRIGGER_DELAY)),
        has_whole_partitions=_boolean(given, "wholePartitions", default=False),
        ranges_only=gives_ranges(options),
    )


def includes_headers(options: Mapping[str, str]) -> bool:
    return _boolean(_canonical(options), "includeHeaders", default=False)


def gives_ranges(options: Mapping[str, str]) -> bool:
    return _boolean(_canonical(options), "rangesOnly", default=False)


def _canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Our options under their own spelling; Spark's names are the same in any case."""
    spelling = {name.lower(): name for name in KNOWN}
    given: dict[str, str] = {}
    for name, value in options.items():
        if name.lower().startswith(PREFIX) or name.lower() == TOKEN:
            continue
        if name.lower() not in spelling:
            close = difflib.get_close_matches(name.lower(), sorted(spelling), 1)
            hint = f": did you mean {spelling[close[0]]}?" if close else "."
            raise OttlaError(f"the source has no option {name}{hint}")
        given[spelling[name.lower()]] = str(value)
    return given


def _subscription(given: Mapping[str, str]) -> tuple[tuple[str, ...], str | None, tuple[TopicPartition, ...]]:
    named = [name for name in _SUBSCRIPTIONS if name in given]
    if len(named) != 1:
        found = f"not both {named[0]} and {named[1]}" if named else "none of them is given"
        raise OttlaError(f"what is read is said by one of subscribe, subscribePattern and assign: {found}.")
    text = given[named[0]].strip()
    if named[0] == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not topics:
            raise OttlaError("the option subscribe wants one or more topics, with commas between them.")
        return topics, None, ()
    if named[0] == "assign":
        return (), None, _assigned(text)
    try:
        re.compile(text)
    except re.error as error:
        raise OttlaError(f"the option subscribePattern is not a regular expression: {error}.") from None
    if not text:
        raise OttlaError("the option subscribePattern wants a regular expression.")
    return (), text, ()


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    shape = f"the option assign wants JSON such as {{\"orders\": [0, 1]}}, not '{text}'."
    try:
        pairs = [TopicPartition(topic, number) for topic, row in json.loads(text).items() for number in row]
    except (ValueError, AttributeError, TypeError):
        raise OttlaError(shape) from None
    if not pairs or not all(type(pair.partition) is int and pair.partition >= 0 for pair in pairs):
        raise OttlaError(shape)
    return tuple(sorted(set(pairs)))


def _starting(given: Mapping[str, str], is_streaming: bool) -> Positions:
    strategy = given.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise OttlaError(f"startingOffsetsByTimestampStrategy is error or latest, not '{strategy}'.")
    by_time = _by_time(given, "startingTimestamp", "startingOffsetsByTimestamp", latest_if_later=strategy == "latest")
    if by_time is not None:
        return by_time
    default = "latest" if is_streaming else "earliest"
    forbidden = {} if is_streaming else {LATEST: "a batch query that begins at the end reads nothing"}
    return parse_offsets("startingOffsets", given.get("startingOffsets", default), forbidden)


def _ending(given: Mapping[str, str]) -> Positions:
    by_time = _by_time(given, "endingTimestamp", "endingOffsetsByTimestamp", latest_if_later=True)
    if by_time is not None:
        return by_time
    forbidden = {EARLIEST: "a query that ends at the beginning reads nothing"}
    return parse_offsets("endingOffsets", given.get("endingOffsets", "latest"), forbidden)


def _by_time(
    given: Mapping[str, str], one_for_all: str, by_partition: str, *, latest_if_later: bool
) -> Positions | None:
    """Spark's order: one time for all wins over times by partition, and these over offsets."""
    if one_for_all in given:
        time_ms = _count(given, one_for_all, least=0)
        return Positions(one_for_all, time_ms=time_ms, latest_if_later=latest_if_later)
    if by_partition in given:
        times = parse_by_partition(by_partition, given[by_partition], least=0)
        return Positions(by_partition, by_partition=times, are_times=True, latest_if_later=latest_if_later)
    return None


def _bytes_per_trigger(given: Mapping[str, str]) -> int | None:
    """Whoever limits the number of offsets has chosen how large batches are."""
    if "maxBytesPerTrigger" in given:
        return parse_bytes("maxBytesPerTrigger", given["maxBytesPerTrigger"]) or None
    return None if "maxOffsetsPerTrigger" in given else BYTES_PER_TRIGGER_DEFAULT


def _count(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    if name not in given:
        return None
    text = given[name].strip()
    if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**63:
        raise OttlaError(f"the option {name} wants a whole number of {least} or more, not '{text}'.")
    return int(text)


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OttlaError(f"the option {name} is true or false, not '{text}'.")
    return text == "true"
