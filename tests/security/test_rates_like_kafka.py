"""What clients use, at random times and as fast as they may, told to Kafka's own Rate and to ours: the same waits."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ottla.security.rates import SampledRate
from tests.support.kafka_jars import class_path, java, require_kafka_libs

pytestmark = pytest.mark.jvm

LIMIT = 50_000.0
DEFAULT = 11, 1_000  # Kafka's quota.window.num and quota.window.size.seconds
WINDOWS = (DEFAULT, (2, 1_000), (3, 500), (5, 2_000))


class Client:
    """One that uses something and waits as it is told, or not."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        windows, is_patient = chance.choice(WINDOWS), chance.random() < 0.5
        rate, now_ms = SampledRate(*windows), chance.randrange(10**12)
        size_max = int(LIMIT * chance.choice((0.01, 0.1, 1, 5)))
        self.lines = [f"new {windows[0]} {windows[1]} {LIMIT}"]
        self.waits: list[int] = []
        for _ in range(200):
            size = chance.randint(1, size_max)
            rate.record(size, now_ms)
            wait_ms = rate.throttle_ms(LIMIT, now_ms)
            self.lines.append(f"{size} {now_ms}")
            self.waits.append(wait_ms)
            pause_ms = chance.choice((0, 1, chance.randrange(300), chance.randrange(2_000), chance.randrange(20_000)))
            now_ms += wait_ms + chance.randrange(3) if is_patient else pause_ms


def test_our_waits_are_those_of_kafka() -> None:
    clients = [Client(seed) for seed in range(300)]
    source = Path(__file__).parent / "KafkaRate.java"
    outcome = subprocess.run(
        [str(java()), "-cp", class_path(require_kafka_libs()), str(source)],
        input="\n".join(line for client in clients for line in client.lines),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert outcome.returncode == 0, outcome.stderr
    theirs = [int(line) for line in outcome.stdout.splitlines()]
    for seed, client in enumerate(clients):
        answers, theirs = theirs[: len(client.waits)], theirs[len(client.waits) :]
        # Both divide by the time and multiply by it again, in another order: a half may be rounded either way.
        assert answers == pytest.approx(client.waits, rel=0, abs=1), f"seed {seed}"
    assert not theirs
