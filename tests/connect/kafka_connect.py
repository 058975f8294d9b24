"""Kafka Connect itself, distributed, as a child process: the oracle."""

from __future__ import annotations

import time
from pathlib import Path

from tests.connect.conversation import ask
from tests.interop.products.program import Program
from tests.support.process import free_ports

WORKER = """\
bootstrap.servers={bootstrap}
group.id={group}
listeners=http://127.0.0.1:{port}
exactly.once.source.support=enabled
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
session.timeout.ms=6000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
"""
_PATIENCE_S = 180.0


class KafkaConnect:
    def __init__(self, bootstrap: str, folder: Path, group: str = "connect") -> None:
        (port,) = free_ports(1)
        settings = folder / "worker.properties"
        settings.write_text(WORKER.format(bootstrap=bootstrap, port=port, group=group))
        self.program = Program("org.apache.kafka.connect.cli.ConnectDistributed", [settings], folder / "connect.log")
        self.url = f"http://127.0.0.1:{port}"

    def start(self) -> None:
        """Until it answers as it should."""
        self.program.start()
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            self.program.check()
            try:
                if ask(self.url, "GET", "/connectors")[0] == 200:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline_s, "Kafka Connect does not get ready"
            time.sleep(0.3)

    def close(self) -> None:
        self.program.kill()
