"""Notes of deleted topics whose logs may still be on disk, so that they do not come back as strays.

A note is written in the same step that deletes the topic. On a single node it goes when the logs are gone. In a
cluster it names the brokers that have replicas; each takes itself off the list when it has removed them, be it at its
next start, and the last one takes the note away.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.common.ids import TopicId
from ottla.metadata import nodes
from ottla.metadata.image import TopicImage
from ottla.metastore.port import Conflict, Create, Delete, MetadataStore, Operation, Set, StoreConflict


def note(topic: TopicImage) -> Create:
    brokers = sorted({replica for partition in topic.partitions for replica in partition.replicas})
    value = {"name": topic.name, "partitions": len(topic.partitions), "brokers": brokers}
    return Create(nodes.deletion_path(topic.id), nodes.encode(value))


def confirm_deletions(store: MetadataStore, topic_ids: Iterable[TopicId], broker: int) -> None:
    """This broker has no logs of these topics any more. Raises StoreUnavailable."""
    for topic_id in topic_ids:
        _confirm(store, nodes.deletion_path(topic_id), broker)


def _confirm(store: MetadataStore, path: str, broker: int) -> None:
    while (known := store.get(path)) is not None:
        value = nodes.decode(known.data)
        left = [other for other in value.get("brokers", ()) if other != broker]
        write: Operation = Delete(path, known.version)
        if left:
            write = Set(path, nodes.encode({**value, "brokers": left}), known.version)
        try:
            store.multi([write], urgent=True)
            return
        except StoreConflict as conflict:
            if conflict.reason is Conflict.NO_NODE:
                return
            # Another broker was faster: look again.


def concerns(note_data: bytes, broker: int) -> bool:
    """Whether this broker may have logs of the deleted topic; an older note is of a single node."""
    brokers = nodes.decode(note_data).get("brokers")
    return brokers is None or broker in brokers
