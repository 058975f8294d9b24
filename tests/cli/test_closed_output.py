"""Every verb with a stdout that takes nothing: a pipe nobody reads, none at all, a full disk.

A reader that went away has what it wanted: silence, and the status that there would have been. A stdout that cannot be
written is a failure in one sentence. None is ever a traceback, and what was asked for is done all the same.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Broker
from tests.cli.command import Cli
from tests.cli.command_tree import verbs

# A command line for each verb that prints something, quickly, on the broker below. FOLDER is an empty one.
EXAMPLES = {
    ("start",): "--listen 127.0.0.1:0 --data-dir FOLDER",
    ("produce",): "t value --dry-run",
    ("consume",): "t -e",
    ("trace", "record"): "--help",  # no record here has anything to follow
    ("trace", "watch"): "--help",  # needs a file
    ("topic", "list"): "",
    ("topic", "describe"): "t",
    ("topic", "offsets"): "t",
    ("topic", "create"): "t --if-not-exists",
    ("topic", "alter"): "t -c retention.ms=-1",
    ("topic", "delete"): "nothing --if-exists",
    ("topic", "trim"): "t --to start",
    ("group", "list"): "",
    ("group", "describe"): "g",
    ("group", "lag"): "g",
    ("group", "seek"): "g --to start --dry-run",
    ("group", "delete"): "g --dry-run",
    ("txn", "list"): "",
    ("txn", "describe"): "writer",
    ("txn", "find-hanging"): "",
    ("txn", "abort"): "u-0 --force --dry-run",
    ("config", "get"): "topic t --all",
    ("config", "set"): "topic t retention.ms=-1",
    ("config", "unset"): "topic t retention.bytes",
    ("cluster", "info"): "",
    ("cluster", "health"): "",
    ("cluster", "up"): "--help",  # processes that would stay
    ("cluster", "down"): "--help",
    ("cluster", "status"): "--help",
    ("cluster", "start"): "--help",
    ("cluster", "restart"): "--help",
    ("cluster", "kill"): "--help",
    ("cluster", "pause"): "--help",
    ("cluster", "resume"): "--help",
    ("top",): "--once",
    ("monitor", "start"): "--help",  # serves until it is told to stop
    ("log", "requests"): "--all --dry-run",
    ("zookeeper", "start"): "--help",  # becomes a server
    ("registry", "start"): "--help",  # serves until it is told to stop
    ("console",): "--help",  # serves until it is told to stop
    ("registry", "password"): "--help",  # reads stdin
    ("connect", "start"): "--help",  # these serve until they are told to stop
    ("connect", "standalone"): "--help",
    ("connect", "list"): "--help",  # these need a worker
    ("connect", "status"): "--help",
    ("connect", "plugins"): "--help",
    ("connect", "create"): "--help",
    ("connect", "offsets"): "x --reset --dry-run",
    ("connect", "pause"): "x --dry-run",
    ("connect", "resume"): "x --dry-run",
    ("connect", "stop"): "x --dry-run",
    ("connect", "restart"): "x --dry-run",
    ("connect", "delete"): "x --dry-run",
    ("schema", "list"): "--help",  # these need a registry
    ("schema", "get"): "--help",
    ("schema", "check"): "--help",
    ("schema", "register"): "--help",
    ("schema", "delete"): "x --dry-run",
    ("partition", "status"): "--help",  # what one broker does not know
    ("partition", "move"): "t:0 --to 1 --dry-run",
    ("partition", "elect"): "t",
    ("pipeline", "run"): "--help",  # Spark takes seconds
    ("pipeline", "list"): "--data-dir FOLDER",
    ("pipeline", "status"): "--help",
    ("pipeline", "stop"): "--help",
    ("pipeline", "check"): "--help",
    ("pipeline", "logs"): "--help",
    ("pipeline", "delete"): "--help",
    ("streams", "run"): "--help",
    ("streams", "describe"): "--help",
    ("streams", "list"): "--data-dir FOLDER",
    ("streams", "status"): "--help",
    ("streams", "logs"): "--help",
    ("streams", "stop"): "--help",
    ("streams", "delete"): "--help",
    ("streams", "switch"): "--help",
    ("security", "init"): "--help",  # tells on stderr, too, what it has made
    ("security", "add-broker"): "--help",  # these need what init makes
    ("security", "add-client"): "--help",
    ("security", "renew"): "--help",
    ("security", "show"): "--help",
    ("user", "list"): "",
    ("user", "create"): "--help",  # these read a password
    ("user", "passwd"): "--help",
    ("user", "delete"): "--help",
    ("acl", "list"): "--help",  # these need an authorizer
    ("acl", "add"): "--help",
    ("acl", "remove"): "--help",
    ("quota", "describe"): "",
    ("quota", "set"): "--help",
    ("quota", "remove"): "--help",
    ("perf", "produce"): "t -n 1",
    ("perf", "consume"): "t",
    ("perf", "e2e"): "t -n 1",
    ("log", "dump"): "FOLDER/t-0",
    ("completion",): "bash",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    from confluent_kafka import Producer

    with Broker(data_dir=tmp_path_factory.mktemp("data")) as broker:
        cli = Cli(broker.bootstrap_servers)
        broker.create_topic("t")
        cli.ok("produce", "t", "one", "two", "-q")
        cli.ok("consume", "t", "-g", "g", "-e")
        broker.create_topic("u")
        patient = {"transactional.id": "writer", "transaction.timeout.ms": 900_000}
        writer = Producer({"bootstrap.servers": broker.bootstrap_servers, **patient})
        writer.init_transactions(30)
        writer.begin_transaction()
        writer.produce("u", "open")
        writer.flush(30)
        yield broker
        writer.abort_transaction(60)


@contextmanager
def nobody_reads() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextmanager
def full_disk() -> Iterator[int]:
    full = os.open("/dev/full", os.O_WRONLY)
    yield full
    os.close(full)


def close(number: int) -> Callable[[], None]:
    """For `preexec_fn`, as `>&-` does it."""
    return lambda: os.close(number)


def ended(process: subprocess.Popen[bytes], until_ready: bool = False) -> tuple[int, str]:
    """Status and stderr. A broker is stopped as soon as it serves."""
    assert process.stderr is not None
    said = b""
    while until_ready and (line := process.stderr.readline()):
        said += line
        if line.startswith(b"ready"):
            process.terminate()
            break
    with process.stderr:
        said += process.stderr.read()
    return process.wait(60), said.decode()


def arguments_of(path: tuple[str, ...], broker: Broker, folder: Path) -> list[str]:
    place = str(broker.data_dir) if path == ("log", "dump") else str(folder)
    return [word.replace("FOLDER", place) for word in (*path, *EXAMPLES[path].split())]


def test_every_verb_has_an_example() -> None:
    assert set(EXAMPLES) == set(verbs())


@pytest.mark.parametrize("path", EXAMPLES, ids=" ".join)
def test_no_stdout_is_a_traceback(path: tuple[str, ...], broker: Broker, tmp_path: Path) -> None:
    cli, until_ready = Cli(broker.bootstrap_servers), path == ("start",)

    def started(folder: str, **more: Any) -> subprocess.Popen[bytes]:
        arguments = arguments_of(path, broker, tmp_path / folder)
        return cli.start(*arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    with nobody_reads() as unread, full_disk() as full:
        processes = [started("1", stdout=unread), started("2", stdout=full), started("3", preexec_fn=close(1))]
    gone, full_up, closed = [ended(process, until_ready) for process in processes]
    if until_ready:  # a broker serves, whoever listens to it
        assert [status for status, _ in (gone, full_up, closed)] == [0, 0, 0]
        assert "Traceback" not in gone[1] + full_up[1] + closed[1]
    else:
        assert gone == (0, "")
        assert full_up == (1, "ottla: cannot write to stdout: No space left on device.\n")
        assert closed == (1, "ottla: cannot write to stdout: Bad file descriptor.\n")


def test_a_pipe_that_nobody_reads_does_not_make_bad_news_good(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(bytes(100))
    with nobody_reads() as unread:
        process = Cli().start("log", "dump", str(tmp_path), stdout=unread, stderr=subprocess.PIPE)
    status, said = ended(process)
    assert status == 1
    assert "1 problem found" in said


def test_a_stdin_that_is_not_there_is_one_sentence(broker: Broker) -> None:
    cli = Cli(broker.bootstrap_servers)
    for arguments, sentence in (
        (("produce", "t"), "ottla: cannot read stdin: Bad file descriptor."),
        (("topic", "delete", "t"), "nothing was changed: add -y"),
    ):
        status, said = ended(cli.start(*arguments, preexec_fn=close(0), stderr=subprocess.PIPE))
        assert status == 1
        assert sentence in said
        assert "Traceback" not in said


@pytest.mark.parametrize("arguments", [("produce", "t", "v"), ("perf", "produce", "t", "-n", "1"), ("topic", "lst")])
def test_a_stderr_that_is_not_there_changes_nothing(broker: Broker, arguments: tuple[str, ...]) -> None:
    cli, expected = Cli(broker.bootstrap_servers), 2 if "lst" in arguments else 0
    with full_disk() as full:
        assert cli.start(*arguments, stderr=full, stdout=subprocess.DEVNULL).wait(60) == expected
    assert cli.start(*arguments, preexec_fn=close(2), stdout=subprocess.DEVNULL).wait(60) == expected
