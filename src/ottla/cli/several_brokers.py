"""`ottla start --brokers N`: N brokers of one node's configuration, one for each core that should work.

The first is what the configuration says; each further one has the next node.id and the next port of every listener.
Their data is in the folders 0, 1, ... of each data directory. They share a rack: unless one is set, this machine's
name, so replicas of one partition are never on one machine as long as there is another.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ottla import __version__
from ottla.cli.supervisor import Child, Supervisor
from ottla.common.config import BrokerConfig, Source
from ottla.common.config.listeners import listener_text
from ottla.common.errors import OttlaError
from ottla.exposition.address import consecutive
from ottla.server import service_manager

PORT_MAX = 65_535
METRICS = "ottla.metrics.listen"


def run_several(
    count: int,
    config: BrokerConfig,
    given: Mapping[str, str],
    arguments: Sequence[str],
    announce: Callable[[str], None],
    *,
    logs_json: bool,
) -> None:
    """`given` are the properties of -X, `arguments` the flags that each broker gets as they are."""
    if not config.layer(Source.STATIC_BROKER_CONFIG).get("zookeeper.connect"):
        raise OttlaError(
            "--brokers makes a cluster, which needs a ZooKeeper: name it with -X zookeeper.connect=HOST:PORT."
        )
    children = [
        Child(f"broker {config.node_id + number}", _command(number, config, given, arguments))
        for number in range(count)
    ]
    asyncio.run(_run(children, announce, logs_json))


async def _run(children: Sequence[Child], announce: Callable[[str], None], logs_json: bool) -> None:
    def on_ready() -> None:
        announce(_ready_line([child.ready_line for child in children]))
        service_manager.tell(service_manager.READY)

    await Supervisor(children, logs_json=logs_json).run(on_ready)


def _ready_line(lines: Sequence[str]) -> str:
    """One line of the same shape, with the values of all."""
    told = [dict(pair.split("=", 1) for pair in line.split()[1:] if "=" in pair) for line in lines]
    shown = []
    for key in ("address", "advertised", "node.id", "metrics"):
        values = [line[key] for line in told if key in line]
        if values:
            shown.append(f"{key}={','.join(values)}")
    return f"ready {' '.join(shown)} version={__version__}"


def _command(number: int, config: BrokerConfig, given: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    own = {**given, **_own_properties(number, config)}
    overrides = [part for key, value in own.items() if key != "listeners" for part in ("-X", f"{key}={value}")]
    # As a flag: it also overrules what a file says is advertised.
    return [sys.executable, "-m", "ottla", "start", *arguments, "--listen", own["listeners"], *overrides]


def _own_properties(number: int, config: BrokerConfig) -> dict[str, str]:
    """What tells the brokers of one node apart."""
    endpoints = config.endpoints
    if any(port + number > PORT_MAX for one in endpoints for port in (one.port, one.advertised_port)):
        raise OttlaError(f"--brokers takes consecutive ports, and there is none above {PORT_MAX}.")
    own = {
        "node.id": str(config.node_id + number),
        "listeners": ",".join(listener_text(one.name, one.host, _next(one.port, number)) for one in endpoints),
        "log.dirs": ",".join(str(Path(folder) / str(number)) for folder in config.data_dirs),
        "broker.rack": config.broker_rack or socket.gethostname(),
    }
    if config.ottla_metrics_listen:
        own[METRICS] = consecutive(config.ottla_metrics_listen, number, what=METRICS)
    if "broker.id" in config.layer(Source.STATIC_BROKER_CONFIG):
        own["broker.id"] = own["node.id"]
    if all(one.advertised_host for one in endpoints):
        own["advertised.listeners"] = ",".join(
            listener_text(one.name, one.advertised_host, _next(one.advertised_port, number)) for one in endpoints
        )
    return own


def _next(port: int, number: int) -> int:
    """0 stays: any free one."""
    return port + number if port else 0
