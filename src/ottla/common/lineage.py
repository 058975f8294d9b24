"""The lineage header: which input an output record was made of, as sinks write it and a trace reads it.

    ottla-lineage: orders/0/1234 enrich/17             the record at offset 1234 of orders-0, by batch 17 of `enrich`
    ottla-lineage: orders/0/1234 word-count            the same of an application without numbered batches
    ottla-lineage: * totals/17 5f3a... orders/0/10-20  one of the records 10 to 19: a batch does not say which

No topic has a slash or a blank in its name. A batch names its offsets itself as long as they fit; where it has too many
partitions for that, the digest of their ends is what there is (the marker of the query has the same one).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

HEADER = "ottla-lineage"
# A header is repeated in every record; compression makes little of it, but not nothing.
RANGES_BYTES_MAX = 1024
_ANY = "*"


class Source(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class SourceRange(NamedTuple):
    """Offsets `start` <= x < `end`."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.start}-{self.end}"

    def has(self, topic: str, partition: int, offset: int) -> bool:
        return (self.topic, self.partition) == (topic, partition) and self.start <= offset < self.end


class Lineage(NamedTuple):
    query: str
    batch: int | None = None
    # Exactly this record; without it one of the ranges, if they are known.
    source: Source | None = None
    ranges: tuple[SourceRange, ...] = ()
    digest: str = ""


def exact(source: Source, query: str, batch: int | None = None) -> bytes:
    return f"{source} {writer_of(query, batch)}".encode()


def writer_of(query: str, batch: int | None) -> str:
    return query if batch is None else f"{query}/{batch}"


def of_batch(query: str, batch: int, digest: str, ranges: Iterable[SourceRange]) -> bytes:
    text = ",".join(str(source) for source in ranges)
    return f"{_ANY} {query}/{batch} {digest} {text if len(text) <= RANGES_BYTES_MAX else ''}".rstrip().encode()


Offsets = Mapping[str, Mapping[str, int]]


def ranges_between(before: Offsets, after: Offsets) -> list[SourceRange]:
    """What a batch has read, by the ends of the one before and its own, both as {topic: {partition: offset}}."""
    return [
        SourceRange(topic, int(partition), start, end)
        for topic, ends in sorted(after.items())
        for partition, end in sorted(ends.items(), key=lambda entry: int(entry[0]))
        if (start := before.get(topic, {}).get(partition, 0)) < end
    ]


def parse(value: bytes | None) -> Lineage | None:
    """None for what is not one of ours."""
    words = (value or b"").decode(errors="replace").split(" ")
    if not 2 <= len(words) <= 4:
        return None
    query, slash, number = words[1].rpartition("/")
    if not slash:
        query, number = words[1], ""
    if not query or (slash and not number.isdecimal()):
        return None
    batch = int(number) if slash else None
    if words[0] != _ANY:
        source = _source(words[0])
        return None if source is None else Lineage(query, batch, source)
    ranges = [_range(text) for text in words[3].split(",")] if len(words) > 3 else []
    if len(words) < 3 or None in ranges:
        return None
    return Lineage(query, batch, None, tuple(found for found in ranges if found is not None), words[2])


# Dead letters of pipelines and topologies have said where they come from all along.
DEAD_LETTER_OFFSET = "ottla.source.offset"
_DEAD_LETTER_PLACE = ("ottla.source.topic", "ottla.source.partition", DEAD_LETTER_OFFSET)
_DEAD_LETTER_WRITER = "ottla.pipeline"
REASON = "ottla.reason"


def lineage_in(headers: Sequence[tuple[str, bytes | None]]) -> Lineage | None:
    """What the headers of a record say it was made of.

    Headers are forwarded, and what a sink adds stands behind them: of two that name a record the later one counts."""
    own = {name: (value or b"").decode(errors="replace") for name, value in headers if name.startswith("ottla")}
    last = {name: number for number, (name, _) in enumerate(headers)}
    said = parse(own[HEADER].encode()) if HEADER in own else None
    place = _source("/".join(own.get(name, "") for name in _DEAD_LETTER_PLACE))
    if place is None or (said is not None and said.source is not None and last[HEADER] > last[DEAD_LETTER_OFFSET]):
        return said
    is_ours = said is not None and said.source is None
    return Lineage(own.get(_DEAD_LETTER_WRITER, "?"), said.batch if said is not None and is_ours else None, place)


def _source(text: str) -> Source | None:
    parts = text.split("/")
    if len(parts) != 3 or not parts[0] or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    return Source(parts[0], int(parts[1]), int(parts[2]))


def _range(text: str) -> SourceRange | None:
    parts = text.split("/")
    ends = parts[-1].split("-")
    if len(parts) != 3 or len(ends) != 2 or not all(number.isdecimal() for number in (parts[1], *ends)):
        return None
    return SourceRange(parts[0], int(parts[1]), int(ends[0]), int(ends[1]))
