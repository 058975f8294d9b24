"""Where reading begins or ends: `earliest`, `latest`, offsets by partition, or a time, as Spark's options say it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.client.lookup import EARLIEST, LATEST, NO_OFFSET, ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition

Offsets = dict[TopicPartition, int]
_WORDS = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True)
class Positions:
    """One of three: a word or a time for every partition, or offsets or times by partition."""

    option: str
    word: int | None = None
    time_ms: int | None = None
    by_partition: Mapping[TopicPartition, int] | None = None
    are_times: bool = False
    # Where a time is later than all records: read from the end, instead of an error.
    latest_if_later: bool = False

    def resolve(self, reader: ClusterReader, partitions: Sequence[TopicPartition]) -> Offsets:
        """The offset in each of these partitions now. Raises OttlaError."""
        if self.word is not None:
            return reader.offsets(dict.fromkeys(partitions, self.word))
        if self.time_ms is not None:
            return self._at_times(reader, dict.fromkeys(partitions, self.time_ms))
        wanted = dict(self.by_partition or {})
        self._check_all_named(wanted, partitions)
        if self.are_times:
            return self._at_times(reader, wanted)
        symbolic = {partition: offset for partition, offset in wanted.items() if offset in (EARLIEST, LATEST)}
        return wanted | reader.offsets(symbolic)

    def _check_all_named(self, wanted: Mapping[TopicPartition, int], partitions: Sequence[TopicPartition]) -> None:
        missing, surplus = sorted(set(partitions) - set(wanted)), sorted(set(wanted) - set(partitions))
        if missing:
            raise OttlaError(
                f"the option {self.option} names some partitions but not {missing[0]}: name every partition that is "
                "read, with -2 for its earliest offset and -1 for its latest."
            )
        if surplus:
            raise OttlaError(f"the option {self.option} names partition {surplus[0]}, which is not among those read.")

    def _at_times(self, reader: ClusterReader, times: Offsets) -> Offsets:
        found = reader.offsets(times)
        later = [partition for partition, offset in found.items() if offset == NO_OFFSET]
        if later and not self.latest_if_later:
            raise OttlaError(
                f"partition {later[0]} has no record as late as {times[later[0]]}, which {self.option} asks for: "
                "set startingOffsetsByTimestampStrategy to latest to begin at its end."
            )
        return found | reader.offsets(dict.fromkeys(later, LATEST))


def parse_offsets(option: str, text: str, forbidden: Mapping[int, str]) -> Positions:
    """`earliest`, `latest` or JSON. `forbidden` says why EARLIEST or LATEST makes no sense here."""
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        if word in forbidden:
            raise OttlaError(f"the option {option} cannot be {text.strip().lower()}: {forbidden[word]}.")
        return Positions(option, word=word)
    offsets = parse_by_partition(option, text, least=EARLIEST)
    for partition, offset in offsets.items():
        if offset in forbidden:
            raise OttlaError(
                f"the option {option} cannot have {offset} for partition {partition}: {forbidden[offset]}."
            )
    return Positions(option, by_partition=offsets)


def parse_by_partition(option: str, text: str, least: int) -> Offsets:
    """`{"orders": {"0": 23, "1": -2}}`."""
    shape = f'the option {option} wants JSON such as {{"orders": {{"0": 23, "1": 4}}}}, not \'{text}\'.'
    try:
        topics = json.loads(text)
        pairs = [
            (TopicPartition(topic, int(name)), value) for topic, row in topics.items() for name, value in row.items()
        ]
    except (ValueError, AttributeError):
        raise OttlaError(shape) from None
    for partition, value in pairs:
        if not isinstance(value, int) or isinstance(value, bool) or partition.partition < 0:
            raise OttlaError(shape)
        if not least <= value < 2**63:
            raise OttlaError(f"the option {option} has {value} for partition {partition}, which is not a valid value.")
    if not pairs:
        raise OttlaError(shape)
    return dict(pairs)
