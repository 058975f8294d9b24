"""The command among other commands: pipes that close, Ctrl-C, terminals, and brokers that go away."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.cli.connection import Cluster
from ottla.cli.settings import Settings
from ottla.common.errors import OttlaError
from ottla.testing import Broker
from tests.cli.command import Cli


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_a_reader_that_has_enough_ends_the_command_quietly(cli: Cli, topic: str) -> None:
    cli.ok("produce", topic, "-q", stdin="".join(f"{n} {'x' * 200}\n" for n in range(20_000)))
    consuming = cli.start("consume", topic, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert consuming.stdout is not None
    assert consuming.stderr is not None
    assert consuming.stdout.readline()
    consuming.stdout.close()
    assert consuming.wait(30) == 0
    assert consuming.stderr.read() == b""
    consuming.stderr.close()


def test_ctrl_c_ends_consume_with_130_after_committing(cli: Cli, five: str, name: str) -> None:
    consuming = cli.start("consume", five, "-g", name, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert consuming.stdout is not None
    read = sorted(consuming.stdout.readline() for _ in range(5))
    assert read == [b"1\n", b"2\n", b"3\n", b"4\n", b"5\n"]
    consuming.send_signal(signal.SIGINT)
    _, err = consuming.communicate(timeout=30)
    assert consuming.returncode == 130
    assert err == b""
    described = cli.ok("group", "describe", name, "--output", "json").data[0]
    assert [one["committed_offset"] for one in described["offsets"]] == [3, 2]
    assert cli.ok("consume", five, "-g", name, "-e").out == ""


def test_a_pipe_that_closes_commits_only_what_was_read(cli: Cli, topic: str, name: str) -> None:
    cli.ok("produce", topic, "-q", "-p", "0", stdin="".join(f"{n} {'x' * 1000}\n" for n in range(5000)))
    consuming = cli.start("consume", topic, "-g", name, stdout=subprocess.PIPE)
    assert consuming.stdout is not None
    consuming.stdout.readline()
    consuming.stdout.close()
    assert consuming.wait(30) == 0
    first = int(cli.ok("consume", topic, "-g", name, "-n", "1").out.split()[0])
    assert first < 4000  # what did not fit the pipe comes again


def test_ctrl_c_ends_produce_with_130_after_sending_what_was_read(cli: Cli, topic: str) -> None:
    producing = cli.start("produce", topic, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert producing.stdin is not None
    producing.stdin.write(b"one\ntwo\n")
    producing.stdin.flush()
    wait_for(lambda: len(cli.ok("consume", topic, "-e").lines) == 2)
    producing.send_signal(signal.SIGINT)
    _, err = producing.communicate(timeout=30)
    assert producing.returncode == 130
    assert b"Traceback" not in err
    assert b"sent 2 records" in err


def test_sigterm_ends_with_143(cli: Cli, topic: str) -> None:
    cli.ok("produce", topic, "-q", "one")
    consuming = cli.start("consume", topic, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert consuming.stdout is not None
    assert consuming.stdout.readline() == b"one\n"
    consuming.terminate()
    _, err = consuming.communicate(timeout=30)
    assert consuming.returncode == 143
    assert err == b""


def run_on_a_terminal(cli: Cli, *arguments: str) -> bytes:
    """stdout is a terminal; what was written to it."""
    leader, follower = pty.openpty()
    process = cli.start(*arguments, stdout=follower, stderr=subprocess.DEVNULL)
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    process.wait(30)
    return written


def test_colour_is_for_terminals_only(cli: Cli, topic: str) -> None:
    assert b"\x1b[1mTOPIC" in run_on_a_terminal(cli, "topic", "list", topic)
    plain = Cli(cli.bootstrap, {"NO_COLOR": "1"})
    assert b"\x1b" not in run_on_a_terminal(plain, "topic", "list", topic)
    assert "\x1b" not in cli.ok("topic", "list", topic).out


def test_a_broker_that_goes_away_is_waited_for_with_a_notice() -> None:
    broker = Broker()
    broker.start()
    try:
        cli = Cli(broker.bootstrap_servers)
        cli.ok("topic", "create", "t")
        cli.ok("produce", "t", "-q", "before")
        consuming = cli.start("consume", "t", "-n", "2", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert consuming.stdout is not None
        assert consuming.stdout.readline() == b"before\n"
        broker.restart()
        cli.ok("produce", "t", "-q", "after")
        out, err = consuming.communicate(timeout=60)
        assert out == b"after\n"
        assert consuming.returncode == 0
        assert len(err.splitlines()) <= 1
    finally:
        broker.stop()


@pytest.mark.slow
def test_a_topic_that_is_deleted_ends_the_reading_of_it(cli: Cli, topic: str) -> None:
    cli.ok("produce", topic, "-q", "last")
    consuming = cli.start("consume", topic, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert consuming.stdout is not None
    assert consuming.stdout.readline() == b"last\n"
    cli.ok("topic", "delete", topic, "-y")
    out, err = consuming.communicate(timeout=60)
    assert (consuming.returncode, out) == (1, b"")
    assert err.decode() == f"ottla: topic '{topic}' was deleted.\n"


def test_a_broker_that_advertises_a_wrong_address_is_explained() -> None:
    with Broker({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        sentence = Cli(broker.bootstrap_servers).fails(1, "topic", "list")
    assert "says that its brokers are at 127.0.0.1:1" in sentence
    assert "advertised.listeners" in sentence


def test_a_wrong_address_is_explained_though_librdkafka_only_says_that_time_is_up() -> None:
    answer: Future[None] = Future()
    answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with Broker({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        cluster = Cluster(Settings(bootstrap=broker.bootstrap_servers))
        with pytest.raises(OttlaError, match=r"says that its brokers are at 127\.0\.0\.1:1"):
            cluster.wait(answer)
