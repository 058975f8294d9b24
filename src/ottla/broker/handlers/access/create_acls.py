"""CreateAcls v1-3. Each good one is made, each bad one gets its own error."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.access.acl_changes import acl_of, create
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.acls import Acl
from ottla.protocol.messages import CreateAclsRequest, CreateAclsResponse

Result = CreateAclsResponse.AclCreationResult


async def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    if broker.access is None:
        code, message = ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."
        return CreateAclsResponse(results=[Result(error_code=code, error_message=message)] * len(request.creations))
    principal, host = context.principal, context.client_host
    good: list[Acl] = []
    results = []
    pause = Pause()
    for creation in request.creations:
        await pause.when_due()
        try:
            good.append(acl_of(creation))
            results.append(Result(error_message=None))
        except ApiError as error:
            results.append(Result(error_code=error.code, error_message=error.message))
    await create(broker, good, context.requester)
    for acl in good:
        await pause.when_due()
        audit.tell("ACL created", principal, host, **audit.acl(acl))
    return CreateAclsResponse(results=results)
