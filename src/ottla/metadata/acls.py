"""Access control lists as values: who may, or may not, do what to which resource, from where.

Names and numbers are those of Kafka's protocol; a node of the metadata store holds one of them. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum

WILDCARD = "*"
EVERYBODY = "User:*"
# The one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class Acl:
    resource_type: ResourceType
    # A whole name, WILDCARD for every name, or with PREFIXED how names begin.
    resource_name: str
    pattern_type: PatternType
    # Such as User:ada; EVERYBODY for all of them.
    principal: str
    # An address, or WILDCARD.
    host: str
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True)
class AclFilter:
    """What DescribeAcls and DeleteAcls look for; None and ANY are met by everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.resource_name == acl.resource_name
        # All that have an effect on a resource of this name.
        if acl.pattern_type is PatternType.LITERAL:
            return acl.resource_name in (self.resource_name, WILDCARD)
        return self.resource_name.startswith(acl.resource_name)


def encode_acl(acl: Acl) -> bytes:
    value = {
        "resource_type": acl.resource_type.name,
        "name": acl.resource_name,
        "pattern": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_acl(data: bytes) -> Acl:
    value = json.loads(data)
    return Acl(
        ResourceType[value["resource_type"]],
        value["name"],
        PatternType[value["pattern"]],
        value["principal"],
        value["host"],
        Operation[value["operation"]],
        Permission[value["permission"]],
    )
