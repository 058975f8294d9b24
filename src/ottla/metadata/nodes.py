"""How the cluster image is kept in the metadata store: the paths, and the JSON in each node.

    /cluster                {"cluster_id": ...}
    /topics/NAME            {"id": ..., "replicas": [[1], ...], "leader_epochs": [...], "states": [...],
                            "configs": {...}, "min_insync": n}
    /deletions/TOPIC_ID     {"name": ..., "partitions": n, "brokers": [1, ...]}    logs of a deleted topic that may
                            still be on disk, in a cluster: of these brokers
    /configs/brokers/ID     {"key": "value", ...}              the id "default" is the cluster-wide default
    /configs/groups/GROUP   the same
    /configs/client_metrics/NAME    the same
    /acls/ID                one ACL (`acls.py`)
    /scram/USER             what is kept of a user's passwords (`scram.py`)
    /quotas/ENTITY          what a user, client id or address may use (`quotas.py`)
    /tokens/ID              a delegation token, without what proves it (`tokens.py`)
    /features               {"levels": {...}, "epoch": n}
    /producer_ids           {"next": n}
    /controller             {"broker": id, "epoch": n}         who may make changes; in a cluster it goes with its
                            session
    /controller_epoch       {"epoch": n}                       of the last one, in a cluster
    /brokers/ID             {"endpoints": {...}, "rack": ..., "epoch": n, "incarnation": ..., "directory": ...}    goes
                            with the broker's session
    /broker_epochs/ID       {"epoch": n, "active": true, "may_have_lost_records": false, "stopping": false,
                            "directories": [...], "missing": {TOPIC_ID: [0, ...]}, "rack": ...,
                            "ahead": {TOPIC_ID: [[0, 5], ...]}}    stays

One node per topic, because creating a topic is then one row and one fsync, and reading 2,000 of them takes
milliseconds. A partition's leader and in-sync replicas are not written while they are what the assignment says; those
of the other partitions are in `states`. Everything here is pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicId, topic_id_from_text, topic_id_text
from ottla.metadata.image import (
    NO_LEADER,
    NOTHING,
    BrokerImage,
    ClusterImage,
    ConfigKind,
    PartitionImage,
    Registration,
    TopicImage,
    initial_partition,
)

CLUSTER = "/cluster"
TOPICS = "/topics"
DELETIONS = "/deletions"
CONFIGS = "/configs"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS_CONFIGS = "/configs/client_metrics"
ACLS = "/acls"
SCRAM = "/scram"
QUOTAS = "/quotas"
TOKENS = "/tokens"
FEATURES = "/features"
PRODUCER_IDS = "/producer_ids"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKERS = "/brokers"
BROKER_EPOCHS = "/broker_epochs"

# Made in this order when a store is new: parents first.
FOLDERS = (
    TOPICS,
    DELETIONS,
    CONFIGS,
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    ACLS,
    SCRAM,
    QUOTAS,
    TOKENS,
)
# In a cluster these too.
CLUSTER_FOLDERS = (BROKERS, BROKER_EPOCHS)

_CONFIGS_OF = {
    ConfigKind.BROKER: BROKER_CONFIGS,
    ConfigKind.GROUP: GROUP_CONFIGS,
    ConfigKind.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}
DEFAULT_BROKER = "default"


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def broker_path(broker: int) -> str:
    return f"{BROKERS}/{broker}"


def broker_epoch_path(broker: int) -> str:
    return f"{BROKER_EPOCHS}/{broker}"


def deletion_path(topic_id: TopicId) -> str:
    return f"{DELETIONS}/{topic_id_text(topic_id)}"


def configs_path(kind: ConfigKind, name: str) -> str:
    if kind is ConfigKind.BROKER:
        name = name or DEFAULT_BROKER
    return f"{_CONFIGS_OF[kind]}/{_one_part(name)}"


def acl_path(acl_id: str) -> str:
    return f"{ACLS}/{acl_id}"


def scram_path(user: str) -> str:
    return f"{SCRAM}/{_one_part(user)}"


def quota_path(quota: str) -> str:
    return f"{QUOTAS}/{_one_part(quota)}"


def token_path(token: str) -> str:
    return f"{TOKENS}/{token}"


def _one_part(name: str) -> str:
    """Any name as one part of a path; dots too, because a part may not be '.' or '..'."""
    return quote(name, safe="").replace(".", "%2E")


def decode(data: bytes) -> Any:
    return json.loads(data)


def decode_named(path: str, data: bytes, *names: str) -> tuple[Any, ...]:
    """These fields of a node without which nothing goes on. Raises OttlaError."""
    try:
        value = decode(data)
        return tuple(value[name] for name in names)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, error) from error


def damaged(path: str, error: Exception) -> OttlaError:
    return OttlaError(
        f"The node {path} of the metadata store is damaged ({error!r}): put it back from a backup, or delete it if "
        "what it stands for is not needed."
    )


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
    states = [
        [index, *_state(partition)]
        for index, partition in enumerate(topic.partitions)
        if partition != initial_partition(partition.replicas, partition.leader_epoch)
    ]
    if states:
        value["states"] = states
    if topic.configs:
        value["configs"] = dict(topic.configs)
    if topic.min_insync is not None:
        value["min_insync"] = topic.min_insync
    return encode(value)


def _state(partition: PartitionImage) -> list[Any]:
    """What differs from a partition that is as it was born; the rest of it is in the assignment."""
    state: list[Any] = [partition.leader, partition.partition_epoch, partition.isr]
    rare: list[Any] = [
        partition.elr,
        partition.last_known_leader,
        partition.adding,
        partition.removing,
        partition.offline,
        partition.emptied,
    ]
    return state + rare if rare != [(), NO_LEADER, (), (), (), ()] else state


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
    for index, *state in value.get("states", ()):
        partitions[index] = _with_state(partitions[index], *state)
    configs = value.get("configs")
    return TopicImage(
        name=name,
        id=topic_id_from_text(value["id"]),
        partitions=tuple(partitions),
        configs=MappingProxyType(configs) if configs else NOTHING,
        min_insync=value.get("min_insync"),
    )


def _with_state(
    born: PartitionImage,
    leader: int,
    partition_epoch: int,
    isr: Sequence[int],
    elr: Sequence[int] = (),
    last_known_leader: int = NO_LEADER,
    adding: Sequence[int] = (),
    removing: Sequence[int] = (),
    offline: Sequence[int] = (),
    emptied: Sequence[int] = (),
) -> PartitionImage:
    return PartitionImage(
        leader=leader,
        leader_epoch=born.leader_epoch,
        partition_epoch=partition_epoch,
        replicas=born.replicas,
        isr=tuple(isr),
        elr=tuple(elr),
        last_known_leader=last_known_leader,
        adding=tuple(adding),
        removing=tuple(removing),
        offline=tuple(offline),
        emptied=tuple(emptied),
    )


# --- brokers of a cluster


def encode_broker(broker: BrokerImage, incarnation: str, directory: str) -> bytes:
    """`incarnation` is the process, `directory` the first of its log directories: only one process can use it."""
    return encode(
        {
            "endpoints": {listener: list(address) for listener, address in broker.endpoints.items()},
            "rack": broker.rack,
            "epoch": broker.epoch,
            "incarnation": incarnation,
            "directory": directory,
            "stopping": broker.is_stopping,
        }
    )


def decode_broker(broker_id: int, data: bytes) -> BrokerImage:
    value = json.loads(data)
    endpoints = {listener: (host, port) for listener, (host, port) in value["endpoints"].items()}
    return BrokerImage(broker_id, value["rack"], endpoints, value["epoch"], bool(value.get("stopping")))


def encode_registration(registration: Registration) -> bytes:
    value = {
        "epoch": registration.epoch,
        "active": registration.is_active,
        "may_have_lost_records": registration.may_have_lost_records,
        "stopping": registration.is_stopping,
        "directories": registration.directories,
        "missing": {topic_id_text(topic): indexes for topic, indexes in registration.missing.items()},
        "rack": registration.rack,
    }
    if registration.ahead:
        value["ahead"] = {topic_id_text(topic): list(epochs.items()) for topic, epochs in registration.ahead.items()}
    return encode(value)


def decode_registration(data: bytes) -> Registration:
    value = json.loads(data)
    return Registration(
        epoch=value["epoch"],
        is_active=value["active"],
        may_have_lost_records=value["may_have_lost_records"],
        is_stopping=value.get("stopping", False),
        directories=tuple(value.get("directories", ())),
        missing={topic_id_from_text(topic): tuple(indexes) for topic, indexes in value.get("missing", {}).items()},
        ahead={topic_id_from_text(topic): dict(epochs) for topic, epochs in value.get("ahead", {}).items()},
        rack=value.get("rack"),
    )


def decode_registration_of(broker: int, data: bytes) -> Registration:
    """The same, of a broker without whose node nothing goes on. Raises OttlaError."""
    try:
        return decode_registration(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(broker_epoch_path(broker), error) from error


# --- the whole


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
        broker_configs={"" if broker == DEFAULT_BROKER else broker: _configs(data) for broker, data in broker_configs},
        group_configs={unquote(group): _configs(data) for group, data in group_configs},
        client_metrics_configs={unquote(name): _configs(data) for name, data in client_metrics_configs},
        features=feature_state["levels"],
        features_epoch=feature_state["epoch"],
        next_producer_id=json.loads(producer_ids)["next"] if producer_ids else 0,
    )


def _configs(data: bytes) -> Mapping[str, str]:
    return MappingProxyType(json.loads(data))
