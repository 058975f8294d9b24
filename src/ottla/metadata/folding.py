"""The image as a fold over the nodes of the metadata store: some nodes have changed, so the image is another one.

What did not change stays the same object, also when its node was read again: whoever follows the image looks at
identity. A node that cannot be read is passed over, and told of: somebody has damaged it, and what is known is better
than nothing. So is an older copy that somebody has written back: epochs never go back, and replicas that were in sync
then need not be now. One thing is remembered that no node says: which brokers were there, until they are fenced
(`missing`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote

from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.acls import Acl, decode_acl
from ottla.metadata.image import BrokerImage, ClusterImage, ConfigKind, Registration, TopicImage
from ottla.metadata.quotas import ClientQuota, decode_quota
from ottla.metadata.scram import ScramCredential, decode_credentials
from ottla.metadata.tokens import DelegationToken, decode_token

# The data of nodes by path; None where there is none any more.
Nodes = Mapping[str, bytes | None]
K = TypeVar("K", int, str)
Complain = Callable[[str, Exception], None]

_CONFIG_FOLDERS = {
    nodes.BROKER_CONFIGS: ConfigKind.BROKER,
    nodes.GROUP_CONFIGS: ConfigKind.GROUP,
    nodes.CLIENT_METRICS_CONFIGS: ConfigKind.CLIENT_METRICS,
}


class OlderCopy(ValueError):
    """What a node says was true some time ago."""

    def __init__(self) -> None:
        super().__init__("an older copy: its numbers are below those that are known")


def with_nodes(image: ClusterImage, changed: Nodes, complain: Complain) -> ClusterImage:
    topics: dict[str, TopicImage | None] = {}
    present: dict[int, BrokerImage | None] = {}
    registrations: dict[int, Registration | None] = {}
    acls: dict[str, Acl | None] = {}
    scram: dict[str, Mapping[str, ScramCredential] | None] = {}
    quotas: dict[str, ClientQuota | None] = {}
    tokens: dict[str, DelegationToken | None] = {}
    for path, data in changed.items():
        folder, _, name = path.rpartition("/")
        try:
            if folder == nodes.TOPICS:
                topics[name] = None if data is None else _newer_topic(nodes.decode_topic(name, data), image)
            elif folder == nodes.BROKERS:
                present[int(name)] = None if data is None else nodes.decode_broker(int(name), data)
            elif folder == nodes.BROKER_EPOCHS:
                broker = int(name)
                registrations[broker] = None if data is None else _newer_registration(broker, data, image)
            elif folder == nodes.ACLS:
                acls[name] = None if data is None else decode_acl(data)
            elif folder == nodes.SCRAM:
                scram[unquote(name)] = None if data is None else decode_credentials(data)
            elif folder == nodes.QUOTAS:
                quotas[unquote(name)] = None if data is None else decode_quota(data)
            elif folder == nodes.TOKENS:
                tokens[name] = None if data is None else decode_token(data)
            elif folder in _CONFIG_FOLDERS:
                image = _with_configs(image, _CONFIG_FOLDERS[folder], unquote(name), data)
            else:
                image = _with_single_node(image, path, data)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            complain(path, error)
    image = _with_topics(image, topics)
    parts: dict[str, Mapping[str, Any]] = {"acls": acls, "scram": scram, "quotas": quotas, "tokens": tokens}
    for part, changes in parts.items():
        if changes:
            image = _with_part(image, part, changes)
    if present or registrations:
        image = _with_brokers(image, _merged(image.present, present), _merged(image.registrations, registrations))
    return image


def _newer_topic(topic: TopicImage, image: ClusterImage) -> TopicImage:
    known = image.topics.get(topic.name)
    if known is None or known.id != topic.id or known == topic:
        return topic
    if len(topic.partitions) < len(known.partitions) or any(
        new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch
        for new, old in zip(topic.partitions, known.partitions, strict=False)
    ):
        raise OlderCopy
    return topic


def _newer_registration(broker: int, data: bytes, image: ClusterImage) -> Registration:
    new, known = nodes.decode_registration(data), image.registrations.get(broker)
    if known is not None and new.epoch < known.epoch:
        raise OlderCopy
    return new


def known_node(image: ClusterImage, path: str) -> bytes | None:
    """What a node should hold by what is known; None where that cannot be told."""
    folder, _, name = path.rpartition("/")
    if folder == nodes.TOPICS and name in image.topics:
        return nodes.encode_topic(image.topics[name])
    if folder == nodes.BROKER_EPOCHS and name.isdecimal() and int(name) in image.registrations:
        return nodes.encode_registration(image.registrations[int(name)])
    if path == nodes.PRODUCER_IDS:
        return nodes.encode({"next": image.next_producer_id})
    return None


def _with_part(image: ClusterImage, part: str, changed: Mapping[str, Any]) -> ClusterImage:
    known = getattr(image, part)
    merged = _merged(known, changed)
    return image if merged is known else replace(image, **{part: merged})  # type: ignore[arg-type]


def _with_topics(image: ClusterImage, changed: Mapping[str, TopicImage | None]) -> ClusterImage:
    gone = [name for name, topic in changed.items() if topic is None and name in image.topics]
    new = [topic for name, topic in changed.items() if topic is not None and topic != image.topics.get(name)]
    if gone:
        image = images.without_topics(image, gone)
    return images.with_topics(image, new) if new else image


def _merged(known: Mapping[K, Any], changed: Mapping[K, Any]) -> Mapping[K, Any]:
    merged = {key: value for key, value in {**known, **changed}.items() if value is not None}
    return known if merged == known else dict(sorted(merged.items()))


def _with_brokers(
    image: ClusterImage, present: Mapping[int, BrokerImage], registrations: Mapping[int, Registration]
) -> ClusterImage:
    """Those count that are there and were taken in as what they are now."""
    brokers = {
        broker.id: broker
        for broker in present.values()
        if (known := registrations.get(broker.id)) is not None and known.is_active and known.epoch == broker.epoch
    }
    if brokers == image.brokers:
        brokers = image.brokers  # type: ignore[assignment]
    if brokers is image.brokers and present is image.present and registrations is image.registrations:
        return image
    counted_before = {**image.missing, **image.brokers}
    missing = {
        broker.id: broker
        for broker in counted_before.values()
        if broker.id not in brokers and not _is_fenced(broker, registrations.get(broker.id))
    }
    return replace(image, brokers=brokers, present=present, registrations=registrations, missing=missing)


def _is_fenced(broker: BrokerImage, registration: Registration | None) -> bool:
    """By the controller. One that has registered anew and waits to be taken in is not."""
    return registration is None or (registration.epoch == broker.epoch and not registration.is_active)


def _with_configs(image: ClusterImage, kind: ConfigKind, name: str, data: bytes | None) -> ClusterImage:
    if kind is ConfigKind.BROKER and name == nodes.DEFAULT_BROKER:
        name = ""
    configs = {} if data is None else dict(nodes.decode(data))
    return image if image.configs(kind).get(name, {}) == configs else images.with_configs(image, kind, name, configs)


def _with_single_node(image: ClusterImage, path: str, data: bytes | None) -> ClusterImage:
    value = None if data is None else nodes.decode(data)
    if path == nodes.CONTROLLER:
        controller = -1 if value is None else int(value["broker"])
        epoch = image.controller_epoch if value is None else int(value["epoch"])
        if (controller, epoch) != (image.controller, image.controller_epoch):
            return replace(image, controller=controller, controller_epoch=epoch)
    elif path == nodes.FEATURES and value is not None:
        if (value["levels"], value["epoch"]) != (image.features, image.features_epoch):
            return replace(image, features=dict(value["levels"]), features_epoch=int(value["epoch"]))
    elif path == nodes.PRODUCER_IDS and value is not None and value["next"] != image.next_producer_id:
        if int(value["next"]) < image.next_producer_id:
            raise OlderCopy  # no producer id is given away twice
        return images.with_next_producer_id(image, int(value["next"]))
    return image
