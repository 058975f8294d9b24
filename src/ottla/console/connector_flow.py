"""What goes through a connector, as far as the cluster tells it. PURE.

A sink reads as a consumer group, whose commits and lag are known. A source only writes: what its topics take is its
rate, and that of others who write there, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.console.cluster.snapshot import Snapshot
from ottla.console.connect_client import Connector

_GROUP_SETTING = "consumer.override.group.id"


@dataclass(frozen=True)
class Flow:
    """None is what is not known (yet)."""

    topics: tuple[str, ...] = ()
    records_per_s: float | None = None
    lag: int | None = None
    # Of a sink, if it has read anything.
    group: str | None = None


def flow_of(connector: Connector, topics: Iterable[str], snapshot: Snapshot | None) -> Flow:
    """`topics`: those that the connector has used."""
    used = tuple(sorted(topics))
    if snapshot is None:
        return Flow(used)
    if connector.kind == "sink":
        group = snapshot.groups.get(connector.config.get(_GROUP_SETTING) or f"connect-{connector.name}")
        return Flow(used) if group is None else Flow(used, group.commits_per_s, group.lag, group.name)
    known = [snapshot.topics[name].records_per_s for name in used if name in snapshot.topics]
    rates = [rate for rate in known if rate is not None]
    return Flow(used, sum(rates) if rates else None)
