"""Settings that change data capture of every database has, under Debezium's names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance

PLACEHOLDER = "__debezium_unavailable_value"


def one_of(*words: str) -> Any:
    def check(value: str) -> str | None:
        return None if value in words else f"it must be one of {', '.join(words)}"

    return check


def at_least(least: int) -> Any:
    def check(value: int) -> str | None:
        return None if value >= least else f"it must be at least {least}"

    return check


def patterns(value: Sequence[str]) -> str | None:
    for each in value:
        try:
            re.compile(each)
        except re.error as error:
            return f"{each} is no regular expression: {error}"
    return None


def settings(port: int, snapshot_modes: Sequence[str]) -> ConfigDef:
    key, kind = ConfigKey, ConfigType
    return ConfigDef(
        [
            key("name", kind.STRING, "The connector's name.", ""),
            key("database.hostname", kind.STRING, "The host of the database server.", importance=Importance.HIGH),
            key("database.port", kind.INT, "The port of the database server.", port, Importance.HIGH),
            key(
                "database.user",
                kind.STRING,
                "Who logs in. It needs the right to replicate.",
                importance=Importance.HIGH,
            ),
            key("database.password", kind.PASSWORD, "The password of database.user.", "", Importance.HIGH),
            key(
                "topic.prefix",
                kind.STRING,
                "What names of topics begin with: prefix.schema.table.",
                importance=Importance.HIGH,
                check=lambda value: (
                    None if re.fullmatch(r"[\w.-]+", value) else "letters, digits, '.', '_' and '-' only"
                ),
            ),
            key(
                "table.include.list",
                kind.LIST,
                "Regular expressions of tables that are read, as schema.table; empty for all.",
                [],
                check=patterns,
            ),
            key(
                "table.exclude.list", kind.LIST, "Regular expressions of tables that are not read.", [], check=patterns
            ),
            key(
                "column.exclude.list",
                kind.LIST,
                "Regular expressions of columns that are left out, as schema.table.column.",
                [],
                check=patterns,
            ),
            key(
                "snapshot.mode",
                kind.STRING,
                "initial: first all rows, then changes. no_data or never: changes only.",
                "initial",
                check=one_of(*snapshot_modes),
                recommended=snapshot_modes,
            ),
            key(
                "signal.data.collection",
                kind.STRING,
                "A table (id, type, data), as schema.table, whose new rows ask for snapshots.",
                "",
            ),
            key(
                "heartbeat.interval.ms",
                kind.INT,
                "How often a heartbeat record is written; 0 for never.",
                0,
                check=at_least(0),
            ),
            key(
                "topic.heartbeat.prefix",
                kind.STRING,
                "The topic of heartbeats begins with this.",
                "__debezium-heartbeat",
            ),
            key(
                "tombstones.on.delete",
                kind.BOOLEAN,
                "A record without value after each delete, so that compaction forgets it.",
                True,
            ),
            key(
                "skipped.operations",
                kind.LIST,
                "Operations that are left out: c, u, d, t, or none.",
                ["t"],
                check=lambda value: None if set(value) <= {"c", "u", "d", "t", "none"} else "only c, u, d, t and none",
            ),
            key("max.batch.size", kind.INT, "How many changes are published together.", 20_000, check=at_least(1)),
            key(
                "snapshot.fetch.size",
                kind.INT,
                "How many rows of a snapshot are published together.",
                20_000,
                check=at_least(1),
            ),
            key(
                "poll.interval.ms",
                kind.LONG,
                "How long to wait for changes before a round ends.",
                500,
                check=at_least(0),
            ),
            key(
                "time.precision.mode",
                kind.STRING,
                "adaptive: Debezium's types of time, as exact as the column. connect: Kafka "
                "Connect's Date, Time and Timestamp, in milliseconds.",
                "adaptive",
                check=one_of("adaptive", "adaptive_time_microseconds", "connect"),
            ),
            key(
                "decimal.handling.mode",
                kind.STRING,
                "precise: Kafka Connect's Decimal. string or double: as such.",
                "precise",
                check=one_of("precise", "string", "double"),
            ),
        ]
    )


class TableFilter:
    """Which tables and columns are meant. Names are matched whole, as Debezium does."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._include, self._exclude, self._columns = (
            [re.compile(each, re.IGNORECASE) for each in values[name]]
            for name in ("table.include.list", "table.exclude.list", "column.exclude.list")
        )
        self._signals = values["signal.data.collection"]
        self._databases = [re.compile(each, re.IGNORECASE) for each in values.get("database.include.list", ())]

    def has(self, table: str) -> bool:
        if table == self._signals:
            return False
        if self._databases and not any(each.fullmatch(table.partition(".")[0]) for each in self._databases):
            return False
        if self._include and not any(each.fullmatch(table) for each in self._include):
            return False
        return not any(each.fullmatch(table) for each in self._exclude)

    def has_column(self, table: str, column: str) -> bool:
        return not any(each.fullmatch(f"{table}.{column}") for each in self._columns)
