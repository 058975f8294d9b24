"""The cluster image in a metadata store: read it whole or in parts, and lay the ground in a new store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ottla.metadata import folding, nodes
from ottla.metadata.image import ClusterImage, ConfigKind
from ottla.metastore.port import Create, MetadataStore, StoreConflict

_SECURITY = (nodes.ACLS, nodes.SCRAM, nodes.QUOTAS, nodes.TOKENS)
NO_FEATURES: Mapping[str, int] = MappingProxyType({})


def is_new(store: MetadataStore) -> bool:
    return store.get(nodes.CLUSTER) is None


def initialise(
    store: MetadataStore,
    cluster_id: str,
    features: Mapping[str, int] = NO_FEATURES,
    folders: Iterable[str] = nodes.FOLDERS,
) -> None:
    """Make the folders and the cluster's node, in one step, so that a half-made store cannot be."""
    store.multi(
        [
            *(Create(folder) for folder in folders),
            Create(nodes.FEATURES, nodes.encode({"levels": dict(features), "epoch": 1})),
            Create(nodes.PRODUCER_IDS, nodes.encode({"next": 0})),
            Create(nodes.CLUSTER, nodes.encode({"cluster_id": cluster_id})),
        ]
    )


def load_image(store: MetadataStore) -> ClusterImage:
    cluster, features, producer_ids = store.get_many([nodes.CLUSTER, nodes.FEATURES, nodes.PRODUCER_IDS])
    if cluster is None:
        raise ValueError("the metadata store is new: initialise it first")
    image = nodes.decode_image(
        cluster.data,
        _entries(store, nodes.TOPICS),
        _entries(store, nodes.BROKER_CONFIGS),
        _entries(store, nodes.GROUP_CONFIGS),
        features.data if features else None,
        producer_ids.data if producer_ids else None,
        _entries(store, nodes.CLIENT_METRICS_CONFIGS),
    )
    security = {f"{folder}/{name}": data for folder in _SECURITY for name, data in _entries(store, folder)}
    return folding.with_nodes(image, security, _damaged)


def _damaged(path: str, error: Exception) -> None:
    """Nothing of who may do what is passed over."""
    raise ValueError(f"the node {path} of the metadata store is damaged: {error!r}")


def add_missing_folders(store: MetadataStore) -> None:
    """To a store that was made before there were such nodes."""
    for folder, node in zip(_SECURITY, store.get_many(_SECURITY), strict=True):
        if node is None:
            with contextlib.suppress(StoreConflict):  # another broker was faster
                store.multi([Create(folder)])


def _entries(store: MetadataStore, folder: str) -> Iterator[tuple[str, bytes]]:
    names = store.children(folder)
    for name, node in zip(names, store.get_many([f"{folder}/{name}" for name in names]), strict=True):
        if node is not None:
            yield name, node.data


# What the image of a cluster is made of: nodes of their own, and folders.
_NODES = (nodes.CONTROLLER, nodes.FEATURES, nodes.PRODUCER_IDS)
_FOLDERS = (
    nodes.TOPICS,
    nodes.BROKERS,
    nodes.BROKER_EPOCHS,
    nodes.BROKER_CONFIGS,
    nodes.GROUP_CONFIGS,
    nodes.CLIENT_METRICS_CONFIGS,
    *_SECURITY,
)


def is_of_image(path: str) -> bool:
    return path in _NODES or path.rpartition("/")[0] in _FOLDERS


def read_nodes(store: MetadataStore, paths: Iterable[str] | None, known: ClusterImage) -> folding.Nodes:
    """What these nodes hold now. Without paths all of them are read, and those that `known` was made of and are gone
    are named as well."""
    if paths is None:
        paths = dict.fromkeys(_paths_of(known))
        paths |= dict.fromkeys(f"{folder}/{name}" for folder in _FOLDERS for name in store.children(folder))
    wanted = list(paths)
    found = store.get_many(wanted)
    return {path: None if node is None else node.data for path, node in zip(wanted, found, strict=True)}


def _paths_of(image: ClusterImage) -> Iterator[str]:
    yield from _NODES
    yield from map(nodes.topic_path, image.topics)
    yield from map(nodes.broker_path, image.present)
    yield from map(nodes.broker_epoch_path, image.registrations)
    yield from map(nodes.acl_path, image.acls)
    yield from map(nodes.scram_path, image.scram)
    yield from map(nodes.quota_path, image.quotas)
    yield from map(nodes.token_path, image.tokens)
    for kind in ConfigKind:
        for name in image.configs(kind):
            yield nodes.configs_path(kind, name)
