"""A single node becomes the first broker of a cluster: what it has in its own store goes to the cluster's.

That happens when it is started with `zookeeper.connect` for the first time and nothing is in that place yet. The node
that says that a cluster is there comes last, so that a move which was cut short is done again from its beginning; then
the old file gets another name. Topics have the replicas they had, one each: `ottla partition move` gives them more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ottla.metadata import nodes
from ottla.metastore.embedded import FILE_NAME, EmbeddedStore
from ottla.metastore.port import Create, MetadataStore, Operation, Set, in_multis
from ottla.storage.disk import Disk

log = logging.getLogger("ottla.cluster")

MOVED_SUFFIX = ".moved"
_NODES = (nodes.FEATURES, nodes.PRODUCER_IDS)
_FOLDERS = (
    nodes.TOPICS,
    nodes.DELETIONS,
    nodes.BROKER_CONFIGS,
    nodes.GROUP_CONFIGS,
    nodes.CLIENT_METRICS_CONFIGS,
    nodes.ACLS,
    nodes.SCRAM,
    nodes.QUOTAS,
    nodes.TOKENS,
)


def is_single_node(directory: Path) -> bool:
    return (directory / FILE_NAME).exists()


def move_in(directory: Path, store: MetadataStore) -> None:
    """Call it where the store is new."""
    own = EmbeddedStore(directory / FILE_NAME)
    try:
        everything = list(_all_nodes(own))
        cluster = own.get(nodes.CLUSTER)
        assert cluster is not None, "a single node has written its cluster id before anything else"
    finally:
        own.close()
    paths = [create.path for create in everything]
    there = store.get_many(paths)
    operations: list[Operation] = [
        create if known is None else Set(create.path, create.data)
        for create, known in zip(everything, there, strict=True)
        if known is None or known.data != create.data
    ]
    for multi in in_multis(operations):
        store.multi(multi)
    store.multi([Create(nodes.CLUSTER, cluster.data)])
    topics = sum(path.startswith(f"{nodes.TOPICS}/") for path in paths)
    log.warning("this single node is a broker of a cluster now", extra={"topics": topics})


def _all_nodes(own: EmbeddedStore) -> Iterator[Create]:
    yield from (Create(folder) for folder in (*nodes.FOLDERS, *nodes.CLUSTER_FOLDERS))
    for path in _NODES:
        if (node := own.get(path)) is not None:
            yield Create(path, node.data)
    for folder in _FOLDERS:
        names = own.children(folder)
        for name, node in zip(names, own.get_many([f"{folder}/{name}" for name in names]), strict=True):
            if node is not None:
                yield Create(f"{folder}/{name}", node.data)


def put_away(directory: Path, disk: Disk) -> None:
    """The file of a node that has moved: nobody may go on with it."""
    if is_single_node(directory):
        disk.rename(directory / FILE_NAME, directory / (FILE_NAME + MOVED_SUFFIX))
