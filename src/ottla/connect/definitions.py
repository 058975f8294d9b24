"""Settings that every connector has, under Kafka Connect's names, with its groups, order and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.plugins import TASKS_MAX, Connector, Source
from ottla.connect.conversion import converters

_COMMON, _ERRORS, _CREATION, _ONCE = "Common", "Error Handling", "Topic Creation", "Exactly Once Support"
_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
HEADER_CONVERTERS = tuple(sorted(converter.class_name for converter in converters.ALL))
CONVERTERS = tuple(name for name in HEADER_CONVERTERS if name != _HEADERS)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def at_least(least: int) -> Any:
    return lambda value: None if value is None or value >= least else f"Value must be at least {least}"


def between(least: int, most: int) -> Any:
    return lambda value: at_least(least)(value) or (None if value <= most else f"Value must be at most {most}")


def one_of(*words: str) -> Any:
    return lambda value: None if value in words else f"String must be one of: {', '.join(words)}"


def _key(name: str, kind: ConfigType, default: Any, importance: Importance, group: str, **more: Any) -> ConfigKey:
    return ConfigKey(name, kind, _DOCS[name], default, importance, group=group, **more)


_DOCS = {
    "tasks.max.enforce": "Whether more tasks than tasks.max are an error. There never are, here.",
    "transforms": "Aliases of the transforms that records go through, in order.",
    "predicates": "Aliases of the predicates that transforms refer to.",
    "config.action.reload": "What to do when a setting from outside changes.",
    "errors.retry.timeout": "How long an operation that fails is tried again, in ms; -1: for ever.",
    "errors.retry.delay.max.ms": "The longest pause between two such tries, in ms.",
    "errors.tolerance": "none: the first record that fails fails the connector; all: such records are left out.",
    "errors.log.enable": "Whether each failure is logged.",
    "errors.log.include.messages": "Whether the record is logged with it.",
    "topic.creation.groups": "Groups of rules for topics that the connector creates: topic.creation.GROUP.*.",
    "exactly.once.support": "requested, or required: sources here always publish exactly once.",
    "transaction.boundary": "What a transaction holds: a round, whatever this says.",
    "transaction.boundary.interval.ms": "How long a transaction lasts: as long as a round, whatever this says.",
    "offsets.storage.topic": "A topic of offsets of its own: all connectors of a worker share one here.",
    "topics": "Topics to read, separated by commas.",
    "topics.regex": "A regular expression for the names of topics to read.",
    "errors.deadletterqueue.topic.name": "The topic for records that fail; empty: none.",
    "errors.deadletterqueue.topic.replication.factor": "Of that topic, if it is created.",
    "errors.deadletterqueue.context.headers.enable": "Whether headers of a dead letter say why it is one.",
    "name": "The connector's name, one of its own in the cluster.",
    "connector.class": "The connector: a class, one of its aliases, or the last part of either.",
    "connector.plugin.version": "Its version: there is one of each.",
    "tasks.max": "How many tasks the connector may have at a time.",
}


def common(connector: type[Connector], defaults: Mapping[str, str] | None) -> ConfigDef:
    """`defaults`: the worker's converters; None where nobody asks for a worker's."""
    version = connector.version

    def versioned(which: str, title: str, order: int, recommended: tuple[str, ...]) -> list[ConfigKey]:
        default = None if defaults is None else defaults.get(f"{which}.converter", _HEADERS)
        doc = f"The converter of {which}s between Connect and Kafka; the worker's, if none is named."
        more: dict[str, Any] = {"group": _COMMON, "width": "SHORT"}
        name = f"{which}.converter"
        return [
            ConfigKey(
                name,
                ConfigType.CLASS,
                doc,
                default,
                LOW,
                recommended=recommended,
                display_name=f"{title} converter class",
                order=order,
                **more,
            ),
            ConfigKey(
                f"{name}.plugin.version",
                ConfigType.STRING,
                "Its version: there is one of each.",
                None if defaults is None else version,
                LOW,
                recommended=(version,),
                display_name=f"{title} converter version",
                order=order + 1,
                **more,
            ),
        ]

    text, boolean, whole = ConfigType.STRING, ConfigType.BOOLEAN, ConfigType.LONG
    keys = [
        ConfigKey(
            "name",
            text,
            _DOCS["name"],
            importance=HIGH,
            group=_COMMON,
            width="MEDIUM",
            display_name="Connector name",
            order=1,
        ),
        ConfigKey(
            "connector.class",
            text,
            _DOCS["connector.class"],
            importance=HIGH,
            group=_COMMON,
            width="LONG",
            display_name="Connector class",
            order=2,
        ),
        _key(
            "connector.plugin.version",
            text,
            version,
            MEDIUM,
            _COMMON,
            recommended=(version,),
            width="MEDIUM",
            display_name="Connector version",
            order=3,
        ),
        _key(
            "tasks.max",
            ConfigType.INT,
            1,
            HIGH,
            _COMMON,
            check=between(1, TASKS_MAX),
            width="SHORT",
            display_name="Tasks max",
            order=4,
        ),
        _key(
            "tasks.max.enforce", boolean, True, LOW, _COMMON, width="SHORT", display_name="Enforce tasks max", order=5
        ),
        *versioned("key", "Key", 6, CONVERTERS),
        *versioned("value", "Value", 8, CONVERTERS),
        *versioned("header", "Header", 10, HEADER_CONVERTERS),
        _key("transforms", ConfigType.LIST, [], LOW, "Transforms", width="LONG", display_name="Transforms", order=12),
        _key("predicates", ConfigType.LIST, [], LOW, "Predicates", width="LONG", display_name="Predicates", order=13),
        _key(
            "config.action.reload",
            text,
            "restart",
            LOW,
            _COMMON,
            check=one_of("none", "restart"),
            width="MEDIUM",
            display_name="Reload Action",
            order=14,
        ),
        _key(
            "errors.retry.timeout",
            whole,
            0,
            MEDIUM,
            _ERRORS,
            width="MEDIUM",
            display_name="Retry Timeout for Errors",
            order=1,
        ),
        _key(
            "errors.retry.delay.max.ms",
            whole,
            60000,
            MEDIUM,
            _ERRORS,
            width="MEDIUM",
            display_name="Maximum Delay Between Retries for Errors",
            order=2,
        ),
        _key(
            "errors.tolerance",
            text,
            "none",
            MEDIUM,
            _ERRORS,
            check=one_of("none", "all"),
            width="SHORT",
            display_name="Error Tolerance",
            order=3,
        ),
        _key("errors.log.enable", boolean, False, MEDIUM, _ERRORS, width="SHORT", display_name="Log Errors", order=4),
        _key(
            "errors.log.include.messages",
            boolean,
            False,
            MEDIUM,
            _ERRORS,
            width="SHORT",
            display_name="Log Error Details",
            order=5,
        ),
    ]
    return ConfigDef((*keys, *(_of_sources() if issubclass(connector, Source) else _of_sinks())))


def _of_sources() -> list[ConfigKey]:
    return [
        _key(
            "topic.creation.groups",
            ConfigType.LIST,
            [],
            LOW,
            _CREATION,
            width="LONG",
            display_name="Topic Creation Groups",
            order=1,
        ),
        _key(
            "exactly.once.support",
            ConfigType.STRING,
            "requested",
            MEDIUM,
            _ONCE,
            check=one_of("requested", "required"),
            width="SHORT",
            display_name="Exactly once support",
            order=2,
        ),
        _key(
            "transaction.boundary",
            ConfigType.STRING,
            "poll",
            MEDIUM,
            _ONCE,
            check=one_of("poll", "interval", "connector"),
            width="SHORT",
            display_name="Transaction Boundary",
            order=3,
        ),
        _key(
            "transaction.boundary.interval.ms",
            ConfigType.LONG,
            None,
            LOW,
            _ONCE,
            check=at_least(0),
            width="SHORT",
            display_name="Transaction boundary interval",
            order=4,
        ),
        _key(
            "offsets.storage.topic",
            ConfigType.STRING,
            None,
            LOW,
            "offsets.topic",
            check=lambda name: (
                None if name is None else "a connector here has no topic of offsets of its own: leave it out"
            ),
            width="LONG",
            display_name="Offsets topic",
            order=1,
        ),
    ]


def _of_sinks() -> list[ConfigKey]:
    return [
        _key("topics", ConfigType.LIST, [], HIGH, _COMMON, width="LONG", display_name="Topics", order=4),
        _key("topics.regex", ConfigType.STRING, "", HIGH, _COMMON, width="LONG", display_name="Topics regex", order=4),
        _key(
            "errors.deadletterqueue.topic.name",
            ConfigType.STRING,
            "",
            MEDIUM,
            _ERRORS,
            width="MEDIUM",
            display_name="Dead Letter Queue Topic Name",
            order=6,
        ),
        _key(
            "errors.deadletterqueue.topic.replication.factor",
            ConfigType.SHORT,
            3,
            MEDIUM,
            _ERRORS,
            width="MEDIUM",
            display_name="Dead Letter Queue Topic Replication Factor",
            order=7,
        ),
        _key(
            "errors.deadletterqueue.context.headers.enable",
            ConfigType.BOOLEAN,
            False,
            MEDIUM,
            _ERRORS,
            width="MEDIUM",
            display_name="Enable Error Context Headers",
            order=8,
        ),
    ]
