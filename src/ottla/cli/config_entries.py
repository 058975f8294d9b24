"""Settings of topics, brokers and groups, as DescribeConfigs gives them, and changes to them.

Sources are named for people: `topic`, `broker`, `brokers` (dynamic default of all), `group`, `file` (the broker's
server.properties), `default`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.cli.connection import ANSWER_S_MAX, Cluster
from ottla.cli.error_sentences import failed
from ottla.cli.output import human_bytes, human_ms
from ottla.common.errors import OttlaError

KINDS = ("topic", "broker", "group")
SOURCES = {1: "topic", 2: "broker", 3: "brokers", 4: "file", 5: "default", 8: "group"}
SHOWN_SOURCES = {"topic": {"topic"}, "broker": {"broker", "brokers", "file"}, "group": {"group"}}


def resource(kind: str, name: str) -> Any:
    from confluent_kafka.admin import ConfigResource, ResourceType

    kinds = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER, "group": ResourceType.GROUP}
    if kind == "broker" and not name.isdigit():
        raise OttlaError(f"'{name}' is not a broker: give its node id, as `ottla cluster info` shows it.")
    return ConfigResource(kinds[kind], name)


def fetch_entries(cluster: Cluster, kind: str, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """name -> entries, sorted, each with name, value, source, read_only, sensitive."""
    from confluent_kafka import KafkaException

    resources = {name: resource(kind, name) for name in names}
    answers = cluster.admin.describe_configs(list(resources.values()), request_timeout=ANSWER_S_MAX)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, asked in resources.items():
        try:
            entries = cluster.wait(answers[asked])
        except KafkaException as error:
            raise _refused(cluster, kind, name, error) from None
        found[name] = [_entry(entries[key]) for key in sorted(entries)]
    return found


def _entry(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": SOURCES.get(int(entry.source), "unknown"),
        "read_only": bool(entry.is_read_only),
        "sensitive": bool(entry.is_sensitive),
    }


def change_entries(
    cluster: Cluster, kind: str, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Sets each name to its value, or back to its default for None, in one IncrementalAlterConfigs."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

    target = resource(kind, name)
    entries = [
        ConfigEntry(
            key,
            "" if value is None else value,
            source=ConfigSource.DYNAMIC_TOPIC_CONFIG,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in changes.items()
    ]
    altered = ConfigResource(target.restype, target.name, incremental_configs=entries)
    answers = cluster.admin.incremental_alter_configs(
        [altered], validate_only=validate_only, request_timeout=ANSWER_S_MAX
    )
    try:
        cluster.wait(next(iter(answers.values())))
    except KafkaException as error:
        raise _refused(cluster, kind, name, error, changes) from None


def _refused(
    cluster: Cluster, kind: str, name: str, error: Exception, changes: Mapping[str, str | None] | None = None
) -> OttlaError:
    code = error.args[0].name()
    if kind == "topic" and code == "UNKNOWN_TOPIC_OR_PART":
        return cluster.no_topic(name)
    if changes and code in ("INVALID_CONFIG", "INVALID_REQUEST"):
        hint = unknown_setting(cluster, kind, name, changes)
        if hint is not None:
            return OttlaError(hint)
    return failed(error, f"{kind} '{name}'")


def unknown_setting(cluster: Cluster, kind: str, name: str, changes: Iterable[str]) -> str | None:
    """The sentence for a setting that does not exist, with the nearest that does."""
    known = [entry["name"] for entry in fetch_entries(cluster, kind, [name])[name]]
    for key in changes:
        if known and key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"`ottla config get {kind} {name} --all` shows all."
            return f"a {kind} has no setting '{key}': {hint}"
    return None


def human_value(name: str, value: str | None) -> str | None:
    """A size or a duration with its meaning beside the number."""
    if value is None or not value.lstrip("-").isdigit():
        return value
    number = int(value)
    if number in (-1, -2) or number >= 2**63 - 1:
        return f"{value} (no limit)" if number >= 2**63 - 1 or name.startswith("retention") else value
    if name.endswith(".ms") and number >= 1000:
        return f"{value} ({human_ms(number)})"
    if name.endswith(".bytes") and number >= 1024:
        return f"{value} ({human_bytes(number)})"
    return value
