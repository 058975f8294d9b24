"""`ottla perf e2e`: how long a record takes from produce() to consume(), at a steady rate.

One process sends and receives, so one clock measures. Each record carries the run's id and the time it was sent; others
in the topic are ignored. The first few records open connections and are not counted. A record that is sent
late because this machine was busy is measured from when it was sent.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.error_sentences import sentence
from ottla.cli.name_completion import complete_topic
from ottla.cli.perf.report import ProgressLine, Tally, report
from ottla.cli.produce import acks_option
from ottla.cli.records.positions import log_bounds
from ottla.cli.settings import RECORD_BYTES_MAX, Settings, at_least, command
from ottla.common.errors import OttlaError

STAMP = struct.Struct(">8sqq")  # run, number (below zero: warm-up), nanoseconds
WARM_UP = 20
ARRIVE_S_MAX = 15.0


@command("e2e")
@click.argument("topic", shell_complete=complete_topic)
@click.option("-n", "--count", type=at_least(1), default=5000, help="How many records [5000].")
@click.option("--rate", type=at_least(0.1), default=1000.0, help="Records per second [1000].")
@click.option("--size", type=at_least(STAMP.size, RECORD_BYTES_MAX), default=100, help="Bytes of a value [100].")
@acks_option
def e2e(settings: Settings, topic: str, count: int, rate: float, size: int, acks: str) -> None:
    """Send COUNT records to TOPIC at RATE, consume them, and measure how long each was on its way."""
    cluster = Cluster(settings)
    run = EndToEnd(cluster, topic, size, acks)
    try:
        run.warm_up()
        run.send(count, rate)
        run.await_arrivals(count)
    finally:
        run.close()
        run.line.clear()
        if run.tally.records:
            report(settings, run.tally)
    if run.tally.records < count:
        raise OttlaError(f"{count - run.tally.records:,} records did not arrive within {ARRIVE_S_MAX:.0f} s.")


class EndToEnd:
    def __init__(self, cluster: Cluster, topic: str, size: int, acks: str) -> None:
        from confluent_kafka import TopicPartition

        self._cluster, self._topic = cluster, topic
        self._run = os.urandom(8)
        self._padding = bytes(size - STAMP.size)
        bounds = log_bounds(cluster, [(topic, partition.id) for partition in cluster.topics([topic])[topic].partitions])
        self._producer = cluster.producer({"acks": acks, "linger.ms": "0"})
        self._consumer = cluster.consumer({"group.id": "ottla-cli", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(name, index, bound.end) for (name, index), bound in bounds.items()])
        self._warm = threading.Semaphore(0)
        self._stop = threading.Event()
        self._failure: Any = None
        self.tally, self.line = Tally(), ProgressLine(None)
        self._receiver = threading.Thread(target=self._receive, name="e2e-receiver", daemon=True)
        self._receiver.start()

    def warm_up(self) -> None:
        for number in range(-WARM_UP, 0):
            self._send_one(number)
            deadline = time.perf_counter() + ARRIVE_S_MAX
            while not self._warm.acquire(timeout=0.01):
                self._serve()
                if time.perf_counter() > deadline:
                    raise OttlaError(f"a record sent to '{self._topic}' did not arrive within {ARRIVE_S_MAX:.0f} s.")

    def send(self, count: int, rate: float) -> None:
        self.line = ProgressLine(count)
        self.tally.began_s = time.perf_counter()
        for number in range(count):
            early_s = self.tally.began_s + number / rate - time.perf_counter()
            if early_s > 0:
                time.sleep(early_s)
            self._send_one(number)
            self._serve()

    def await_arrivals(self, count: int) -> None:
        deadline = time.perf_counter() + ARRIVE_S_MAX
        while self.tally.records < count and time.perf_counter() < deadline:
            time.sleep(0.005)
            self._serve()

    def close(self) -> None:
        self._stop.set()
        self._receiver.join(5)
        self._consumer.close()

    def _send_one(self, number: int) -> None:
        stamp = STAMP.pack(self._run, number, time.perf_counter_ns())
        self._producer.produce(self._topic, stamp + self._padding, on_delivery=self._delivered)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = error

    def _serve(self) -> None:
        self._producer.poll(0)
        self.line.update(self.tally)
        if self._failure is not None:
            raise OttlaError(sentence(self._failure, f"topic '{self._topic}'"))
        if not self.tally.records:
            self._cluster.check()

    def _receive(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            now_ns = time.perf_counter_ns()
            if message is None:
                continue
            if (error := message.error()) is not None:
                self._failure = error
                return
            value = message.value() or b""
            if not value.startswith(self._run) or len(value) < STAMP.size:
                continue
            _, number, sent_ns = STAMP.unpack_from(value)
            if number < 0:
                self._warm.release()
                continue
            self.tally.records += 1
            self.tally.bytes += len(value)
            self.tally.latencies_ms.append((now_ns - sent_ns) / 1e6)
            self.tally.ended_s = time.perf_counter()
