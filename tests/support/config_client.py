"""The four configuration requests in a form that tests can read at a glance, against any broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.support.raw_client import RawClient

KINDS = {"topic": 2, "broker": 4, "logger": 8, "metrics": 16, "group": 32}
OPERATIONS = {"set": 0, "delete": 1, "append": 2, "subtract": 3}


class Outcome(NamedTuple):
    code: str
    message: str | None


class Described(NamedTuple):
    name: str
    value: str | None
    source: int
    read_only: bool
    is_sensitive: bool
    type: int
    synonyms: tuple[tuple[str, str | None, int], ...]
    doc: str | None


class ConfigClient:
    def __init__(self, host: str, port: int) -> None:
        self._raw = RawClient(host, port)

    def __enter__(self) -> ConfigClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def create_topic(self, name: str, configs: Mapping[str, str | None] | None = None) -> Outcome:
        configs_given = [
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, configs=configs_given
        )
        result = self._raw.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]
        return Outcome(ErrorCode(result.error_code).name, result.error_message)

    def describe(
        self, kind: str | int, name: str, *keys: str, synonyms: bool = True, doc: bool = False, version: int = 4
    ) -> tuple[Outcome, dict[str, Described]]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_number(kind), resource_name=name, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=doc)
        result = self._raw.call(request, version).results[0]
        assert (result.resource_type, result.resource_name) == (_number(kind), name)
        entries = {
            one.name: Described(
                one.name,
                one.value,
                one.config_source,
                one.read_only,
                one.is_sensitive,
                one.config_type,
                tuple((each.name, each.value, each.source) for each in one.synonyms),
                one.documentation,
            )
            for one in result.configs
        }
        return Outcome(ErrorCode(result.error_code).name, result.error_message), entries

    def value(self, kind: str, name: str, key: str) -> str | None:
        return self.describe(kind, name, key)[1][key].value

    def alter(
        self,
        kind: str | int,
        name: str,
        *changes: tuple[str, str, str | None],
        validate_only: bool = False,
        version: int = 1,
    ) -> Outcome:
        """Changes are (operation, key, value)."""
        request = IncrementalAlterConfigsRequest
        configs = [
            request.AlterableConfig(name=key, config_operation=OPERATIONS[operation], value=value)
            for operation, key, value in changes
        ]
        resource = request.AlterConfigsResource(resource_type=_number(kind), resource_name=name, configs=configs)
        answer = self._raw.call(request(resources=[resource], validate_only=validate_only), version)
        return Outcome(ErrorCode(answer.responses[0].error_code).name, answer.responses[0].error_message)

    def set(self, kind: str | int, name: str, key: str, value: str | None) -> Outcome:
        return self.alter(kind, name, ("set", key, value))

    def replace(
        self,
        kind: str | int,
        name: str,
        configs: Mapping[str, str | None],
        *,
        validate_only: bool = False,
        version: int = 2,
    ) -> Outcome:
        request = AlterConfigsRequest
        resource = request.AlterConfigsResource(
            resource_type=_number(kind),
            resource_name=name,
            configs=[request.AlterableConfig(name=key, value=value) for key, value in configs.items()],
        )
        answer = self._raw.call(request(resources=[resource], validate_only=validate_only), version)
        return Outcome(ErrorCode(answer.responses[0].error_code).name, answer.responses[0].error_message)

    def list_resources(self, types: Sequence[int] = (), version: int = 1) -> tuple[str, list[tuple[int, str]]]:
        answer = self._raw.call(ListConfigResourcesRequest(resource_types=list(types)), version)
        found = [(one.resource_type, one.resource_name) for one in answer.config_resources]
        return ErrorCode(answer.error_code).name, found


def _number(kind: str | int) -> int:
    return kind if isinstance(kind, int) else KINDS[kind]
