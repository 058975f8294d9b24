"""Settings of topics, for programs that must go by them: how large a record may be, what a copy of a topic needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode
from ottla.common.failures import RETRIABLE, check
from ottla.protocol.messages import DescribeConfigsRequest

_TOPIC = 2
# Of DescribeConfigs: a setting of the topic itself.
_OF_THE_TOPIC = 1


class TopicSetting(NamedTuple):
    value: str | None
    # Somebody has set it for this topic; else it is the broker's.
    is_own: bool


def topic_settings(
    cluster: ClusterClient, topics: Sequence[str], names: Sequence[str] | None = None
) -> dict[str, dict[str, TopicSetting]]:
    """All of them, or those of these names. What we may not see, or what is not there, is left out."""
    if not topics:
        return {}
    schema = DescribeConfigsRequest.DescribeConfigsResource
    asked = [
        schema(resource_type=_TOPIC, resource_name=topic, configuration_keys=None if names is None else list(names))
        for topic in sorted(set(topics))
    ]
    found: dict[str, dict[str, TopicSetting]] = {}
    for result in cluster.any_broker().call(DescribeConfigsRequest(resources=asked)).results:
        if ErrorCode(result.error_code) in RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            check(result.error_code, f"topic '{result.resource_name}'")
        if not result.error_code:
            found[result.resource_name] = {
                entry.name: TopicSetting(entry.value, entry.config_source == _OF_THE_TOPIC) for entry in result.configs
            }
    return found
