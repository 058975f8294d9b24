"""AlterClientQuotas v0-1 (KIP-546). Each good entity is changed, each bad one gets its own error."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.quotas.quota_changes import Alteration, alter, check
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.quotas import Entity
from ottla.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

_DUPLICATE = ApiError(ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")


async def handle(
    broker: Broker, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    principal, host = context.principal, context.client_host
    pause = Pause()
    wanted: dict[Entity, list[tuple[str, float | None]]] = {}
    entries = []
    for entry in request.entries:
        await pause.when_due()
        names = [(part.entity_type, part.entity_name) for part in entry.entity]
        values = [(op.key, None if op.remove else op.value) for op in entry.ops]
        fault = None
        try:
            entity = check(Alteration(names, values))
            if entity in wanted:
                raise _DUPLICATE
            wanted[entity] = values
        except ApiError as error:
            fault = error
        entries.append(_entry(entry, fault))
    if wanted and not request.validate_only:
        changed = await alter(broker, wanted, context.requester)
        for entity, quota in changed.items():
            await pause.when_due()
            audit.tell("quota changed", principal, host, **audit.quota(entity, quota))
    return AlterClientQuotasResponse(entries=entries)


def _entry(entry: AlterClientQuotasRequest.EntryData, fault: ApiError | None) -> AlterClientQuotasResponse.EntryData:
    return AlterClientQuotasResponse.EntryData(
        error_code=ErrorCode.NONE if fault is None else fault.code,
        error_message=None if fault is None else fault.message,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ],
    )
