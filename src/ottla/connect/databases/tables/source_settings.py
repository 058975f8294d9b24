"""Settings of JdbcSource, and which of them do not go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance
from ottla.connect.databases.changes.settings import at_least, one_of
from ottla.connect.databases.tables.sink_settings import CONNECTION

SOURCE = ConfigDef(
    [
        *CONNECTION,
        ConfigKey(
            "mode",
            ConfigType.STRING,
            "bulk: all rows each time. incrementing: rows with a higher number. timestamp, "
            "timestamp+incrementing: rows with a later time.",
            importance=Importance.HIGH,
            check=one_of("bulk", "incrementing", "timestamp", "timestamp+incrementing"),
        ),
        ConfigKey(
            "incrementing.column.name", ConfigType.STRING, "The column that only grows; empty: the primary key.", ""
        ),
        ConfigKey("timestamp.column.name", ConfigType.LIST, "The column of the time of the last change.", []),
        ConfigKey(
            "timestamp.delay.interval.ms",
            ConfigType.LONG,
            "Rows younger than this wait: a transaction that is still open may yet bring rows with an earlier time.",
            0,
            check=at_least(0),
        ),
        ConfigKey("query", ConfigType.STRING, "A query instead of tables; its rows go to the topic topic.prefix.", ""),
        ConfigKey(
            "table.whitelist", ConfigType.LIST, "Tables that are read, as table or schema.table; empty for all.", []
        ),
        ConfigKey("table.blacklist", ConfigType.LIST, "Tables that are not read.", []),
        ConfigKey("schema.pattern", ConfigType.STRING, "The schema whose tables are read; empty: the user's own.", ""),
        ConfigKey(
            "topic.prefix",
            ConfigType.STRING,
            "A table's topic is this and the table's name.",
            importance=Importance.HIGH,
        ),
        ConfigKey(
            "key.mode",
            ConfigType.STRING,
            "primary_key: records have the primary key as key. none: no key.",
            "primary_key",
            check=one_of("primary_key", "none"),
        ),
        ConfigKey("poll.interval.ms", ConfigType.LONG, "How often tables are asked again.", 5000, check=at_least(0)),
        ConfigKey("batch.max.rows", ConfigType.INT, "How many rows are published together.", 10_000, check=at_least(1)),
        ConfigKey(
            "validate.non.null", ConfigType.BOOLEAN, "Refuse a column that may be null to tell what is new.", True
        ),
    ]
)


def validate(config: Mapping[str, str]) -> list[ConfigValue]:
    mode, problems = config.get("mode", ""), {}
    if "timestamp" in mode and not config.get("timestamp.column.name", "").strip():
        problems["timestamp.column.name"] = (
            f"mode={mode} needs timestamp.column.name: the column with the time of the last change."
        )
    if len([part for part in config.get("timestamp.column.name", "").split(",") if part.strip()]) > 1:
        problems["timestamp.column.name"] = "timestamp.column.name takes one column here."
    if config.get("query") and (config.get("table.whitelist") or config.get("table.blacklist")):
        problems["query"] = "query and table.whitelist or table.blacklist exclude one another."
    if config.get("query") and "incrementing" in mode and not config.get("incrementing.column.name"):
        problems["incrementing.column.name"] = (
            "A query has no primary key: incrementing.column.name must name the column that grows."
        )
    if mode == "bulk" and config.get("exactly.once.support", "").strip().lower() == "required":
        problems["mode"] = (
            "mode=bulk publishes all rows each time, so exactly.once.support=required cannot be kept: choose "
            "incrementing or timestamp, or leave exactly.once.support out."
        )
    if config.get("table.whitelist") and config.get("table.blacklist"):
        problems["table.blacklist"] = "table.whitelist and table.blacklist exclude one another."
    return [
        replace(value, errors=(*value.errors, problems[value.key.name])) if value.key.name in problems else value
        for value in SOURCE.validate(config)
    ]
