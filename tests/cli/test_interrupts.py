"""Ctrl-C and SIGTERM in verbs that go on by themselves, and inside librdkafka's callbacks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from ottla.cli import interrupts
from ottla.cli.connection import Cluster
from ottla.cli.settings import Settings
from tests.cli.command import Cli
from tests.cli.test_pipes_and_signals import wait_for

# Each goes on until it is stopped; "reads" has begun when it prints, "writes" when there are records.
ENDLESS = {
    "produce TOPIC -F /dev/zero -D \\x00 -q": "writes",
    "consume TOPIC": "reads",
    "consume TOPIC -g GROUP": "reads",
    "perf produce TOPIC -n 100000000 --size 10": "writes",
    "perf produce TOPIC --rate 500": "writes",
    "perf e2e TOPIC -n 100000000": "writes",
    "group lag -w --interval 0.1": "reads",
    "cluster health -w --interval 0.1": "reads",
    "pipeline list -w --interval 0.1 --data-dir FOLDER": "reads",
}


@pytest.mark.parametrize("line", ENDLESS)
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_verb_that_goes_on_by_itself_ends_when_told_to(
    cli: Cli, topic: str, name: str, tmp_path: Path, line: str, sent: signal.Signals, status: int
) -> None:
    words = line.replace("TOPIC", topic).replace("GROUP", name).replace("FOLDER", str(tmp_path)).split()
    if ENDLESS[line] == "reads":
        cli.ok("produce", topic, "one", "-q")
    process = cli.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    if ENDLESS[line] == "reads":
        process.stdout.readline()
    else:
        wait_for(lambda: process.poll() is not None or end_of(cli, topic) > 100, seconds=60)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert err.decode().count("\n") <= 1, err  # at most a line of progress


def end_of(cli: Cli, topic: str) -> int:
    return sum(one["end_offset"] for one in cli.ok("topic", "offsets", topic, "--output", "json").data)


@pytest.mark.parametrize(("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
@pytest.mark.parametrize("serve", [lambda producer: producer.poll(30), lambda producer: producer.flush(30)])
def test_a_signal_in_a_callback_waits_until_librdkafka_is_left(
    cluster: str, topic: str, sent: signal.Signals, raised: type[BaseException], serve: Callable[[Any], Any]
) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    interrupts.install()
    try:
        producer = Cluster(Settings(bootstrap=cluster)).producer({"linger.ms": 50})
        called = 0

        def delivered(error: Any, message: Any) -> None:
            nonlocal called
            os.kill(os.getpid(), sent)
            called += 1

        for _ in range(10):
            producer.produce(topic, "v", partition=0, on_delivery=delivered)
        with pytest.raises(raised):
            serve(producer)
        while len(producer):
            try:
                producer.poll(0.1)
            except raised:
                pass
        assert called == 10
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@pytest.mark.parametrize("kind", [AdminClient, Consumer, Producer])
def test_no_call_of_librdkafka_is_reached_into(kind: type[Any]) -> None:
    """An administrative request touches the future of its answer, which is Python's: a signal there made it fail."""
    held = interrupts.uninterrupted(kind)
    calls = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert {name for name in calls if getattr(held, name) is getattr(kind, name)} == calls & {"produce"}


def test_a_signal_in_any_call_comes_when_it_is_over() -> None:
    class Client:
        def ask(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            self.is_done = True

    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    interrupts.install()
    try:
        client = interrupts.uninterrupted(Client)()
        with pytest.raises(KeyboardInterrupt):
            client.ask()
        assert client.is_done
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
