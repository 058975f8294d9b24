"""The topics that a worker makes for itself, as Kafka Connect does: compacted, with the replication that it is told."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.admin.topic_settings import topic_settings
from ottla.client.cluster import ClusterClient
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import RETRIABLE, Retriable
from ottla.protocol.messages import CreateTopicsRequest

_TIMEOUT_MS = 30_000
_THERE_S_MAX = 30.0


@dataclass(frozen=True)
class TopicPlan:
    name: str
    # The setting that names it.
    setting: str
    partitions: int
    # -1: as the cluster does by itself.
    replication: int = -1
    # None: any number will do.
    partitions_wanted: int | None = None


def create_topic(
    cluster: ClusterClient, name: str, partitions: int, replication: int, settings: dict[str, str]
) -> ErrorCode:
    """NONE, or TOPIC_ALREADY_EXISTS, or why not. Raises Retriable."""
    schema = CreateTopicsRequest.CreatableTopicConfig
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        configs=[schema(name=key, value=value) for key, value in settings.items()],
    )
    (row,) = cluster.any_broker().call(CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)).topics
    code = ErrorCode(row.error_code)
    if code in RETRIABLE:
        raise Retriable(f"the topic '{name}' cannot be created now: {code.name}.")
    return code


def ensure(cluster: ClusterClient, plan: TopicPlan) -> None:
    """Raises OttlaError if it cannot be there as it has to be."""
    if not cluster.settled(lambda: cluster.refresh([plan.name])):
        settings = {"cleanup.policy": "compact"}
        code = cluster.settled(lambda: create_topic(cluster, plan.name, plan.partitions, plan.replication, settings))
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise OttlaError(
                f"the topic '{plan.name}' ({plan.setting}) cannot be created ({code.name}): create it with "
                f"cleanup.policy=compact, or set {plan.setting.removesuffix('.topic')}.replication.factor."
            )
    found = retried(lambda: cluster.leaders([plan.name]), Deadline(_THERE_S_MAX), cluster.forget)
    if plan.partitions_wanted is not None and len(found) != plan.partitions_wanted:
        raise OttlaError(
            f"the topic '{plan.name}' has {len(found)} partitions, and {plan.setting} needs one of "
            f"{plan.partitions_wanted}: name another topic."
        )
    known = cluster.settled(lambda: topic_settings(cluster, [plan.name], ["cleanup.policy"])).get(plan.name, {})
    policy = known["cleanup.policy"].value if "cleanup.policy" in known else "compact"
    if policy != "compact":
        raise OttlaError(
            f"the topic '{plan.name}' ({plan.setting}) has cleanup.policy={policy}, which loses records: set it "
            f"to compact with `ottla config set topic {plan.name} cleanup.policy=compact`."
        )
