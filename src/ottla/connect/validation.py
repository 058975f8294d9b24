"""What is right and wrong with a connector's configuration, told setting by setting as Kafka Connect tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.connect import conversion
from ottla.connect.api.config import HIDDEN, ConfigKey, ConfigType, ConfigValue
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.conversion.java_regex import NotTranslated
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.definitions import common
from ottla.connect.plugins import Plugin
from ottla.connect.worker.effective import PARTS, effective

_BOTH = "topics and topics.regex are mutually exclusive options, but both are set."
_NEITHER = "Must configure one of topics or topics.regex"


def validate(plugin: Plugin, config: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, Any]:
    """`{name, error_count, groups, configs}`."""
    values = [_with_null(value) for value in common(plugin.connector, defaults).validate(config)]
    found = {value.key.name: _value(value) for value in values}
    between = _between(config, defaults)
    for value in (*between, *plugin.connector.validate(config)):
        if value.key.name not in found:
            values.append(value)
            found[value.key.name] = _value(value)
        else:
            known = found[value.key.name]["errors"]
            known += [error for error in value.errors if error not in known]
    definitions = [value.key for value in values]
    if plugin.kind == "sink":
        _check_topics(config, found)
    groups = list(dict.fromkeys(key.group for key in definitions if key.group is not None))
    configs = [{"definition": definition(key), "value": found[key.name]} for key in definitions]
    return {
        "name": config.get("connector.class", plugin.class_name),
        "error_count": sum(bool(one["value"]["errors"]) for one in configs),
        "groups": groups,
        "configs": configs,
    }


def _between(config: Mapping[str, str], defaults: Mapping[str, str]) -> list[ConfigValue]:
    """Settings of converters, transforms and predicates. Those of converters count where the connector names one, or
    where they are wrong."""
    given = effective(config, defaults)
    return [
        value
        for value in conversion.config_def(given).validate(given)
        if value.errors or _part_of(value.key.name) is None or _part_of(value.key.name) in config
    ]


def _part_of(name: str) -> str | None:
    return next((part for part in PARTS if name.startswith(part)), None)


def _with_null(value: ConfigValue) -> ConfigValue:
    """Kafka says twice that a number is none: its parser, and then the check of what that gave."""
    if value.errors and value.key.name == "tasks.max" and "Not a number" in value.errors[0]:
        more = f"Invalid value null for configuration {value.key.name}: Value must be non-null"
        return ConfigValue(value.key, value.text, (*value.errors, more), value.visible)
    return value


def _check_topics(config: Mapping[str, str], found: Mapping[str, dict[str, Any]]) -> None:
    topics, pattern = config.get("topics", "").strip(), config.get("topics.regex", "").strip()
    problem = _BOTH if topics and pattern else _NEITHER if not topics and not pattern else None
    if problem is not None:
        for name in ("topics", "topics.regex"):
            found[name]["errors"].append(problem)
    if pattern:
        try:
            TopicPattern(pattern)
        except NotTranslated as error:
            problem = f"Invalid value {pattern} for configuration topics.regex: {error}"
            found["topics.regex"]["errors"].append(problem)
    dead_letters = config.get("errors.deadletterqueue.topic.name", "").strip()
    if dead_letters and (
        dead_letters in [name.strip() for name in topics.split(",")] or (pattern and _matches(pattern, dead_letters))
    ):
        found["errors.deadletterqueue.topic.name"]["errors"].append(
            f"the topic of dead letters '{dead_letters}' is also read by the connector: name another one."
        )


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(TopicPattern(pattern).matching([name]))
    except (NotTranslated, ConnectorFailure):
        return False


def definition(key: ConfigKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": str(key.type),
        "required": key.required,
        "default_value": None if key.required else _text(key, key.default),
        "importance": str(key.importance),
        "documentation": key.doc,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width,
        "display_name": key.display_name or key.name,
        "dependents": [],
    }


def _value(value: ConfigValue) -> dict[str, Any]:
    key = value.key
    shown = value.text
    if value.errors and key.required and shown is None:
        shown = None
    elif shown is None:
        shown = None if key.required else _text(key, key.default)
    elif key.type is ConfigType.PASSWORD:
        shown = HIDDEN
    elif value.errors and key.type is not ConfigType.STRING:
        shown = None if _is_unparsed(value) else shown
    return {
        "name": key.name,
        "value": shown,
        "recommended_values": list(key.recommended),
        "errors": list(value.errors),
        "visible": value.visible,
    }


def _is_unparsed(value: ConfigValue) -> bool:
    return "Not a" in value.errors[0] or "Expected value" in value.errors[0]


def _text(key: ConfigKey, default: Any) -> str | None:
    if default is None:
        return None
    if key.type is ConfigType.PASSWORD:
        return HIDDEN
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list | tuple):
        return ",".join(map(str, default))
    return str(default)


def errors(answer: Mapping[str, Any]) -> list[str]:
    return [error for one in answer["configs"] for error in one["value"]["errors"]]
