"""Nodes of the metadata store that cannot be read, or are an older copy of what is known: which they are now.

Each is told of once, when it is found and when it is whole again. The controller puts back what it knows of them
(`put_back`): it alone writes them, so that what it wrote last is what should be there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ottla.metadata import folding
from ottla.metadata.image import ClusterImage
from ottla.metastore.port import MetadataStore, Operation, Set

log = logging.getLogger("ottla.topics")


class DamagedNodes:
    def __init__(self) -> None:
        # By path, what is wrong with it.
        self._found: dict[str, str] = {}
        # Called when there is a new one.
        self.on_found: Callable[[], None] = lambda: None

    def folded(self, image: ClusterImage, read: folding.Nodes) -> ClusterImage:
        """The image with what was read, as far as it can be read."""
        damaged: dict[str, str] = {}

        def complain(path: str, error: Exception) -> None:
            damaged[path] = repr(error)

        folded = folding.with_nodes(image, read, complain)
        if damaged or self._found:
            self._note(read, damaged)
        return folded

    def _note(self, read: Iterable[str], damaged: dict[str, str]) -> None:
        for path in read:
            if path not in damaged and self._found.pop(path, None) is not None:
                log.warning("a node of the metadata store is whole again", extra={"node": path})
        news = {path: why for path, why in damaged.items() if self._found.get(path) != why}
        self._found |= news
        for path, why in news.items():
            log.error(
                "a node of the metadata store is damaged and is passed over: what was known of it stays in force",
                extra={"node": path, "why": why},
            )
        if news:
            self.on_found()

    def known(self, image: ClusterImage) -> list[str]:
        """Those of which the image knows what they should hold."""
        return [path for path in self._found if folding.known_node(image, path) is not None]


def put_back(store: MetadataStore, image: ClusterImage, paths: Iterable[str]) -> list[Operation]:
    """On the thread of the store: what to write, where a node is still damaged."""
    wanted = list(paths)
    store.sync()
    operations: list[Operation] = []
    for path, node in zip(wanted, store.get_many(wanted), strict=True):
        data = folding.known_node(image, path)
        if node is not None and data is not None and _is_damaged(image, path, node.data):
            operations.append(Set(path, data, node.version))
    return operations


def _is_damaged(image: ClusterImage, path: str, data: bytes) -> bool:
    complaints: list[str] = []
    folding.with_nodes(image, {path: data}, lambda damaged, _: complaints.append(damaged))
    return bool(complaints)
