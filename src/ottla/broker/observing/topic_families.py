"""Topics and their logs as metrics: traffic, sizes, offsets. How many have names of their own is bounded."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from ottla.broker.observing.named_topics import OTHER, NamedTopics
from ottla.common.steps import PIECE
from ottla.exposition.families import counters, gauges

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_PREFIX = "kafka_server_brokertopicmetrics_"
_TRAFFIC = (
    ("bytesin_total", "bytes_in", "Bytes of records that were appended where this broker leads."),
    ("messagesin_total", "records_in", "Records that were appended where this broker leads."),
    ("bytesout_total", "bytes_out", "Bytes of records that were sent to consumers."),
    ("failedproducerequests_total", "produces_failed", "Partitions of produce requests that were refused."),
    ("failedfetchrequests_total", "fetches_failed", "Partitions of fetch requests that were refused."),
)
_LOG = (
    ("kafka_log_log_size", "Bytes of the log on this broker's disk."),
    ("kafka_log_log_numlogsegments", "Segments of the log."),
    ("kafka_log_log_logstartoffset", "The first offset of the log."),
    ("kafka_log_log_logendoffset", "The next offset of the log."),
)


def topic_families(broker: Broker, named: NamedTopics, partitions_max: int) -> Generator[Metric | None, None, None]:
    counts = yield from named.look(broker.image.topics)
    for name, count, doc in _TRAFFIC:
        yield counters(_PREFIX + name, doc, ["topic"], {(topic,): its[count] for topic, its in counts.items()})
    yield from _log_families(broker, named, partitions_max)


def _log_families(broker: Broker, named: NamedTopics, partitions_max: int) -> Iterator[Metric | None]:
    values: dict[tuple[str, str], list[int]] = {}
    others = [0, 0]
    for number, (where, log) in enumerate(list(broker.logs.logs.items())):
        if number % PIECE == 0:
            yield None
        size, segments = log.size_bytes, len(log.segments)
        if where.topic in named and len(values) < partitions_max:
            values[where.topic, str(where.partition)] = [size, segments, log.log_start_offset, log.log_end_offset]
        else:
            others[0] += size
            others[1] += segments
    for place, (name, doc) in enumerate(_LOG):
        family: dict[tuple[str, ...], float] = {key: its[place] for key, its in values.items()}
        if place < len(others):  # offsets of several logs cannot be added up
            family[OTHER, ""] = others[place]
        yield gauges(name, doc, ["topic", "partition"], family)
        yield None
