"""A cluster of three brokers as `ottla security init` and `add-broker` make it, and as docs/security-setup.md tells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.cluster.test_local_cluster import free_block
from tests.support.zookeeper import Zookeeper

HOSTS = {1: "127.0.0.1", 2: "127.0.0.2", 3: "127.0.0.3"}


class Made:
    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.folder = folder
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        place = ("--dir", folder)
        init = ("--host", HOSTS[1], "--port", str(free_block(3)), "--zookeeper", zookeeper)
        Cli().ok("security", "init", *place, *init)
        for number in (2, 3):
            Cli().ok("security", "add-broker", str(number), *place, "--host", HOSTS[number])

    def start(self, number: int) -> None:
        command = [sys.executable, "-m", "ottla", "start", "--config"]
        with (self.folder / f"broker-{number}.log").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                [*command, str(self.folder / f"broker-{number}/server.properties")],
                stdout=log,
                stderr=log,
                env=Cli().variables(),
            )

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(30)

    def cli(self, profile: str) -> Cli:
        return Cli(environment={"OTTLA_PROFILES": str(self.folder / "profiles.toml"), "OTTLA_PROFILE": profile})


@pytest.fixture
def made(tmp_path: Path, zookeeper: Zookeeper, chroot: str) -> Iterator[Made]:
    with ExitStack() as stack:
        cluster = Made(tmp_path / "made", f"{zookeeper.address}{chroot}")
        stack.callback(cluster.close)
        for number in HOSTS:
            cluster.start(number)
        yield cluster


@pytest.mark.slow
def test_a_cluster_as_it_is_made_survives_the_loss_of_a_broker_and_new_certificates(made: Made) -> None:
    admin = made.cli("admin")
    outcome = admin("cluster", "health", "--wait", "90", timeout_s=120)
    logs = "\n".join(path.read_text()[-2000:] for path in made.folder.glob("*.log"))
    assert outcome.status == 0, (outcome, logs)
    admin.ok("topic", "create", "orders", "-p", "3", "-r", "3")
    Cli().ok("security", "add-client", "till", "--dir", made.folder)
    admin.ok("acl", "add", "--allow", "till", "--producer", "--topic", "orders")
    till = made.cli("till")
    till.ok("produce", "orders", "one", "two", "three")
    made.processes[2].kill()
    made.processes[2].wait(30)
    till.ok("produce", "orders", "four")
    Cli().ok("security", "renew", "--dir", made.folder)
    made.start(2)
    outcome = admin("cluster", "health", "--wait", "90", timeout_s=120)
    assert outcome.status == 0, outcome
    made.cli("till").ok("produce", "orders", "five")
    assert sorted(admin.ok("consume", "orders", "-e").lines) == ["five", "four", "one", "three", "two"]
    assert "may not" in till.fails(1, "topic", "delete", "orders", "-y")
