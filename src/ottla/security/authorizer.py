"""May this principal do that? Decided as Kafka's StandardAuthorizer does.

- A super user may do everything.
- Of the ACLs whose pattern covers the resource (its name, a prefix of it, or `*`) those count that are for the
  principal or for `User:*`, and for the client's address or for every address. One DENY among them decides; else one
  ALLOW.
- Permission to read, write, delete or alter implies to describe, and to alter configs implies to describe them. A
  DENY implies nothing.
- If no ACL covers the resource at all, `allow.everyone.if.no.acl.found` decides.

The rules are an index that is made anew when an ACL changes, and what was decided with them is remembered until then:
a client asks the same again with every request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ottla.metadata.acls import EVERYBODY, WILDCARD, Acl, Operation, PatternType, Permission, ResourceType

_IMPLY = {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)),
}
# Names are the client's choice, so what is remembered of them has an end: so many, and none that is longer than those
# of topics. A group may be called by 32 KiB, and 20,000 of them would be the broker's memory.
_REMEMBERED_MAX = 20_000
_REMEMBERED_NAME_MAX = 256

Question = tuple[str, str, Operation, ResourceType, str]


class Authorizer:
    def __init__(
        self,
        acls: Iterable[Acl] = (),
        *,
        super_users: Iterable[str] = (),
        allows_without_acl: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_acl = allows_without_acl
        self._literal: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefixed: dict[tuple[ResourceType, str], list[Acl]] = {}
        # Of the prefixes, by type, so that only these beginnings of a name are looked up.
        self._prefix_lengths: dict[ResourceType, list[int]] = {}
        self._by_type: dict[ResourceType, list[Acl]] = {}
        self._remembered: dict[Question, bool] = {}
        for acl in acls:
            self._add(acl)

    def _add(self, acl: Acl) -> None:
        if ":" in acl.host:
            acl = replace(acl, host=_as_clients_have_it(acl.host))
        key = acl.resource_type, acl.resource_name
        self._by_type.setdefault(acl.resource_type, []).append(acl)
        if acl.pattern_type is PatternType.PREFIXED:
            self._prefixed.setdefault(key, []).append(acl)
            lengths = self._prefix_lengths.setdefault(acl.resource_type, [])
            if len(acl.resource_name) not in lengths:
                lengths.append(len(acl.resource_name))
        else:
            self._literal.setdefault(key, []).append(acl)

    def allows(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        question = principal, host, operation, resource_type, name
        answer = self._remembered.get(question)
        if answer is None:
            if len(name) > _REMEMBERED_NAME_MAX:
                return self._decide(principal, host, operation, resource_type, name)
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            answer = self._remembered[question] = self._decide(principal, host, operation, resource_type, name)
        return answer

    def _decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        if principal in self._super_users:
            return True
        covered = allowed = False
        for acl in self._covering(kind, name):
            covered = True
            if _concerns(acl, principal, host, operation):
                if acl.permission is Permission.DENY:
                    return False
                allowed = True
        return allowed or (not covered and self._allows_without_acl)

    def _covering(self, kind: ResourceType, name: str) -> Iterator[Acl]:
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        for length in self._prefix_lengths.get(kind, ()):
            if length <= len(name):
                yield from self._prefixed.get((kind, name[:length]), ())

    def allows_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there may be a resource of this type to which the principal may do it (KIP-679). An ALLOW counts if
        no DENY covers all that it covers."""
        # A name that nobody has stands for all those that no ACL names.
        if self.allows(principal, host, operation, kind, "hardcode"):
            return True
        denied_names, denied_prefixes, allowed = set(), set(), []
        for acl in self._by_type.get(kind, ()):
            if not _is_about(acl, principal, host) or acl.operation not in (operation, Operation.ALL):
                continue
            if acl.permission is Permission.ALLOW:
                allowed.append(acl)
            elif acl.pattern_type is PatternType.PREFIXED:
                denied_prefixes.add(acl.resource_name)
            elif acl.resource_name == WILDCARD:
                return False
            else:
                denied_names.add(acl.resource_name)
        return any(_leaves_something(acl, denied_names, denied_prefixes) for acl in allowed)


def _leaves_something(acl: Acl, denied_names: set[str], denied_prefixes: set[str]) -> bool:
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return True
        if name in denied_names:
            return False
    return not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))


def _as_clients_have_it(host: str) -> str:
    """An IPv6 address has several spellings: Java writes 0:0:0:0:0:0:0:1 for what a socket here calls ::1. A DENY must
    not depend on it."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYBODY) and acl.host in (host, WILDCARD)


def _concerns(acl: Acl, principal: str, host: str, operation: Operation) -> bool:
    if not _is_about(acl, principal, host):
        return False
    if acl.operation in (operation, Operation.ALL):
        return True
    return acl.permission is Permission.ALLOW and acl.operation in _IMPLY.get(operation, ())
