"""DescribeConfigs v1-4. Every setting with its value, where that comes from, its synonyms, type and documentation.

A name that a resource does not have is left out of the answer, as in Kafka. Loggers and brokers are this broker's own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.config_entries import Entry
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError
from ottla.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Result = DescribeConfigsResponse.DescribeConfigsResourceResult
    Made = dict[int, tuple[Entry, Result]]


# Thousands of topics in one request must not stall other clients.
RESOURCES_PER_TURN = 20


async def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results: list[DescribeConfigsResponse.DescribeConfigsResult] = []
    made: Made = {}
    for number, resource in enumerate(request.resources, start=1):
        results.append(_describe(broker, resource, request, made))
        if number % RESOURCES_PER_TURN == 0:
            await asyncio.sleep(0)
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker,
    resource: DescribeConfigsRequest.DescribeConfigsResource,
    request: DescribeConfigsRequest,
    made: Made,
) -> DescribeConfigsResponse.DescribeConfigsResult:
    result = DescribeConfigsResponse.DescribeConfigsResult(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    wanted = set(resource.configuration_keys or ())
    try:
        entries = broker.configs.describe(resource.resource_type, resource.resource_name)
        result.configs = [
            _shared_result(entry, request, made) for entry in entries if not wanted or entry.name in wanted
        ]
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _shared_result(entry: Entry, request: DescribeConfigsRequest, made: Made) -> Result:
    """What topics inherit is the same entry in all of them: one object answers for it."""
    known = made.get(id(entry))
    if known is None:
        # The entry is kept too, so that its id stays its own.
        known = made[id(entry)] = (entry, _result(entry, request))
    return known[1]


def _result(entry: Entry, request: DescribeConfigsRequest) -> Result:
    synonyms = [
        DescribeConfigsResponse.DescribeConfigsSynonym(name=one.name, value=entry.shown(one.text), source=one.source)
        for one in (entry.supplied if request.include_synonyms else ())
    ]
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.shown(entry.text),
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.config_type,
        documentation=entry.doc if request.include_documentation else None,
    )
