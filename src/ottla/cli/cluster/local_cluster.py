"""A cluster on this machine: ZooKeeper and brokers 1 to N as processes in the background, all of it in one folder.

    DIR/cluster.json              how many brokers, from which port on, with which properties
    DIR/zookeeper/                process.json, zookeeper.log, data/
    DIR/broker-1/                 process.json, broker-1.log, server.properties, data/

Brokers listen on consecutive ports of 127.0.0.1, ZooKeeper on the one before them. A command holds `DIR/lock` while it
works, so two of them do not start the same broker twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ottla.cli.cluster.background import Background
from ottla.cli.cluster.plan import HOST, Plan
from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError

ZOOKEEPER = "zookeeper"
PORT_MAX = 65_535
DEFAULT_BROKERS = 3
START_S_MAX = 120.0
STOP_S_MAX = 120.0
SIGNAL_S_MAX = 10.0
LOOK_S = 0.1
ANSWER_S_MAX = 5.0


class MemberEnded(OttlaError):
    """A process that should run is gone; the message has the end of its log."""


class LocalCluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    # -- what is there ---------------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        try:
            return Plan(**json.loads(self._plan_file.read_text()))
        except FileNotFoundError:
            raise OttlaError(
                f"there is no cluster in {self.folder}: make one with `ottla cluster up --data-dir {self.folder}`."
            ) from None
        except (ValueError, TypeError):
            raise OttlaError(f"{self._plan_file} is damaged: it should be what `ottla cluster up` wrote.") from None

    @property
    def _plan_file(self) -> Path:
        return self.folder / "cluster.json"

    def member(self, name: str) -> Background:
        """`zookeeper`, or a broker by its id."""
        if name == ZOOKEEPER:
            return Background(ZOOKEEPER, self.folder / ZOOKEEPER)
        if name.isdecimal() and int(name) in self.plan.ids:
            return self.broker(int(name))
        brokers = ", ".join(map(str, self.plan.ids))
        raise OttlaError(f"there is no '{name}' in {self.folder}: choose one of {brokers}, {ZOOKEEPER}.")

    def broker(self, broker: int) -> Background:
        return Background(f"broker-{broker}", self.folder / f"broker-{broker}")

    def members(self) -> dict[str, Background]:
        return {name: self.member(name) for name in (ZOOKEEPER, *map(str, self.plan.ids))}

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OttlaError(
                    f"another `ottla cluster` command is at work in {self.folder}: wait until it has ended."
                ) from None
            yield

    # -- life ------------------------------------------------------------------------------------------------------

    def grow(
        self, brokers: int | None, base_port: int | None, properties: Mapping[str, str], default_port: int
    ) -> Plan:
        """The plan with what was asked for now; an existing cluster keeps what is not said again."""
        if not self._plan_file.exists():
            plan = Plan(brokers or DEFAULT_BROKERS, default_port if base_port is None else base_port, dict(properties))
        else:
            plan = self.plan
            brokers = brokers or plan.brokers
            if brokers < plan.brokers:
                raise OttlaError(
                    f"the cluster in {self.folder} has {plan.brokers} brokers, and `up` does not take away any: "
                    "move their partitions with `ottla partition move` first, then stop them."
                )
            if base_port not in (None, plan.base_port):
                raise OttlaError(f"the cluster in {self.folder} is at port {plan.base_port}, and stays there.")
            plan = replace(plan, brokers=brokers, properties=plan.properties | dict(properties))
        if plan.zookeeper_port < 1 or plan.port_of(plan.brokers) > PORT_MAX:
            raise OttlaError(
                f"port {plan.base_port} leaves no room: the brokers take {plan.brokers} from there, "
                "ZooKeeper the one before."
            )
        self._require_free_ports(plan)
        fresh = self._plan_file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(plan), indent=2) + "\n")
        os.replace(fresh, self._plan_file)
        return plan

    def _require_free_ports(self, plan: Plan) -> None:
        """Said before anything has started: a cluster is not left half up."""
        wanted = {plan.zookeeper_port: self.folder / ZOOKEEPER}
        wanted |= {plan.port_of(broker): self.folder / f"broker-{broker}" for broker in plan.ids}
        for port, folder in wanted.items():
            if Background(folder.name, folder).pid is None and not _is_free(port):
                raise OttlaError(
                    f"port {port} is taken by another program: choose others with --base-port "
                    f"(the brokers take {plan.brokers} from there, ZooKeeper the one before)."
                )

    def require_zookeeper(self, name: str) -> None:
        """Said before a broker is stopped or started: without it the broker would not come up."""
        state = self.member(ZOOKEEPER).state
        if self.member(name).name != ZOOKEEPER and state != "running":
            verb = "resume" if state == "paused" else "start"
            raise OttlaError(
                f"ZooKeeper is {state}, and a broker needs it: `ottla cluster {verb} {ZOOKEEPER} --data-dir "
                f"{self.folder}` first."
            )

    def start(self, name: str) -> bool:
        """Starts it, or lets it go on if it is paused. False if it was running already."""
        process = self.member(name)
        state = process.state
        if state == "paused":
            self.resume(name)
        elif state == "stopped":
            process.start(self._command(name), _environment())
        return state != "running"

    def _command(self, name: str) -> list[str]:
        folder = self.member(name).folder
        program = [sys.executable, "-m", "ottla"]
        if name == ZOOKEEPER:
            address = f"{HOST}:{self.plan.zookeeper_port}"
            return [*program, ZOOKEEPER, "start", "--listen", address, "--data-dir", str(folder / "data")]
        folder.mkdir(parents=True, exist_ok=True)
        properties = self.plan.broker_properties(int(name), folder / "data")
        file = folder / "server.properties"
        file.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in properties.items()))
        return [*program, "start", "--config", str(file)]

    def kill(self, name: str) -> bool:
        return self._signalled(name, signal.SIGKILL, "stopped")

    def pause(self, name: str) -> bool:
        return self._signalled(name, signal.SIGSTOP, "paused")

    def resume(self, name: str) -> bool:
        return self._signalled(name, signal.SIGCONT, "running")

    def _signalled(self, name: str, number: signal.Signals, wanted: str) -> bool:
        """False if it is not running at all."""
        process = self.member(name)
        if not process.send(number):
            return False
        if not process.await_state(wanted, SIGNAL_S_MAX):
            raise OttlaError(
                f"{title(name)} (pid {process.pid}) is not {wanted} {SIGNAL_S_MAX:.0f} s after {number.name}."
            )
        return True

    def stop(self, names: Iterable[str]) -> list[str]:
        """SIGTERM to all of them, then wait for all; gives those that were there."""
        asked = []
        for name in names:
            process = self.member(name)
            if process.send(signal.SIGTERM):
                process.send(signal.SIGCONT)  # a paused one would not hear of it
                asked.append(name)
        for name in asked:
            process = self.member(name)
            if not process.await_state("stopped", STOP_S_MAX):
                raise OttlaError(
                    f"{title(name)} (pid {process.pid}) has not stopped after {STOP_S_MAX:.0f} s: "
                    f"its log is {process.log}; `ottla cluster kill {name}` ends it."
                )
        return asked

    # -- waiting ---------------------------------------------------------------------------------------------------

    def await_members(self, names: Iterable[str], timeout_s: float = START_S_MAX) -> None:
        """Until each of them is in what every running broker tells its clients, and there is a controller."""
        wanted = [name for name in names if name != ZOOKEEPER]
        plan = self.plan
        if not _until(lambda: self._zookeeper_answers(plan.zookeeper_port), timeout_s):
            raise OttlaError(f"ZooKeeper does not answer; its log is {self.member(ZOOKEEPER).log}.")

        def are_known() -> bool:
            self._require_alive(wanted)
            for name in (name for name in map(str, plan.ids) if self.member(name).state == "running"):
                with client_of(f"{HOST}:{plan.port_of(int(name))}") as client:
                    told = client.metadata([])
                known = {str(broker.node_id) for broker in told.brokers}
                if not known >= set(wanted) or str(told.controller_id) not in known:
                    return False
            return True

        if not _until(are_known, timeout_s):
            self._require_alive(wanted)
            raise OttlaError(
                f"{', '.join(map(title, wanted))} did not get ready within {timeout_s:.0f} s: "
                f"the logs are in {self.folder}/broker-*/."
            )

    def _zookeeper_answers(self, port: int) -> bool:
        self._require_alive([])
        with socket.create_connection((HOST, port), ANSWER_S_MAX) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"

    def _require_alive(self, names: Iterable[str]) -> None:
        for name in (ZOOKEEPER, *names):
            process = self.member(name)
            if process.state == "stopped":
                raise MemberEnded(f"{title(name)} has ended; its log, {process.log}, says: {process.last_words()}")

    def out_of_sync(self, broker: int) -> int:
        """How many of its partitions it has not all of; asked of itself."""
        with client_of(f"{HOST}:{self.plan.port_of(broker)}") as client:
            told = client.metadata(None)
        return sum(
            broker in partition.replica_nodes and broker not in partition.isr_nodes
            for topic in told.topics
            for partition in topic.partitions
        )

    def await_in_sync(self, broker: int, timeout_s: float = START_S_MAX) -> None:
        """So that the next one may be stopped."""
        if not _until(lambda: self.out_of_sync(broker) == 0, timeout_s):
            raise OttlaError(
                f"broker {broker} is back, but not in sync after {timeout_s:.0f} s: `ottla cluster health` says where."
            )

    def leaders(self) -> tuple[int | None, dict[int, int]]:
        """The controller, and how many partitions each broker leads, as far as a running one answers."""
        plan = self.plan
        for broker in plan.ids:
            if self.broker(broker).state == "running":
                try:
                    with client_of(f"{HOST}:{plan.port_of(broker)}", timeout_s=2.0) as client:
                        told = client.metadata(None)
                except (OttlaError, OSError):
                    continue
                counts = {node.node_id: 0 for node in told.brokers}
                for topic in told.topics:
                    for partition in topic.partitions:
                        if partition.leader_id in counts:
                            counts[partition.leader_id] += 1
                return (told.controller_id if told.controller_id >= 0 else None), counts
        return None, {}


def title(name: str) -> str:
    return "ZooKeeper" if name == ZOOKEEPER else f"broker {name}"


def client_of(bootstrap: str, timeout_s: float = ANSWER_S_MAX) -> ClusterClient:
    return ClusterClient(ClusterAddress(bootstrap), timeout_s=timeout_s, client_id="ottla-cli")


def _until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    """A broker that does not answer yet is waited for as well."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if is_so():
                return True
        except MemberEnded:
            raise
        except (OttlaError, OSError):
            pass
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As a server binds it: connections of one that has just ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _environment() -> dict[str, Any]:
    """A broker in the background is no service of systemd, whoever calls."""
    return {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
