"""Ctrl-C and SIGTERM in every verb, while its modules are imported and while it waits: no traceback, 130 and 143."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.cli.command_tree import verbs
from tests.cli.signal_at_import import SHARED

# What each verb asks of a broker, or of the server at URL, that takes the connection and says nothing. FOLDER is an
# empty one. With None a verb asks nobody, or serves: then another test interrupts it, or it is over at once.
WAITING: dict[tuple[str, ...], str | None] = {
    ("start",): None,
    ("produce",): "t value",
    ("consume",): "t",
    ("trace", "record"): "t 0 0",
    ("trace", "watch"): "FOLDER/process.toml",
    ("topic", "list"): "",
    ("topic", "describe"): "t",
    ("topic", "offsets"): "t",
    ("topic", "create"): "t",
    ("topic", "alter"): "t -c retention.ms=-1 -y",
    ("topic", "delete"): "t -y",
    ("topic", "trim"): "t --to start -y",
    ("group", "list"): "",
    ("group", "describe"): "g",
    ("group", "lag"): "g",
    ("group", "seek"): "g --to start -y",
    ("group", "delete"): "g -y",
    ("txn", "list"): "",
    ("txn", "describe"): "writer",
    ("txn", "find-hanging"): "",
    ("txn", "abort"): "u-0 -y",
    ("config", "get"): "topic t --all",
    ("config", "set"): "topic t retention.ms=-1",
    ("config", "unset"): "topic t retention.bytes",
    ("cluster", "info"): "",
    ("cluster", "health"): "",
    ("cluster", "up"): None,
    ("cluster", "down"): None,
    ("cluster", "status"): None,
    ("cluster", "start"): None,
    ("cluster", "restart"): None,
    ("cluster", "kill"): None,
    ("cluster", "pause"): None,
    ("cluster", "resume"): None,
    ("top",): "--once",
    ("monitor", "start"): None,
    ("log", "requests"): "--all",
    ("zookeeper", "start"): None,
    ("registry", "start"): None,
    ("console",): None,
    ("registry", "password"): None,
    ("connect", "start"): None,
    ("connect", "standalone"): None,
    ("connect", "list"): "--url URL",
    ("connect", "status"): "x --url URL",
    ("connect", "plugins"): "--url URL",
    ("connect", "create"): "x -c connector.class=Y --url URL",
    ("connect", "offsets"): "x --url URL",
    ("connect", "pause"): "x --url URL",
    ("connect", "resume"): "x --url URL",
    ("connect", "stop"): "x --url URL",
    ("connect", "restart"): "x --url URL",
    ("connect", "delete"): "x -y --url URL",
    ("schema", "list"): "--registry URL",
    ("schema", "get"): "x --registry URL",
    ("schema", "check"): "x /dev/null --registry URL",
    ("schema", "register"): "x /dev/null --registry URL",
    ("schema", "delete"): "x -y --registry URL",
    ("partition", "status"): "",
    ("partition", "move"): "t:0 --to 1 -y",
    ("partition", "elect"): "t",
    ("pipeline", "run"): None,
    ("pipeline", "list"): None,
    ("pipeline", "status"): None,
    ("pipeline", "stop"): None,
    ("pipeline", "check"): None,
    ("pipeline", "logs"): None,
    ("pipeline", "delete"): None,
    ("streams", "run"): None,
    ("streams", "describe"): None,
    ("streams", "list"): None,
    ("streams", "status"): None,
    ("streams", "logs"): None,
    ("streams", "stop"): None,
    ("streams", "delete"): None,
    ("streams", "switch"): None,
    ("security", "init"): None,
    ("security", "add-broker"): None,
    ("security", "add-client"): None,
    ("security", "renew"): None,
    ("security", "show"): None,
    ("user", "list"): "",
    ("user", "create"): "u --password-file /dev/null",
    ("user", "passwd"): "u --password-file /dev/null",
    ("user", "delete"): "u -y",
    ("acl", "list"): "",
    ("acl", "add"): "--allow User:u --operation read --topic t",
    ("acl", "remove"): "--allow User:u --operation read --topic t -y",
    ("quota", "describe"): "",
    ("quota", "set"): "producer_byte_rate=1 --user u",
    ("quota", "remove"): "producer_byte_rate --user u -y",
    ("perf", "produce"): "t -n 1",
    ("perf", "consume"): "t",
    ("perf", "e2e"): "t -n 1",
    ("log", "dump"): None,
    ("completion",): None,
}
PROCESS = """
name = "orders"

[[step]]
name = "placed"
topic = "orders"
id = "key"

[[step]]
name = "paid"
topic = "payments"
id = "key"
within = "10m"
"""
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def test_every_verb_is_here() -> None:
    assert set(WAITING) == set(verbs())


def test_none_is_heard_of_while_modules_are_imported() -> None:
    """Those that all verbs need, and each verb's own."""
    cases = [(["topic", "list"], module) for module in SHARED]
    cases += [([*path, "--help"], str(command.callback.__module__)) for path, command in verbs().items()]
    asked = [
        (words, module, signal.SIGINT if number % 2 else signal.SIGTERM) for number, (words, module) in enumerate(cases)
    ]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("signal_at_import.py")],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        env=Cli("127.0.0.1:1").variables(),
        timeout=300,
        check=True,
    )
    outcomes = dict(zip(((*words, module) for words, module, _ in asked), json.loads(done.stdout), strict=True))
    assert outcomes == {(*words, module): [STATUS[sent], ""] for words, module, sent in asked}


def wait_until_asleep(pid: int) -> None:
    """Python looks for a signal between two steps of its own: one that comes on its last way into the system call, a
    few microseconds, is heard of when the call returns. People press Ctrl-C once more then."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R":
        time.sleep(0.01)
    time.sleep(0.01)


@pytest.mark.parametrize(
    "sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=lambda sent: sent.name
)
@pytest.mark.parametrize("path", [path for path, line in WAITING.items() if line is not None], ids=" ".join)
def test_a_verb_that_waits_ends_when_told_to(path: tuple[str, ...], sent: signal.Signals, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        (tmp_path / "process.toml").write_text(PROCESS)
        line = str(WAITING[path]).replace("URL", f"http://{address}").replace("FOLDER", str(tmp_path))
        process = Cli(address).start(
            *path, *line.split(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        silent.settimeout(0.2)
        while process.poll() is None:
            try:
                connection, _ = silent.accept()
            except TimeoutError:
                continue
            with connection:
                connection.recv(1)
                wait_until_asleep(process.pid)
                process.send_signal(sent)
                out, err = process.communicate(timeout=60)
            break
        else:
            out, err = process.communicate()
    assert (process.returncode, out) == (STATUS[sent], b""), err
    assert b"Traceback" not in err
    assert err.decode().count("\n") <= 1, err  # at most a line of progress
