"""From a topic's settings to what storage needs to know of them.

Here and not beside either of them, because `common` may not know storage and storage need not know property names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields

from ottla.common.config import BrokerConfig, TopicConfig
from ottla.storage.log_config import LogConfig

# LogConfig spells the two clean-up policies as flags; every other field is a topic setting under its own name.
_SAME_NAME = tuple(field.name for field in fields(LogConfig) if not field.name.startswith("cleanup_"))

# The broker properties that logs take settings from.
LOG_DEFAULTS = frozenset(synonym.name for setting in TopicConfig.definitions().values() for synonym in setting.synonyms)


def topic_log_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """The settings of a log whose topic has `overrides`; OttlaError if one of them is unknown or wrong."""
    topic = TopicConfig(broker, overrides)
    values = {name: getattr(topic, name) for name in _SAME_NAME}
    if topic.internal_segment_bytes is not None:
        values["segment_bytes"] = topic.internal_segment_bytes
    return LogConfig(
        cleanup_delete="delete" in topic.cleanup_policy,
        cleanup_compact="compact" in topic.cleanup_policy,
        **values,
    )


MakeLogConfig = Callable[[Mapping[str, str]], LogConfig]
