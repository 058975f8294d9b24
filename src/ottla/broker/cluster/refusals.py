"""The answer to a request that could not be forwarded because there is no controller: in the form of each API.

Most have an error code of their own for the whole answer. Those here have one for each thing that was asked for, and
without it a client would only see that its connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.common.errors import ApiError
from ottla.protocol import messages as m
from ottla.protocol.codec import Message


def refusal(name: str, request: Any, error: ApiError) -> Message | None:
    """None where the answer as a whole can say so."""
    make = _REFUSALS.get(name)
    return None if make is None else make(request, {"error_code": error.code, "error_message": error.message})


def _create_topics(request: Any, why: dict[str, Any]) -> Message:
    line = m.CreateTopicsResponse.CreatableTopicResult
    return m.CreateTopicsResponse(topics=[line(name=topic.name, configs=(), **why) for topic in request.topics])


def _delete_topics(request: Any, why: dict[str, Any]) -> Message:
    line = m.DeleteTopicsResponse.DeletableTopicResult
    asked: list[tuple[str | None, dict[str, Any]]] = [(name, {}) for name in request.topic_names or ()]
    asked += [(topic.name, {"topic_id": topic.topic_id}) for topic in request.topics or ()]
    return m.DeleteTopicsResponse(responses=[line(name=name, **topic_id, **why) for name, topic_id in asked])


def _create_partitions(request: Any, why: dict[str, Any]) -> Message:
    line = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    return m.CreatePartitionsResponse(results=[line(name=topic.name, **why) for topic in request.topics])


def _alter_configs(request: Any, why: dict[str, Any]) -> Message:
    line = m.AlterConfigsResponse.AlterConfigsResourceResponse
    return m.AlterConfigsResponse(
        responses=[
            line(resource_type=resource.resource_type, resource_name=resource.resource_name, **why)
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(request: Any, why: dict[str, Any]) -> Message:
    line = m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return m.IncrementalAlterConfigsResponse(
        responses=[
            line(resource_type=resource.resource_type, resource_name=resource.resource_name, **why)
            for resource in request.resources
        ]
    )


def _create_acls(request: Any, why: dict[str, Any]) -> Message:
    line = m.CreateAclsResponse.AclCreationResult
    return m.CreateAclsResponse(results=[line(**why) for _ in request.creations])


def _delete_acls(request: Any, why: dict[str, Any]) -> Message:
    line = m.DeleteAclsResponse.DeleteAclsFilterResult
    return m.DeleteAclsResponse(filter_results=[line(matching_acls=(), **why) for _ in request.filters])


def _alter_client_quotas(request: Any, why: dict[str, Any]) -> Message:
    line, entity = m.AlterClientQuotasResponse.EntryData, m.AlterClientQuotasResponse.EntityData
    return m.AlterClientQuotasResponse(
        entries=[
            line(
                entity=[entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
                **why,
            )
            for entry in request.entries
        ]
    )


def _alter_scram_credentials(request: Any, why: dict[str, Any]) -> Message:
    line = m.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    users = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    return m.AlterUserScramCredentialsResponse(results=[line(user=user, **why) for user in users])


_REFUSALS: dict[str, Callable[[Any, dict[str, Any]], Message]] = {
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _incremental_alter_configs,
    "CreateAcls": _create_acls,
    "DeleteAcls": _delete_acls,
    "AlterClientQuotas": _alter_client_quotas,
    "AlterUserScramCredentials": _alter_scram_credentials,
}
