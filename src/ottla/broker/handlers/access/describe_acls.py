"""DescribeAcls v1-3. The ACLs that a filter meets, by resource."""

from __future__ import annotations

from ottla.broker.access.acl_changes import filter_of
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.acls import Acl, PatternType, ResourceType
from ottla.protocol.messages import DescribeAclsRequest, DescribeAclsResponse


def handle(broker: Broker, context: RequestContext, request: DescribeAclsRequest) -> Steps[DescribeAclsResponse]:
    if broker.access is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    wanted = filter_of(request)
    by_resource: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in broker.image.acls.values():
        if wanted.matches(acl):
            key = acl.resource_type, acl.resource_name, acl.pattern_type
            by_resource.setdefault(key, []).append(acl)
        yield None
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResponse.DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=[_described(acl) for acl in acls]
            )
            for (kind, name, pattern), acls in by_resource.items()
        ],
    )


def _described(acl: Acl) -> DescribeAclsResponse.AclDescription:
    return DescribeAclsResponse.AclDescription(
        principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
    )
