"""ACLs as the wire has them, to values and back; and how they are made and removed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.controller.change_log import Requester
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata import nodes
from ottla.metadata.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    encode_acl,
)
from ottla.metastore.port import Create, Delete
from ottla.metastore.port import Operation as StoreOperation

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

# What can be done to each type of resource, beside ALL.
_O = Operation
_CONFIGS = {_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}
_POSSIBLE = {
    ResourceType.TOPIC: {_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE} | _CONFIGS,
    ResourceType.GROUP: {_O.READ, _O.DELETE, _O.DESCRIBE} | _CONFIGS,
    ResourceType.CLUSTER: {_O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.IDEMPOTENT_WRITE} | _CONFIGS,
    ResourceType.TRANSACTIONAL_ID: {_O.WRITE, _O.DESCRIBE, _O.TWO_PHASE_COMMIT},
    ResourceType.DELEGATION_TOKEN: {_O.DESCRIBE},
    ResourceType.USER: {_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS},
}


def acl_of(creation: Any) -> Acl:
    """Raises ApiError(INVALID_REQUEST) for what cannot be an ACL."""
    acl = Acl(
        _value(ResourceType, creation.resource_type, "resource type"),
        creation.resource_name,
        _value(PatternType, creation.resource_pattern_type, "pattern type"),
        creation.principal,
        creation.host,
        _value(Operation, creation.operation, "operation"),
        _value(Permission, creation.permission_type, "permission type"),
    )
    if acl.resource_type not in _POSSIBLE:
        raise _invalid(f"Invalid resourceType {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {acl.pattern_type.name}")
    if acl.permission not in (Permission.ALLOW, Permission.DENY):
        raise _invalid(f"Invalid permissionType {acl.permission.name}")
    if acl.operation is not Operation.ALL and acl.operation not in _POSSIBLE[acl.resource_type]:
        raise _invalid(f"Invalid operation {acl.operation.name} for a resource of type {acl.resource_type.name}")
    if not acl.resource_name:
        raise _invalid("Resource name should not be empty")
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    kind, colon, name = acl.principal.partition(":")
    if not (kind and colon and name):
        raise _invalid(f"Could not parse principal from `{acl.principal}`: it has the form User:NAME")
    if not acl.host:
        raise _invalid(f"Host should be an address or {WILDCARD}")
    return acl


def filter_of(asked: Any) -> AclFilter:
    """Raises ApiError(INVALID_REQUEST)."""
    found = AclFilter(
        _value(ResourceType, asked.resource_type_filter, "resource type"),
        asked.resource_name_filter,
        _value(PatternType, asked.pattern_type_filter, "pattern type"),
        asked.principal_filter,
        asked.host_filter,
        _value(Operation, asked.operation, "operation"),
        _value(Permission, asked.permission_type, "permission type"),
    )
    if 0 in (found.resource_type, found.pattern_type, found.operation, found.permission):
        raise _invalid("The filter has UNKNOWN elements")
    return found


def _value(kind: Any, number: int, what: str) -> Any:
    try:
        return kind(number)
    except ValueError:
        raise _invalid(f"Unknown {what} {number}") from None


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why)


async def create(broker: Broker, acls: Sequence[Acl], by: Requester) -> None:
    """Those that are there already stay as they are."""

    async def change() -> None:
        known = set(broker.image.acls.values())
        new = [acl for acl in dict.fromkeys(acls) if acl not in known]
        operations: list[StoreOperation] = [Create(nodes.acl_path(uuid.uuid4().hex), encode_acl(acl)) for acl in new]
        await broker.topics.commit_and_adopt(operations)

    await broker.topics.change(change(), by)


async def delete(broker: Broker, filters: Sequence[AclFilter | None], by: Requester) -> list[list[Acl]]:
    """What each filter met; all of it is gone. None meets nothing."""

    async def change() -> list[list[Acl]]:
        known = broker.image.acls
        found: list[list[Acl]] = []
        doomed: dict[str, None] = {}
        for wanted in filters:
            met = {} if wanted is None else {key: acl for key, acl in known.items() if wanted.matches(acl)}
            found.append(list(met.values()))
            doomed |= dict.fromkeys(met)
        await broker.topics.commit_and_adopt([Delete(nodes.acl_path(key)) for key in doomed])
        return found

    return await broker.topics.change(change(), by)
