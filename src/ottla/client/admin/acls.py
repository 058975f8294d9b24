"""Access control lists over the wire: which there are, and how they are added and removed."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client.admin.admin_answers import check_answer
from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode, OttlaError
from ottla.metadata.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ottla.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest


def describe_acls(cluster: ClusterClient, wanted: AclFilter) -> list[Acl]:
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )

    def ask() -> list[Acl]:
        answer = cluster.any_broker().call(request)
        _check(answer.error_code, answer.error_message, "the list of ACLs")
        return [
            Acl(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                row.principal,
                row.host,
                Operation(row.operation),
                Permission(row.permission_type),
            )
            for resource in answer.resources
            for row in resource.acls
        ]

    return sorted(cluster.settled(ask), key=_order)


def create_acls(cluster: ClusterClient, wanted: Sequence[Acl]) -> None:
    """One that exists already is no error."""
    one = CreateAclsRequest.AclCreation
    request = CreateAclsRequest(
        creations=[
            one(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in wanted
        ]
    )

    def ask() -> None:
        for row in cluster.any_broker().call(request).results:
            _check(row.error_code, row.error_message, "the ACL")

    cluster.settled(ask)


def delete_acls(cluster: ClusterClient, wanted: Sequence[Acl]) -> int:
    """Exactly these; how many of them were there."""
    one = DeleteAclsRequest.DeleteAclsFilter
    request = DeleteAclsRequest(
        filters=[
            one(
                resource_type_filter=acl.resource_type,
                resource_name_filter=acl.resource_name,
                pattern_type_filter=acl.pattern_type,
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in wanted
        ]
    )

    def ask() -> int:
        removed = 0
        for result in cluster.any_broker().call(request).filter_results:
            _check(result.error_code, result.error_message, "the ACL")
            for row in result.matching_acls:
                _check(row.error_code, row.error_message, "the ACL")
                removed += 1
        return removed

    return cluster.settled(ask)


def _check(code: int, message: str | None, what: str) -> None:
    if code == ErrorCode.SECURITY_DISABLED:
        raise OttlaError(
            "the cluster has no authorizer, so there are no ACLs: set authorizer.class.name on its brokers."
        )
    check_answer(code, message, what)


def _order(acl: Acl) -> tuple[str, str, int, str, int, int, str]:
    return (
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.permission,
        acl.operation,
        acl.host,
    )
