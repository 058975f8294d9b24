"""`ottla cluster up` and its other verbs, and `ottla start --brokers`: whole clusters from one command."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli, Outcome
from tests.crash.load import wait_until
from tests.support.zookeeper import Zookeeper, why_no_zookeeper

# On a machine that others use as well.
pytestmark = pytest.mark.timeout(900)
QUICK = ("-X", "offsets.topic.num.partitions=2", "-X", "group.initial.rebalance.delay.ms=0")


@pytest.fixture(autouse=True)
def _needs_zookeeper() -> None:
    if (reason := why_no_zookeeper()) is not None:
        pytest.skip(reason)


def free_block(size: int) -> int:
    """The first of so many free ports in a row, below those that the system gives away by itself."""
    for _ in range(1000):
        first = random.randrange(15_000, 30_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + size):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


class Verbs:
    """`ottla cluster VERB --data-dir DIR`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base_port = free_block(5) + 1

    def __call__(self, verb: str, *arguments: str) -> Outcome:
        return Cli()("cluster", verb, *arguments, "--data-dir", self.folder, timeout_s=300)

    def ok(self, verb: str, *arguments: str) -> Outcome:
        outcome = self(verb, *arguments)
        assert outcome.status == 0, (outcome, self.logs())
        return outcome

    def fails(self, verb: str, *arguments: str) -> str:
        outcome = self(verb, *arguments)
        assert outcome.status == 1, outcome
        return outcome.err

    def up(self, brokers: int = 3) -> str:
        """The addresses that it prints, and nothing else."""
        outcome = self.ok("up", "--brokers", str(brokers), "--base-port", str(self.base_port), *QUICK)
        addresses = ",".join(f"127.0.0.1:{self.base_port + number}" for number in range(brokers))
        assert outcome.out == f"ready bootstrap={addresses}\n"
        return addresses

    def states(self) -> dict[Any, str]:
        return {row["id"]: row["state"] for row in self.rows()}

    def rows(self) -> list[Any]:
        found: list[Any] = self.ok("status", "--output", "json").data
        return found

    def logs(self) -> str:
        return "\n".join(path.read_text()[-1500:] for path in self.folder.glob("*/*.log"))


@pytest.fixture
def verbs(tmp_path: Path) -> Iterator[Verbs]:
    made = Verbs(tmp_path / "cluster")
    yield made
    if (made.folder / "cluster.json").exists():
        for row in made.rows():
            made("kill", str(row["id"]))


def test_a_cluster_comes_up_serves_goes_down_and_comes_back_with_its_data(verbs: Verbs) -> None:
    bootstrap = verbs.up()
    cli = Cli(bootstrap)
    assert [one["id"] for one in cli.ok("cluster", "info", "--output", "json").data["brokers"]] == [1, 2, 3]
    cli.ok("topic", "create", "t", "-p", "3", "-r", "3")
    cli.ok("produce", "t", "-q", "a", "b", "c")
    assert verbs.states() == {"zookeeper": "running", 1: "running", 2: "running", 3: "running"}
    pids = [row["pid"] for row in verbs.rows()]
    assert verbs.up() == bootstrap  # again: nothing happens
    assert [row["pid"] for row in verbs.rows()] == pids
    assert sum(row["controller"] is True for row in verbs.rows()) == 1
    assert sum(row["leads"] or 0 for row in verbs.rows()) >= 3
    assert "stopped broker 1, broker 2, broker 3, ZooKeeper" in verbs.ok("down").out
    assert set(verbs.states().values()) == {"stopped"}
    assert not any(Path(f"/proc/{pid}").exists() and _is_alive(pid) for pid in pids)
    assert "was running" in verbs.ok("down").out
    verbs.up()
    assert sorted(cli.ok("consume", "t", "-e").lines) == ["a", "b", "c"]


