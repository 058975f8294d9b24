"""Whom a client should have asked (KIP-951): with an error that means "not here" it hears at once who leads, and where
that broker is, so that it need not ask for metadata first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.common.errors import ErrorCode
from ottla.protocol.node_endpoints import NodeEndpoint

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partitions.partition_table import Keyed

_HINTED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def leader_hint(table: Keyed, error: int, key: bytes, index: int) -> tuple[int, int] | None:
    """Leader and leader epoch, if this error asks for them and they are known."""
    if error not in _HINTED:
        return None
    image = table.image_of(key, index)
    return None if image is None else (image.leader, image.leader_epoch)


def endpoints_of(broker: Broker, leaders: Iterable[int], listener: str) -> list[NodeEndpoint]:
    """Where these brokers are, for a client of this listener."""
    brokers, found = broker.image.brokers, []
    for leader in sorted(set(leaders)):
        known = brokers.get(leader)
        address = None if known is None else known.endpoints.get(listener)
        if known is not None and address is not None:
            found.append(NodeEndpoint(leader, *address, known.rack))
    return found
