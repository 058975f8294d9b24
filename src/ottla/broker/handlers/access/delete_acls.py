"""DeleteAcls v1-3. All that a filter meets goes, and is told."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.access.acl_changes import delete, filter_of
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.acls import Acl, AclFilter
from ottla.protocol.messages import DeleteAclsRequest, DeleteAclsResponse

Result = DeleteAclsResponse.DeleteAclsFilterResult


async def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    if broker.access is None:
        code, message = ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."
        return DeleteAclsResponse(
            filter_results=[Result(error_code=code, error_message=message)] * len(request.filters)
        )
    principal, host = context.principal, context.client_host
    filters: list[AclFilter | None] = []
    results = []
    for asked in request.filters:
        try:
            filters.append(filter_of(asked))
            results.append(Result(error_message=None))
        except ApiError as error:
            filters.append(None)
            results.append(Result(error_code=error.code, error_message=error.message))
    for result, found in zip(results, await delete(broker, filters, context.requester), strict=True):
        result.matching_acls = [_gone(acl) for acl in found]
        for acl in found:
            audit.tell("ACL deleted", principal, host, **audit.acl(acl))
    return DeleteAclsResponse(filter_results=results)


def _gone(acl: Acl) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
