"""Client quotas as the wire has them: what may be set for whom, how that is kept, and which of them a filter meets."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.controller.change_log import Requester
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata import nodes
from ottla.metadata.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuota,
    Entity,
    encode_quota,
    entity_of,
    quota_id,
)
from ottla.metastore.port import Create, Delete, Operation, Set

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_CLIENT_KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
_WHOLE_NUMBERS = {PRODUCER_BYTE_RATE: "a Long", CONSUMER_BYTE_RATE: "a Long", CONNECTION_CREATION_RATE: "an Integer"}
_LARGEST = {"a Long": ("a LONG", 2**63 - 1), "an Integer": ("an INT", 2**31 - 1)}
_ROUNDED = 1e-6


class Alteration(NamedTuple):
    """What is asked for one entity."""

    names: Sequence[tuple[str, str | None]]
    # A value of None removes the limit.
    values: Sequence[tuple[str, float | None]]


def check(alteration: Alteration) -> Entity:
    """For whom it is. Raises ApiError(INVALID_REQUEST)."""
    names: dict[str, str | None] = {}
    for kind, name in alteration.names:
        if kind in names:
            raise _invalid(f"Invalid empty client quota entity, duplicate entity entry {kind}")
        if kind not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name is not None and not name:
            raise _invalid(f"Empty {kind} not supported")
        names[kind] = name
    keys = _keys_of(names)
    seen = set()
    for key, value in alteration.values:
        if key in seen:
            raise _invalid(f"Duplicate quota key {key} not updating quota for this entity")
        seen.add(key)
        if value is not None:
            _check_value(keys, key, value)
    return entity_of(names)


def _keys_of(names: Mapping[str, str | None]) -> tuple[str, ...]:
    if IP not in names:
        if not names:
            raise _invalid("Invalid empty client quota entity")
        return _CLIENT_KEYS
    if USER in names or CLIENT_ID in names:
        raise _invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    address = names[IP]
    if address is not None:
        try:
            known = ipaddress.ip_address(address)
            mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
            names_canonical = str(mapped or known)
        except ValueError:
            raise _invalid(f"{address} is not a valid IP: names of hosts are not looked up here") from None
        if names_canonical != address:
            raise _invalid(f"{address} is not how connections are known: write {names_canonical}")
    return (CONNECTION_CREATION_RATE,)


def _check_value(keys: Sequence[str], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if math.isnan(value) or value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if math.isinf(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if key in _WHOLE_NUMBERS:
        kind, largest = _LARGEST[_WHOLE_NUMBERS[key]]
        if value > largest:
            raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if key in _WHOLE_NUMBERS and abs(value - math.floor(value + _ROUNDED)) > _ROUNDED:
        raise _invalid(f"Configuration {key} must be {_WHOLE_NUMBERS[key]} value")


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why)


async def alter(
    broker: Broker, wanted: Mapping[Entity, Sequence[tuple[str, float | None]]], by: Requester
) -> dict[Entity, ClientQuota | None]:
    """All of it in one step. What each entity that has changed may use now."""

    async def change() -> dict[Entity, ClientQuota | None]:
        known, pause = broker.image.quotas, Pause()
        changed: dict[Entity, ClientQuota | None] = {}
        operations: list[Operation] = []
        for entity, values in wanted.items():
            await pause.when_due()
            key = quota_id(entity)
            before = known.get(key)
            limits = dict(before.values) if before is not None else {}
            for name, value in values:
                if value is None:
                    limits.pop(name, None)
                else:
                    limits[name] = value
            if (before is not None and limits == before.values) or (before is None and not limits):
                continue
            path = nodes.quota_path(key)
            changed[entity] = quota = ClientQuota(entity, limits) if limits else None
            if quota is None:
                operations.append(Delete(path))
            else:
                data = encode_quota(quota)
                operations.append(Create(path, data) if before is None else Set(path, data))
        await broker.topics.commit_and_adopt(operations)
        return changed

    return await broker.topics.change(change(), by)


class QuotaFilter(NamedTuple):
    # The name that is wanted of each type; None is the default.
    exact: Mapping[str, str | None]
    # Types of which any name will do.
    any_of: frozenset[str]
    # Only entities that have no other types.
    is_strict: bool

    def meets(self, entity: Entity) -> bool:
        names = dict(entity)
        if self.is_strict and len(names) != len(self.exact) + len(self.any_of):
            return False
        return all(kind in names and names[kind] == name for kind, name in self.exact.items()) and all(
            kind in names for kind in self.any_of
        )
