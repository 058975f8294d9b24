"""DescribeClientQuotas v0-1 (KIP-546). What is set for the entities that a filter meets; `strict` leaves out those
that have more to them than it names."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.quotas.quota_changes import QuotaFilter
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.quotas import ENTITY_TYPES, IP, ClientQuota
from ottla.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> Steps[DescribeClientQuotasResponse]:
    try:
        wanted = _filter(request)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entries = []
    for quota in broker.image.quotas.values():
        yield None
        if wanted.meets(quota.entity):
            entries.append(_entry(quota))
    return DescribeClientQuotasResponse(entries=entries)


def _filter(request: DescribeClientQuotasRequest) -> QuotaFilter:
    exact: dict[str, str | None] = {}
    any_of: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in exact or kind in any_of:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type == _EXACT:
            if component.match is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            exact[kind] = component.match
        elif component.match_type in (_DEFAULT, _SPECIFIED):
            if component.match is not None:
                name = "DEFAULT" if component.match_type == _DEFAULT else "SPECIFIED"
                raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
            if component.match_type == _DEFAULT:
                exact[kind] = None
            else:
                any_of.add(kind)
        else:
            raise _invalid(f"Unknown match type {component.match_type}")
    types = exact.keys() | any_of
    if IP in types and len(types) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return QuotaFilter(exact, frozenset(any_of), request.strict)


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why)


def _entry(quota: ClientQuota) -> DescribeClientQuotasResponse.EntryData:
    return DescribeClientQuotasResponse.EntryData(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in quota.entity
        ],
        values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in quota.values.items()],
    )
