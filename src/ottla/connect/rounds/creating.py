"""Topics that a source writes to are made when it does, as `topic.creation.*` of the connector says (KIP-158)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.client.cluster import ClusterClient
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode, OttlaError
from ottla.connect.api import ConnectorFailure
from ottla.connect.conversion.java_regex import NotTranslated
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.storage.topics import create_topic

_PREFIX = "topic.creation."
_THERE_S_MAX = 30.0


@dataclass(frozen=True)
class Rule:
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    partitions: int = -1
    replication: int = -1
    settings: dict[str, str] = field(default_factory=dict)

    def is_for(self, topic: str) -> bool:
        return _has(self.include, topic) and not _has(self.exclude, topic)


@dataclass(frozen=True)
class TopicCreation:
    """Goes to executors with the tasks."""

    is_enabled: bool
    rules: tuple[Rule, ...]

    def count(self, cluster: ClusterClient, topic: str) -> int:
        """The partitions of a topic, which is made if it is not there. Raises OttlaError."""
        found = retried(lambda: cluster.refresh([topic]), Deadline(_THERE_S_MAX), cluster.forget)
        if topic in found:
            return len(found[topic])
        if not self.is_enabled:
            raise ConnectorFailure(
                f"there is no topic '{topic}', and topic.creation.enable of the worker is false: create it."
            )
        rule = next((one for one in self.rules if one.is_for(topic)), Rule((".*",)))
        code = retried(
            lambda: create_topic(cluster, topic, rule.partitions, rule.replication, rule.settings),
            Deadline(_THERE_S_MAX),
            cluster.forget,
        )
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise ConnectorFailure(
                f"the topic '{topic}' cannot be created ({code.name}): create it, or see {_PREFIX}*."
            )
        deadline = Deadline(_THERE_S_MAX)
        while not (found := retried(lambda: cluster.refresh([topic]), Deadline(_THERE_S_MAX), cluster.forget)):
            if not deadline.pause():
                raise OttlaError(f"the topic '{topic}' was created, and is not there yet.")
        return len(found[topic])


def topic_creation(config: Mapping[str, str], *, is_enabled: bool) -> TopicCreation:
    """Raises ConnectorFailure."""
    groups = [name.strip() for name in config.get(f"{_PREFIX}groups", "").split(",") if name.strip()]
    rules = [_rule(config, group) for group in [*groups, "default"]]
    return TopicCreation(is_enabled, tuple(rules))


def _rule(config: Mapping[str, str], group: str) -> Rule:
    own = {
        name.removeprefix(f"{_PREFIX}{group}."): value
        for name, value in config.items()
        if name.startswith(f"{_PREFIX}{group}.")
    }
    include = tuple(_listed(own.pop("include", "" if group != "default" else ".*")))
    exclude = tuple(_listed(own.pop("exclude", "")))
    for pattern in (*include, *exclude):
        try:
            TopicPattern(pattern)
        except NotTranslated as error:
            raise ConnectorFailure(f"{_PREFIX}{group} has the expression '{pattern}': {error}.") from None
    numbers = []
    for name in ("partitions", "replication.factor"):
        text = own.pop(name, "-1").strip()
        if not re.fullmatch(r"-1|[1-9]\d{0,4}", text):
            raise ConnectorFailure(f"{_PREFIX}{group}.{name} is '{text}', expected a number above 0, or -1.")
        numbers.append(int(text))
    return Rule(include, exclude, numbers[0], numbers[1], own)


def _has(patterns: tuple[str, ...], topic: str) -> bool:
    return any(TopicPattern(one, f"{_PREFIX}*.include").matching([topic]) for one in patterns)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
