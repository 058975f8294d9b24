"""Thousands of damaged frames and batches at a live broker, while a good client keeps working.

A failing run names its seed: `OTTLA_FUZZ_SEED=123 pytest tests/hostile/test_fuzz.py -m ''` plays the same frames again.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.records import batch as v2
from ottla.records.record import iterate_batches
from tests.hostile.conftest import TOPICS, make_topics
from tests.hostile.fuzz import Fuzzer, Shot
from tests.support.brokers import OttlaProcess
from tests.support.neighbour import Neighbour
from tests.support.process import is_readable
from tests.support.raw_client import ConnectionClosed, RawClient

pytestmark = pytest.mark.xdist_group("hostile")

PING = struct.pack(">ihhih", 10, 18, 0, 0x70696E67, -1)  # ApiVersions v0 with a correlation id of its own
PING_ID = b"ping"
ANSWER_S = 20.0
LATEST = -1
GROWTH_BYTES_MAX = 400 << 20


@pytest.fixture
def target(tmp_path: Path) -> Iterator[OttlaProcess]:
    with OttlaProcess(tmp_path / "victim", {"connections.max.idle.ms": "5000"}) as broker:
        make_topics(broker.bootstrap)
        yield broker


class Attacker:
    """Fires the shots of one seed over a changing connection."""

    def __init__(self, broker: OttlaProcess, seed: int) -> None:
        self.broker = broker
        self.fuzzer = Fuzzer(seed)
        self.fired = 0
        self._client: RawClient | None = None

    def fire(self, count: int) -> None:
        for _ in range(count):
            self._fire_one(self.fuzzer.shot())
            self.fired += 1
        self._hang_up()

    def _fire_one(self, shot: Shot) -> None:
        client = self._client or RawClient.to(self.broker.bootstrap, timeout_s=ANSWER_S)
        self._client = client
        try:
            client.sock.sendall(shot.wire + PING if shot.answered else shot.wire)
            if shot.answered:
                self._await_ping(client)
            elif self.fuzzer.rng.random() < 0.5:
                self._hang_up()
            else:  # take what is there, so that neither side fills up
                self._drain(client)
        except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
            self._hang_up()

    def _await_ping(self, client: RawClient) -> None:
        """Whatever the broker made of the shot, it answers what comes behind it, or closes."""
        while client.receive_frame()[:4] != PING_ID:
            pass

    def _drain(self, client: RawClient) -> None:
        while is_readable(client.sock.fileno(), 0):
            if not client.sock.recv(1 << 16):
                raise ConnectionClosed

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def attack(broker: OttlaProcess, seed: int, shots: int) -> None:
    attacker = Attacker(broker, seed)
    before = broker.rss_bytes()
    try:
        with Neighbour(broker):
            attacker.fire(shots)
        assert broker.running
        grown = broker.rss_bytes() - before
        assert grown < GROWTH_BYTES_MAX, f"the broker grew by {grown >> 20} MB"
        assert_no_surprises(broker)
        assert_logs_are_sound(broker)
    except BaseException:
        print(f"\nOTTLA_FUZZ_SEED={seed}: failed after {attacker.fired} shots\n{broker.log_tail(30)}")
        raise


def assert_no_surprises(broker: OttlaProcess) -> None:
    """Bad input is foreseen: a traceback in the log is a mistake of ours, though nobody noticed."""
    log = broker.log_tail(1_000_000)
    at = log.find("Traceback")
    assert at < 0, f"the broker was surprised:\n{log[max(0, at - 500) : at + 4000]}"


def assert_logs_are_sound(broker: OttlaProcess) -> None:
    """Every batch that made it into a log is whole, in its place, and matches its CRC."""
    with RawClient.to(broker.bootstrap) as client:
        for topic in TOPICS:
            offset = max(0, client.fetch(topic, 0, max_wait_ms=0).log_start_offset)
            while True:
                records = client.fetch(topic, offset, max_wait_ms=0).records or b""
                before = offset
                for position, header in iterate_batches(records):
                    assert header.last_offset >= offset
                    assert v2.compute_crc(records, position, header.size) == header.crc
                    offset = header.last_offset + 1
                if offset == before:
                    break


def ends(broker: OttlaProcess) -> dict[str, int]:
    """Not by a fetch from the beginning: a frame may have deleted what was there."""
    asked = m.ListOffsetsRequest
    row = asked.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topics = [asked.ListOffsetsTopic(name=topic, partitions=[row]) for topic in TOPICS]
    with RawClient.to(broker.bootstrap) as client:
        answer = client.call(asked(replica_id=-1, topics=topics), 7)
    return {topic.name: topic.partitions[0].offset for topic in answer.topics}


def seeds(first: int, count: int) -> list[int]:
    named = os.environ.get("OTTLA_FUZZ_SEED")
    return [int(named)] if named else list(range(first, first + count))


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_few_thousand_hostile_frames(target: OttlaProcess, seed: int) -> None:
    attack(target, seed, 1500)
    before = ends(target)
    target.kill()
    target.start()
    assert ends(target) == before, "what was stored survives"
    assert_logs_are_sound(target)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds(1000, 24))
def test_a_hundred_thousand_hostile_frames(target: OttlaProcess, seed: int) -> None:
    """Twenty-four seeds of five thousand."""
    started = time.monotonic()
    attack(target, seed, 5000)
    print(f"seed {seed}: 5000 shots in {time.monotonic() - started:.0f} s")
    before = ends(target)
    target.kill()
    target.start()
    assert ends(target) == before
    assert_logs_are_sound(target)
