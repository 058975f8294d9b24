"""Client quotas as they are kept: for whom, and how much of what. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

# Types and names in the order of the types; a name of None is the default of its type.
Entity = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """All limits of one entity."""

    entity: Entity
    values: Mapping[str, float]


def entity_of(names: Mapping[str, str | None]) -> Entity:
    return tuple(sorted(names.items()))


def quota_id(entity: Entity) -> str:
    """Under which it is kept."""
    return json.dumps(entity, separators=(",", ":"))


def encode_quota(quota: ClientQuota) -> bytes:
    value = {"entity": dict(quota.entity), "values": dict(quota.values)}
    return json.dumps(value, separators=(",", ":")).encode()


def decode_quota(data: bytes) -> ClientQuota:
    value = json.loads(data)
    return ClientQuota(entity_of(value["entity"]), {key: float(limit) for key, limit in value["values"].items()})
