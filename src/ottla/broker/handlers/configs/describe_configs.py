"""DescribeConfigs v1-4. Every setting with its value, where that comes from, its synonyms, type and documentation.

A name that a resource does not have is left out of the answer, as in Kafka. Loggers and brokers are this broker's own.
"""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.configs.config_entries import Entry
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError
from ottla.common.steps import Steps
from ottla.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse


def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    """A resource takes a millisecond or two, and consoles ask for all topics at once. What is named twice is told
    once: otherwise a small request could ask for an answer without end."""
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    results = []
    for resource in resources.values():
        results.append(_describe(broker, resource, request))
        yield None
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker, resource: DescribeConfigsRequest.DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResponse.DescribeConfigsResult:
    result = DescribeConfigsResponse.DescribeConfigsResult(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    wanted = set(resource.configuration_keys or ())
    try:
        entries = broker.configs.describe(resource.resource_type, resource.resource_name)
        result.configs = [_result(entry, request) for entry in entries if not wanted or entry.name in wanted]
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _result(entry: Entry, request: DescribeConfigsRequest) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsResponse.DescribeConfigsSynonym(
            name=synonym.name, value=entry.shown(synonym.text), source=synonym.source
        )
        for synonym in (entry.supplied if request.include_synonyms else ())
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
