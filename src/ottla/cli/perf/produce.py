"""`ottla perf produce`: how fast a topic takes records, and how long each waits for its acknowledgement."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Iterator
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.error_sentences import sentence
from ottla.cli.name_completion import complete_topic
from ottla.cli.perf.report import ProgressLine, Tally, report
from ottla.cli.produce import CODECS, acks_option
from ottla.cli.settings import RECORD_BYTES_MAX, Settings, at_least, command
from ottla.common.errors import OttlaError

PAYLOADS_MAX = 64
PAYLOAD_BYTES_MAX = 16 << 20
FLUSH_S_MAX = 60.0
POLL_EVERY = 64
_PIECE_BYTES = 1 << 20
# A letter for each byte.
_LETTERS = (string.ascii_letters.encode() * 5)[:256]


@command("produce")
@click.argument("topic", shell_complete=complete_topic)
@click.option("-n", "--count", type=at_least(1), default=100_000, help="How many records [100000].")
@click.option("--size", type=at_least(1, RECORD_BYTES_MAX), default=1000, help="Bytes of a value [1000].")
@click.option("--rate", type=at_least(0.1), help="Records per second [as fast as it goes].")
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", help="Codec of the batches [none].")
@acks_option
def produce(
    settings: Settings, topic: str, count: int, size: int, rate: float | None, compression: str, acks: str
) -> None:
    """Send COUNT records to TOPIC and measure; -X linger.ms=..., -X batch.size=... tune the producer."""
    cluster = Cluster(settings)
    cluster.topics([topic])
    producer = cluster.producer(
        {
            "acks": acks,
            "compression.type": compression,
            "linger.ms": "5",
            "queue.buffering.max.messages": "500000",
            "queue.buffering.max.kbytes": "262144",
        }
    )
    run = ProduceRun(cluster, producer, topic, size)
    try:
        run.send(count, rate)
    finally:
        run.finish(settings)


def payloads(size: int) -> list[bytes]:
    """Values of random letters, always the same ones: as many as do not take much memory, and at once."""
    chance = random.Random(size)
    count = max(1, min(PAYLOADS_MAX, PAYLOAD_BYTES_MAX // size))
    return [b"".join(_pieces(chance, size)).translate(_LETTERS) for _ in range(count)]


def _pieces(chance: random.Random, size: int) -> Iterator[bytes]:
    """Of what would be too large a number at once."""
    for at in range(0, size, _PIECE_BYTES):
        yield chance.randbytes(min(_PIECE_BYTES, size - at))


class ProduceRun:
    def __init__(self, cluster: Cluster, producer: Any, topic: str, size: int) -> None:
        self._cluster, self._producer, self._topic = cluster, producer, topic
        self._payloads = payloads(size)
        self._failure: Any = None

    def send(self, count: int, rate: float | None) -> None:
        self._tally, self._line = Tally(), ProgressLine(count)
        producer, topic, values, delivered = self._producer, self._topic, self._payloads, self._delivered
        for n in range(count):
            while True:
                try:
                    producer.produce(topic, values[n % len(values)], on_delivery=delivered)
                    break
                except BufferError:
                    self._serve(0.05)
            if rate is not None:
                self._pace((n + 1) / rate)
            elif n % POLL_EVERY == 0:
                self._serve(0)
        self._drain()

    def _pace(self, due_s: float) -> None:
        """Serves callbacks until the next record is due."""
        while (early_s := self._tally.began_s + due_s - time.perf_counter()) > 0:
            self._serve(min(early_s, 0.05))
        self._serve(0)

    def _serve(self, seconds: float) -> None:
        self._producer.poll(seconds)
        self._line.update(self._tally)
        self._cluster.check()

    def _drain(self) -> None:
        deadline = time.perf_counter() + FLUSH_S_MAX
        while len(self._producer) and time.perf_counter() < deadline:
            self._producer.flush(0.1)
            self._line.update(self._tally)
            self._cluster.check()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self._tally.records += 1
            self._tally.bytes += len(message)
            self._tally.latencies_ms.append(message.latency() * 1000)
        else:
            self._tally.failures += 1
            self._failure = error

    def finish(self, settings: Settings) -> None:
        """Also after Ctrl-C: what was measured until then."""
        self._tally.ended_s = time.perf_counter()
        self._line.clear()
        if self._tally.records:
            report(settings, self._tally)
        if self._failure is not None:
            raise OttlaError(sentence(self._failure, f"topic '{self._topic}'"))
