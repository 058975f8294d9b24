"""The APIs this broker serves, with their versions: exactly what ApiVersions advertises.

A handler module is imported when its API is first asked for, so start-up pays only for the table. Versions are those of
Kafka 4.3. Produce is advertised from 0 because librdkafka misjudges compression support otherwise; versions below 3
are answered with an error.
"""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    key: int
    name: str  # the message name without Request/Response
    module: str  # under ottla.broker.handlers
    min_version: int
    max_version: int


_SERVED = (
    Api(0, "Produce", "produce", 0, 13),
    Api(1, "Fetch", "fetch", 4, 18),
    Api(2, "ListOffsets", "list_offsets", 1, 11),
    Api(3, "Metadata", "metadata", 0, 13),
    Api(18, "ApiVersions", "api_versions", 0, 4),
    Api(19, "CreateTopics", "create_topics", 2, 7),
)

APIS: dict[int, Api] = {api.key: api for api in _SERVED}
