"""A topic that is made because it has to be there is known when that is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.admin.topics import ensure_topic
from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError


class _SlowlyInformed(ClusterClient):
    """Answers for a while that it does not know a topic, also when it was made."""

    def __init__(self, unknown_for: int, *, timeout_s: float = 30.0) -> None:
        super().__init__("nobody:1", timeout_s=timeout_s)
        self.created = 0
        self._unknown_for = unknown_for

    def metadata(self, topics: Any) -> Any:
        self._unknown_for -= 1
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self._unknown_for >= 0 else ErrorCode.NONE
        return SimpleNamespace(topics=[SimpleNamespace(error_code=code)])

    def any_broker(self) -> Any:
        return self

    def call(self, request: Any) -> Any:
        self.created += 1
        return SimpleNamespace(topics=[SimpleNamespace(error_code=0)])


def test_it_returns_when_the_cluster_knows_the_topic() -> None:
    cluster = _SlowlyInformed(unknown_for=4)
    ensure_topic(cluster, "orders", what="the topic", advice="make it")
    assert cluster.created == 1
    assert not cluster.metadata(["orders"]).topics[0].error_code


def test_one_that_never_becomes_known_is_told() -> None:
    with pytest.raises(OttlaError, match="the topic 'orders' was created, and the cluster does not know it"):
        ensure_topic(_SlowlyInformed(1 << 30, timeout_s=0.2), "orders", what="the topic", advice="make it")
