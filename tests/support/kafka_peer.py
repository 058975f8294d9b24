"""Apache Kafka itself as a peer: one KRaft node with default settings and a 1 GB heap on free ports.

    with KafkaPeer(tmp_path) as kafka:
        kafka.bootstrap

The JVM options are those of Kafka's own start script, except in tests (`options`). What differs from Kafka's defaults
is what one node demands (replication factor 1 of the internal topics), and what the caller passes as `properties`.
`listeners` are more ways in, by the names of their security protocols, each on a port of its own:

    with KafkaPeer(tmp_path, {"ssl.keystore.location": ...}, listeners=["SSL"]) as kafka:
        kafka.address("SSL")
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.kafka_jars import class_path, java, kafka_libs, why_no_kafka
from tests.support.process import BrokerDidNotStart, BrokerProcess, answers_api_versions, free_ports

HEAP = ("-Xmx1G", "-Xms1G")
START_SCRIPT_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
READY_POLL_S = 0.005


class KafkaPeer(BrokerProcess):
    name = "kafka"
    heap = HEAP
    # Set by tests/conftest.py: what is compared there is what Kafka does, not how fast.
    options: Sequence[str] = START_SCRIPT_OPTIONS
    # What runs Java, where that is not simply a child of ours.
    prefix: Sequence[str] = ()

    def __init__(
        self, folder: Path, properties: Mapping[str, str] | None = None, listeners: Sequence[str] = ()
    ) -> None:
        reason = why_no_kafka()
        if reason is not None:
            raise BrokerDidNotStart(reason)
        super().__init__(folder)
        self.data_dir = folder / "data"
        self._properties = dict(properties or {})
        self._more_ports = dict.fromkeys(listeners, 0)
        self._config = folder / "server.properties"
        self.cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
        libs = kafka_libs()
        assert libs is not None
        self._java = [str(java()), *self.heap, *self.options, "-cp", class_path(libs)]

    def start(self, timeout_s: float = 120.0) -> Self:
        return super().start(timeout_s)

    def _launch(self, deadline: float) -> None:
        is_first = not self.data_dir.exists()
        if is_first:
            self.format()
        self._run()
        while not answers_api_versions(self.host, self.port):
            if is_first and not self.running:
                # A port that was free when it was chosen may have been taken since.
                is_first = False
                self._choose_ports()
                self._run()
            if not self.running or time.monotonic() > deadline:
                raise BrokerDidNotStart(f"Apache Kafka did not get ready:\n{self.log_tail()}")
            time.sleep(READY_POLL_S)

    def _run(self) -> None:
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.prefix, *self._java, "kafka.Kafka", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _choose_ports(self) -> None:
        self.port, controller_port, *more = free_ports(2 + len(self._more_ports))
        self._more_ports = dict(zip(self._more_ports, more, strict=True))
        settings = self._one_node_settings(controller_port) | self._properties
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def format(self) -> None:
        """Chooses ports and formats the storage; `start` does it once, a benchmark before its clock runs."""
        self._choose_ports()
        outcome = subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(self._config)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if outcome.returncode != 0:
            raise BrokerDidNotStart(f"Apache Kafka's storage could not be formatted: {outcome.stdout}{outcome.stderr}")

    def address(self, listener: str) -> str:
        return f"{self.host}:{self._more_ports[listener]}"

    def _one_node_settings(self, controller_port: int) -> dict[str, str]:
        ports = {"PLAINTEXT": self.port, "CONTROLLER": controller_port} | self._more_ports
        protocols = {name: "PLAINTEXT" if name == "CONTROLLER" else name for name in ports}
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self.host}:{controller_port}",
            "listeners": ",".join(f"{name}://{self.host}:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{one}" for name, one in protocols.items()),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }
