"""A topic that has to be there before it is written to."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import RETRIABLE, Retriable
from ottla.protocol.messages import CreateTopicsRequest

_TIMEOUT_MS = 30_000


def ensure_topic(
    cluster: ClusterClient,
    name: str,
    *,
    what: str,
    advice: str,
    settings: Mapping[str, str] | None = None,
    partitions: int = 1,
) -> None:
    """With the cluster's replication. Raises OttlaError, which says what to do if it is refused."""
    if not cluster.metadata([name]).topics[0].error_code:
        return
    schema = CreateTopicsRequest.CreatableTopicConfig
    configs = [schema(name=key, value=value) for key, value in (settings or {}).items()]
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=-1, configs=configs
    )
    (row,) = cluster.any_broker().call(CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)).topics
    code = ErrorCode(row.error_code)
    if code in RETRIABLE:
        raise Retriable(f"{what} '{name}' cannot be created now: {code.name}.")
    if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise OttlaError(f"{what} '{name}' cannot be created ({code.name}): {advice}.")
    cluster.settled(lambda: _check_known(cluster, name, what))


def _check_known(cluster: ClusterClient, name: str, what: str) -> None:
    """Kafka's brokers hear of a new topic from their controller, a moment after who made it has."""
    if cluster.metadata([name]).topics[0].error_code:
        raise Retriable(f"{what} '{name}' was created, and the cluster does not know it.")
