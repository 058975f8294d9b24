"""The cluster image in a metadata store: read it whole, and lay the ground in a new store."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage
from ottla.metastore.port import Create, MetadataStore


def is_new(store: MetadataStore) -> bool:
    return store.get(nodes.CLUSTER) is None


def stored_cluster_id(store: MetadataStore) -> str | None:
    node = store.get(nodes.CLUSTER)
    if node is None:
        return None
    cluster_id: str = json.loads(node.data)["cluster_id"]
    return cluster_id


def initialise(store: MetadataStore, cluster_id: str) -> None:
    """Make the folders and the cluster's node, in one step, so that a half-made store cannot be."""
    store.multi(
        [
            *(Create(folder) for folder in nodes.FOLDERS),
            Create(nodes.FEATURES, nodes.encode({"levels": {}, "epoch": 0})),
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
    )


def _entries(store: MetadataStore, folder: str) -> Iterator[tuple[str, bytes]]:
    names = store.children(folder)
    for name, node in zip(names, store.get_many([f"{folder}/{name}" for name in names]), strict=True):
        if node is not None:
            yield name, node.data
