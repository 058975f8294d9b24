"""What a client is told when its request cannot be forwarded because there is no controller."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.apis import APIS
from ottla.broker.cluster.refusals import refusal
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.definitions import is_within

NOBODY = ApiError(ErrorCode.NOT_CONTROLLER, "there is no controller now")
_topic = m.CreateTopicsRequest.CreatableTopic(
    name="t", num_partitions=1, replication_factor=1, assignments=(), configs=()
)
_config = m.AlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="t", configs=())
_increment = m.IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="t", configs=())
_acl = m.CreateAclsRequest.AclCreation(
    resource_type=2, resource_name="t", principal="User:x", host="*", operation=3, permission_type=3
)
_filter = m.DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=2, operation=1, permission_type=1)
_entity = m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="x")
REQUESTS: list[Any] = [
    m.CreateTopicsRequest(topics=[_topic]),
    m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="t")]),
    m.DeleteTopicsRequest(topic_names=["t"]),
    m.CreatePartitionsRequest(topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2)]),
    m.AlterConfigsRequest(resources=[_config]),
    m.IncrementalAlterConfigsRequest(resources=[_increment]),
    m.CreateAclsRequest(creations=[_acl]),
    m.DeleteAclsRequest(filters=[_filter]),
    m.AlterClientQuotasRequest(entries=[m.AlterClientQuotasRequest.EntryData(entity=[_entity], ops=())]),
    m.AlterUserScramCredentialsRequest(
        deletions=[m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="x", mechanism=1)], upsertions=()
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_each_thing_that_was_asked_for_has_the_error(request_: Any) -> None:
    name = type(request_).__name__.removesuffix("Request")
    answer = refusal(name, request_, NOBODY)
    assert answer is not None
    api = next(api for api in APIS.values() if api.name == name)
    for version in range(api.min_version, api.max_version + 1):
        again: Any = codec.decode(f"{name}Response", version, memoryview(codec.encode(answer, version)), 0)
        (lines,) = (value for value in vars_of(again).values() if isinstance(value, (list, tuple)))
        assert [line.error_code for line in lines] == [ErrorCode.NOT_CONTROLLER]


def vars_of(message: Any) -> dict[str, Any]:
    return {
        field["name"]: getattr(message, field["name"]) for field in codec.definition(type(message).__name__)["fields"]
    }


def test_all_that_is_forwarded_can_be_refused() -> None:
    named = {type(request).__name__.removesuffix("Request") for request in REQUESTS}
    for api in APIS.values():
        if api.for_controller:
            fields = {field["name"]: field["versions"] for field in codec.definition(f"{api.name}Response")["fields"]}
            assert (api.name in named) != is_within(api.max_version, fields.get("error_code"))
