"""What somebody changed, a line each in the log: what it was, what it is now, and who asked for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.broker import audit
from ottla.common.config import BrokerConfig
from ottla.common.ids import topic_id_text
from ottla.metadata.image import ClusterImage, TopicImage

log = logging.getLogger("ottla.changes")

_NOT_SET = "(not set)"


# For what the log must not show.
_HIDDEN = "(hidden)"


class Requester(NamedTuple):
    client_host: str
    client_id: str | None
    principal: str = ""


def tell(what: str, by: Requester | None, **facts: object) -> None:
    """`by` None is the broker itself."""
    who: dict[str, object] = {}
    if by is not None:
        who = {"client": by.client_host, "client_id": by.client_id or "(none)", "principal": by.principal}
    log.info(what, extra={**facts, **who})
    if by is not None and audit.has_its_own_file():
        audit.tell(what, by.principal, by.client_host, **facts)


def is_heard() -> bool:
    return log.isEnabledFor(logging.INFO) or audit.has_its_own_file()


def changes(old: ClusterImage, new: ClusterImage) -> Iterator[tuple[str, dict[str, object]]]:
    if old.topics is not new.topics:
        yield from _topics(old.topics, new.topics)
    for kind, before, after in (
        ("broker", old.broker_configs, new.broker_configs),
        ("group", old.group_configs, new.group_configs),
        ("client-metrics", old.client_metrics_configs, new.client_metrics_configs),
    ):
        if before is not after:
            for name in before.keys() | after.keys():
                yield from _settings(kind, name or "(all)", before.get(name, {}), after.get(name, {}))
    if old.features is not new.features:
        yield from _settings("features", "(all)", _as_text(old.features), _as_text(new.features))


def _topics(old: Mapping[str, TopicImage], new: Mapping[str, TopicImage]) -> Iterator[tuple[str, dict[str, object]]]:
    for name, topic in old.items():
        kept = new.get(name)
        if kept is None or kept.id != topic.id:
            yield "topic deleted", {"topic": name, "topic_id": topic_id_text(topic.id)}
    for name, topic in new.items():
        before = old.get(name)
        if before is topic:
            continue
        if before is None or before.id != topic.id:
            facts: dict[str, object] = {"topic": name, "partitions": len(topic.partitions)}
            if topic.configs:
                facts["settings"] = ", ".join(f"{key}={value}" for key, value in sorted(topic.configs.items()))
            yield "topic created", facts | {"topic_id": topic_id_text(topic.id)}
            continue
        if len(before.partitions) != len(topic.partitions):
            counts = f"{len(before.partitions)} -> {len(topic.partitions)}"
            yield "partitions added", {"topic": name, "partitions": counts}
        yield from _settings("topic", name, before.configs, topic.configs)


def _settings(
    kind: str, name: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, object]]]:
    different = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    if different:
        told = (f"{key}: {_shown(kind, key, old)} -> {_shown(kind, key, new)}" for key in different)
        yield "settings changed", {kind: name, "settings": ", ".join(told)}


def _shown(kind: str, key: str, settings: Mapping[str, str]) -> str:
    """Of a broker's settings those whose kind is known to be harmless: a key of a listener has a name of its own."""
    if key not in settings:
        return _NOT_SET
    known = BrokerConfig.known().get(key)
    if kind == "broker" and (known is None or known.is_sensitive):
        return _HIDDEN
    return settings[key]


def _as_text(levels: Mapping[str, int]) -> dict[str, str]:
    return {name: str(level) for name, level in levels.items()}
