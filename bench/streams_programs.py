"""What the lines about streams run, and what they feed it: the same programs as `java/StreamsLoad.java` and
`quix_application.py` have, and records that are made before the clock starts.

Results are text or JSON. The last number in a value is a count: whoever reads them knows whether all was counted.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bench import frames
from ottla.kernel.encode import BatchEncoder, partition_for_key

if TYPE_CHECKING:
    from ottla.streams import Topology

PARTITIONS = 4
WORDS, WORDS_PER_LINE = 10_000, 3
ROW_KEYS = 10_000
WINDOW_KEYS, WINDOW_MS, GRACE_MS = 1_000, 10_000, 10_000
BATCH_BYTES = 64 * 1024
Row = tuple[int, bytes | None, bytes, int]  # partition, key, value, time in ms


class Feed:
    """Records of one program, in turns of any size; times go on where the last turn ended."""

    def __init__(self, rows: Callable[[int, int], Row], counted_each: float) -> None:
        self._rows = rows
        self._next = 0
        self._started_ms = int(time.time() * 1000) - 3_600_000
        self._counted_each = counted_each

    def row(self, number: int) -> Row:
        return self._rows(number, self._started_ms)

    def requests(self, topic_id: bytes, count: int) -> Iterator[bytes]:
        rows = [self.row(number) for number in range(self._next, self._next + count)]
        self._next += count
        slots, keys, values, times = zip(*rows, strict=True)
        encoder = BatchEncoder(batch_bytes=BATCH_BYTES, transactional=False)
        columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), None, pa.array(times, pa.int64())
        for slot, batch, _ in [*encoder.append(array("i", slots), *columns), *encoder.finish()]:
            yield frames.produce(topic_id, slot, bytes(batch))

    @property
    def counted(self) -> int:
        """What the counts of all records add up to."""
        return int(self._next * self._counted_each)


def lines_feed() -> Feed:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(WORDS)]

    def row(number: int, start_ms: int) -> Row:
        return number % PARTITIONS, None, " ".join(chance.choices(words, k=WORDS_PER_LINE)).encode(), start_ms + number

    return Feed(row, WORDS_PER_LINE)


def window_feed() -> Feed:
    """A record for each millisecond: a window has ten of each key."""
    keys = _keys(WINDOW_KEYS)

    def row(number: int, start_ms: int) -> Row:
        partition, key = keys[number * 7 % len(keys)]
        return partition, key, b"x" * 20, start_ms + number

    return Feed(row, 1)


def rows_feed() -> Feed:
    """Rows of JSON, of which a filter takes every second one."""
    keys = _keys(ROW_KEYS)

    def row(number: int, start_ms: int) -> Row:
        partition, key = keys[number // 2 % len(keys)]
        return partition, key, b'{"item":"item%d","amount":%d}' % (number % 97, 5 + number % 2 * 10), start_ms + number

    return Feed(row, 0.5)


def keyed_feed(count: int) -> Feed:
    """Each key once, then any of them."""
    keys = _keys(count)
    chance = random.Random(1)

    def row(number: int, start_ms: int) -> Row:
        partition, key = keys[number] if number < count else chance.choice(keys)
        return partition, key, b"x" * 20, start_ms

    return Feed(row, 1)


def _keys(count: int) -> list[tuple[int, bytes]]:
    keys = [b"key%07d" % number for number in range(count)]
    return [(partition_for_key(key, PARTITIONS), key) for key in keys]


def counted_in(value: bytes) -> list[bytes]:
    """The words of a result, of which the last is a count."""
    return value.rstrip(b"}").replace(b":", b" ").split()


@dataclass(frozen=True)
class Program:
    name: str
    topology: Callable[[str, str], Topology]
    records: int  # of a round, at full scale
    feed: Callable[[], Feed]


def words(source: str, target: str) -> Topology:
    from ottla.streams import StreamsBuilder, serdes

    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    split = builder.stream(source).flat_map_values(str.split)
    split.group_by(lambda key, word: word).count(store="counts").to_stream().map_values(str).to(target)
    return builder.build()


def windows(source: str, target: str) -> Topology:
    from ottla.streams import StreamsBuilder, TimeWindows, serdes

    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    counts = builder.stream(source).group_by_key().windowed_by(TimeWindows.of(WINDOW_MS, grace=GRACE_MS)).count()
    counts.to_stream().map(lambda window, count: (window.key, f"{window.window.start} {count}")).to(target)
    return builder.build()


def rows(source: str, target: str) -> Topology:
    """All of it on columns, as `describe()` says."""
    from ottla.streams import StreamsBuilder, serdes, sql

    builder = StreamsBuilder(key=serdes.string)
    orders = builder.stream(source, value=serdes.row("item STRING, amount BIGINT"))
    large = orders.filter(sql("amount > 10 AND item IS NOT NULL"))
    large.group_by_key().aggregate(sql("count(*) AS n"), store="rows").to_stream().to(target)
    return builder.build()


def counts(source: str, target: str) -> Topology:
    from ottla.streams import StreamsBuilder, serdes

    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(source).group_by_key().count(store="counts").to_stream().map_values(str).to(target)
    return builder.build()


def latest(source: str, target: str) -> Topology:
    from ottla.streams import StreamsBuilder, serdes

    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(source).group_by_key().reduce(lambda before, after: after, store="latest").to_stream().to(target)
    return builder.build()


WORD_COUNT = Program("words", words, 300_000, lines_feed)
WINDOWED_COUNT = Program("windows", windows, 600_000, window_feed)
NATIVE_COUNT = Program("native", rows, 600_000, rows_feed)
LATEST = Program("latest", latest, 0, lines_feed)


def counts_of(keys: int) -> Program:
    return Program("counts", counts, 300_000, lambda: keyed_feed(keys))
