"""AlterClientQuotas v0-1. Quotas are not here yet: refused, because a limit that is taken but not kept is worse."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(
    broker: Broker, context: RequestContext, request: AlterClientQuotasRequest
) -> Steps[AlterClientQuotasResponse]:
    entries = []
    for entry in request.entries:
        entity = yield from each(entry.entity, _entity)
        entries.append(
            AlterClientQuotasResponse.EntryData(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="Client quotas are not supported by this broker.",
                entity=entity,
            )
        )
        yield None
    return AlterClientQuotasResponse(entries=entries)


def _entity(entity: AlterClientQuotasRequest.EntityData) -> AlterClientQuotasResponse.EntityData:
    return AlterClientQuotasResponse.EntityData(entity_type=entity.entity_type, entity_name=entity.entity_name)
