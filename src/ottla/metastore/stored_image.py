"""The cluster image in a metadata store: read it whole, and lay the ground in a new store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage
from ottla.metastore.port import Create, MetadataStore

NO_FEATURES: Mapping[str, int] = MappingProxyType({})


def is_new(store: MetadataStore) -> bool:
    return store.get(nodes.CLUSTER) is None


def initialise(store: MetadataStore, cluster_id: str, features: Mapping[str, int] = NO_FEATURES) -> None:
    """Make the folders and the cluster's node, in one step, so that a half-made store cannot be."""
    store.multi(
        [
            *(Create(folder) for folder in nodes.FOLDERS),
            Create(nodes.FEATURES, nodes.encode({"levels": dict(features), "epoch": 1})),
            Create(nodes.PRODUCER_IDS, nodes.encode({"next": 0})),
            Create(nodes.CLUSTER, nodes.encode({"cluster_id": cluster_id})),
        ]
    )


def load_image(store: MetadataStore) -> ClusterImage:
    cluster, features, producer_ids = store.get_many([nodes.CLUSTER, nodes.FEATURES, nodes.PRODUCER_IDS])
    if cluster is None:
        raise ValueError("the metadata store is new: initialise it first")
    return nodes.decode_image(
        cluster.data,
        _entries(store, nodes.TOPICS),
        _entries(store, nodes.BROKER_CONFIGS),
        _entries(store, nodes.GROUP_CONFIGS),
        features.data if features else None,
        producer_ids.data if producer_ids else None,
        _entries(store, nodes.CLIENT_METRICS_CONFIGS),
    )


def _entries(store: MetadataStore, folder: str) -> Iterator[tuple[str, bytes]]:
    names = store.children(folder)
    for name, node in zip(names, store.get_many([f"{folder}/{name}" for name in names]), strict=True):
        if node is not None:
            yield name, node.data