def test_kill_pause_resume_start_and_restart_are_what_they_say(verbs: Verbs) -> None:
    cli = Cli(verbs.up())
    cli.ok("topic", "create", "t", "-p", "6", "-r", "3")
    assert "broker 1 killed" in verbs.ok("kill", "1").out
    assert "broker 1 was not running" in verbs.ok("kill", "1").out
    assert verbs.states()[1] == "stopped"
    assert "broker 1 started" in verbs.ok("start", "1").out
    assert "broker 1 was running already" in verbs.ok("start", "1").out
    assert "broker 2 paused" in verbs.ok("pause", "2").out
    assert verbs.states()[2] == "paused"
    assert "broker 2 goes on" in verbs.ok("resume", "2").out
    before = {row["id"]: row["pid"] for row in verbs.rows()}
    cli.ok("cluster", "health", "--wait", "240", timeout_s=280)
    assert "broker 3 restarted" in verbs.ok("restart", "3").out
    after = {row["id"]: row["pid"] for row in verbs.rows()}
    assert {name for name in before if before[name] != after[name]} == {3}
    cli.ok("cluster", "health", "--wait", "240", timeout_s=280)
    assert "ZooKeeper killed" in verbs.ok("kill", "zookeeper").out
    wait_until(lambda: cli("cluster", "health", "--output", "json").data["cut_off_brokers"] == [1, 2, 3], 240)
    cut_off = cli("cluster", "health", "--output", "json")
    assert (cut_off.status, cut_off.data["healthy"]) == (1, False)
    cli.ok("produce", "t", "-q", "without it")
    assert "ZooKeeper is stopped, and a broker needs it" in verbs.fails("restart", "3")
    assert verbs.states()[3] == "running"
    assert "ZooKeeper started" in verbs.ok("start", "zookeeper").out
    cli.ok("produce", "t", "-q", "still there")
    cli.ok("cluster", "health", "--wait", "240", timeout_s=280)


@pytest.mark.slow
def test_it_grows(verbs: Verbs) -> None:
    verbs.up(2)
    cli = Cli(verbs.up(3))
    assert [one["id"] for one in cli.ok("cluster", "info", "--output", "json").data["brokers"]] == [1, 2, 3]
    assert "does not take away any" in verbs.fails("up", "--brokers", "2")


def test_mistakes_are_told(verbs: Verbs, tmp_path: Path) -> None:
    assert "there is no cluster in" in verbs.fails("status")
    with socket.create_server(("127.0.0.1", verbs.base_port + 1)):
        said = verbs.fails("up", "--brokers", "2", "--base-port", str(verbs.base_port))
    assert f"port {verbs.base_port + 1} is taken" in said
    assert not list((verbs.folder).glob("broker-*/process.json"))
    said = verbs.fails("up", "--brokers", "1", "--base-port", str(verbs.base_port), "-X", "num.partitons=3")
    assert "broker 1 has ended" in said
    assert "num.partitions" in said
    assert "choose one of 1, zookeeper" in verbs.fails("kill", "7")


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


# -- several brokers of one configuration --------------------------------------------------------------------------


@pytest.fixture
def several(tmp_path: Path, own_zookeeper: Zookeeper) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`ottla start --brokers 3` at a free port; all of it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(port: int, *more: str) -> subprocess.Popen[str]:
        connect = f"zookeeper.connect={own_zookeeper.address}/several"
        process = Cli().start(
            *("start", "--brokers", "3", "--listen", f"127.0.0.1:{port}", "--data-dir", tmp_path / "data"),
            *("-X", connect, "-X", "node.id=11", *QUICK, *more),
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "log").open("w"),
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=120)


def test_several_brokers_of_one_configuration_are_one_cluster_on_one_rack(
    several: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    port = free_block(3)
    process = several(port)
    assert process.stdout is not None
    ready = process.stdout.readline()
    addresses = ",".join(f"127.0.0.1:{port + number}" for number in range(3))
    assert ready.startswith(f"ready address={addresses} node.id=11,12,13 version="), (tmp_path / "log").read_text()
    brokers = Cli(addresses).ok("cluster", "info", "--output", "json").data["brokers"]
    assert [one["id"] for one in brokers] == [11, 12, 13]
    assert {one["rack"] for one in brokers} == {socket.gethostname()}
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["0", "1", "2"]
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 0
    log = (tmp_path / "log").read_text()
    for node in (11, 12, 13):
        assert any(line.startswith(f"broker {node}: ") and "stopped" in line for line in log.splitlines()), log


@pytest.mark.slow
def test_one_of_several_that_dies_comes_back(several: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    port = free_block(3)
    process = several(port)
    assert process.stdout is not None
    assert process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    victim = next(pid for pid in children if f":{port + 1}" in Path(f"/proc/{pid}/cmdline").read_text())
    os.kill(int(victim), signal.SIGKILL)
    cli = Cli(f"127.0.0.1:{port}")
    cli.ok("cluster", "health", "--wait", "240", timeout_s=280)
    while len(cli.ok("cluster", "info", "--output", "json").data["brokers"]) < 3 or not _listens(port + 1):
        assert process.poll() is None
    assert "broker 12 has ended (SIGKILL): starting it again in 1 s" in (tmp_path / "log").read_text()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
