"""Settings of topics and brokers with where they come from and what they are for (DescribeConfigs, KIP-569)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ottla.client.cluster import ClusterClient
from ottla.common.config import BrokerConfig, TopicConfig
from ottla.common.failures import check
from ottla.console.cluster.changes import KINDS
from ottla.protocol.messages import DescribeConfigsRequest

SOURCES = {1: "topic", 2: "broker", 3: "all brokers", 4: "file", 5: "default", 8: "group"}


@dataclass(frozen=True)
class Entry:
    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    doc: str

    @property
    def is_set(self) -> bool:
        return self.source not in ("default", "unknown")


def describe_settings(cluster: ClusterClient, kind: str, name: str) -> list[Entry]:
    """What we cannot say about a setting, the broker may."""
    one = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[one(resource_type=KINDS[kind], resource_name=name, configuration_keys=None)],
        include_synonyms=False,
        include_documentation=True,
    )

    def ask() -> list[Entry]:
        broker = cluster.broker(int(name)) if kind == "broker" else cluster.any_broker()
        (result,) = broker.call(request).results
        check(result.error_code, f"{kind} '{name}'")
        docs = _docs(kind)
        return sorted(
            (
                Entry(
                    row.name,
                    None if row.is_sensitive else row.value,
                    SOURCES.get(row.config_source, "unknown"),
                    bool(row.read_only),
                    bool(row.is_sensitive),
                    docs.get(row.name) or getattr(row, "documentation", None) or "",
                )
                for row in result.configs
            ),
            key=lambda entry: entry.name,
        )

    return cluster.settled(ask)


@lru_cache
def _docs(kind: str) -> dict[str, str]:
    known = TopicConfig.definitions() if kind == "topic" else BrokerConfig.known()
    return {name: setting.doc for name, setting in known.items()}
