"""Names of nodes and stores: given, or made of the kind and a number, as Kafka Streams makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.streams.serdes import Serde
from ottla.streams.topology import Topology

if TYPE_CHECKING:
    from ottla.streams.dsl.kstream import KStream


class Graph:
    """The topology that grows, and the numbers for names."""

    def __init__(self, default_key: Serde, default_value: Serde, *, merges_repartitions: bool = True) -> None:
        self.topology = Topology()
        self.default_key = default_key
        self.default_value = default_value
        self.merges_repartitions = merges_repartitions
        # Of a stream whose key was changed, by its node, its serdes and whether records without a key are dropped: what
        # came out of its repartition topic.
        self.repartitioned: dict[tuple[str, int, int, bool], KStream] = {}
        self._number = 0

    def name(self, kind: str, given: str | None = None) -> str:
        """A number is used up in any case, so that a name given to one operator renames no other."""
        number = self._number
        self._number += 1
        return given if given is not None else f"{kind}-{number:010d}"
