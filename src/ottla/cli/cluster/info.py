"""`ottla cluster info`: who is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.cli.connection import Cluster
from ottla.cli.output import facts, plural, show, table
from ottla.cli.settings import Settings, command


@command("info")
def info(settings: Settings) -> None:
    """Cluster id, controller, brokers, and how much is on it."""
    reached = Cluster(settings)
    described = reached.reach()
    topics = reached.all_topics().topics.values()
    controller = described.controller.id if described.controller is not None else None
    data: Any = {
        "cluster_id": described.cluster_id,
        "controller": controller,
        "brokers": [
            {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack or None}
            for node in sorted(described.nodes, key=lambda node: node.id)
        ],
        "topics": len(topics),
        "partitions": sum(len(topic.partitions) for topic in topics),
    }
    show(settings, data, lambda: _info_lines(data))


def _info_lines(data: dict[str, Any]) -> Iterable[str]:
    yield from facts(
        [
            ("cluster", data["cluster_id"]),
            ("topics", f"{data['topics']} with {plural(data['partitions'], 'partition')}"),
        ]
    )
    yield ""
    rows = [
        (
            broker["id"],
            f"{broker['host']}:{broker['port']}",
            broker["rack"],
            "yes" if broker["id"] == data["controller"] else "",
        )
        for broker in data["brokers"]
    ]
    yield from table(["BROKER", "ADDRESS", "RACK", "CONTROLLER"], rows)
