"""How the cluster image is kept in the metadata store: the paths, and the JSON in each node.

    /cluster                {"cluster_id": ...}
    /topics/NAME            {"id": ..., "replicas": [[1], ...], "leader_epochs": [...], "configs": {...}}
    /deletions/TOPIC_ID     {"name": ..., "partitions": n}     logs of a deleted topic that may still be on disk
    /configs/brokers/ID     {"key": "value", ...}              the id "default" is the cluster-wide default
    /configs/groups/GROUP   the same
    /configs/client_metrics/NAME    the same
    /features               {"levels": {...}, "epoch": n}
    /producer_ids           {"next": n}
    /controller             {"broker": id, "epoch": n}         who may make changes

One node per topic, because creating a topic is then one row and one fsync, and reading 2,000 of them takes
milliseconds. A partition's leader and in-sync replicas are not written while they are what the assignment says; the
state that a cluster changes often gets nodes below the topic's. Everything here is pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from ottla.common.ids import TopicId, topic_id_from_text, topic_id_text
from ottla.metadata.image import NOTHING, ClusterImage, ConfigKind, TopicImage, initial_partition

CLUSTER = "/cluster"
TOPICS = "/topics"
DELETIONS = "/deletions"
CONFIGS = "/configs"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS_CONFIGS = "/configs/client_metrics"
FEATURES = "/features"
PRODUCER_IDS = "/producer_ids"
CONTROLLER = "/controller"

# Made in this order when a store is new: parents first.
FOLDERS = (TOPICS, DELETIONS, CONFIGS, BROKER_CONFIGS, GROUP_CONFIGS, CLIENT_METRICS_CONFIGS)

_CONFIGS_OF = {
    ConfigKind.BROKER: BROKER_CONFIGS,
    ConfigKind.GROUP: GROUP_CONFIGS,
    ConfigKind.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}
_DEFAULT_BROKER = "default"


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def deletion_path(topic_id: TopicId) -> str:
    return f"{DELETIONS}/{topic_id_text(topic_id)}"


def configs_path(kind: ConfigKind, name: str) -> str:
    if kind is ConfigKind.BROKER:
        name = name or _DEFAULT_BROKER
    # Any name as one part of a path; dots too, because a part may not be '.' or '..'.
    return f"{_CONFIGS_OF[kind]}/{quote(name, safe='').replace('.', '%2E')}"


def decode(data: bytes) -> Any:
    return json.loads(data)


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encode_topic(topic: TopicImage) -> bytes:
    value: dict[str, Any] = {
        "id": topic_id_text(topic.id),
        "replicas": [partition.replicas for partition in topic.partitions],
    }
    epochs = [partition.leader_epoch for partition in topic.partitions]
    if any(epochs):
        value["leader_epochs"] = epochs
    if topic.configs:
        value["configs"] = dict(topic.configs)
    return encode(value)


def decode_topic(name: str, data: bytes) -> TopicImage:
    value = json.loads(data)
    replicas = value["replicas"]
    epochs = value.get("leader_epochs") or [0] * len(replicas)
    # Most partitions of a topic look alike: one object serves them all.
    seen: dict[tuple[tuple[int, ...], int], Any] = {}
    partitions = []
    for key in zip(map(tuple, replicas), epochs, strict=True):
        if key not in seen:
            seen[key] = initial_partition(*key)
        partitions.append(seen[key])
    configs = value.get("configs")
    return TopicImage(
        name=name,
        id=topic_id_from_text(value["id"]),
        partitions=tuple(partitions),
        configs=MappingProxyType(configs) if configs else NOTHING,
    )


def decode_image(
    cluster: bytes,
    topics: Iterable[tuple[str, bytes]],
    broker_configs: Iterable[tuple[str, bytes]] = (),
    group_configs: Iterable[tuple[str, bytes]] = (),
    features: bytes | None = None,
    producer_ids: bytes | None = None,
    client_metrics_configs: Iterable[tuple[str, bytes]] = (),
) -> ClusterImage:
    """The image from the nodes' contents; pairs are (last part of the path, data)."""
    by_name = {name: decode_topic(name, data) for name, data in topics}
    feature_state: dict[str, Any] = json.loads(features) if features else {"levels": {}, "epoch": 0}
    return ClusterImage(
        cluster_id=json.loads(cluster)["cluster_id"],
        topics=by_name,
        topics_by_id={topic.id: topic for topic in by_name.values()},
        broker_configs={"" if broker == _DEFAULT_BROKER else broker: _configs(data) for broker, data in broker_configs},
        group_configs={unquote(group): _configs(data) for group, data in group_configs},
        client_metrics_configs={unquote(name): _configs(data) for name, data in client_metrics_configs},
        features=feature_state["levels"],
        features_epoch=feature_state["epoch"],
        next_producer_id=json.loads(producer_ids)["next"] if producer_ids else 0,
    )


def _configs(data: bytes) -> Mapping[str, str]:
    return MappingProxyType(json.loads(data))
