"""Settings of JdbcSink, and which of them do not go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance
from ottla.connect.databases.addresses import problem
from ottla.connect.databases.changes.settings import at_least, one_of

CONNECTION = [
    ConfigKey("name", ConfigType.STRING, "The connector's name.", ""),
    ConfigKey(
        "connection.url",
        ConfigType.STRING,
        "The database, as a JDBC URL or one of SQLAlchemy.",
        importance=Importance.HIGH,
        check=problem,
    ),
    ConfigKey("connection.user", ConfigType.STRING, "Who logs in.", None, Importance.HIGH),
    ConfigKey("connection.password", ConfigType.PASSWORD, "The password of connection.user.", None, Importance.HIGH),
]

SINK = ConfigDef(
    [
        *CONNECTION,
        ConfigKey(
            "insert.mode",
            ConfigType.STRING,
            "insert, upsert or update.",
            "insert",
            Importance.HIGH,
            check=one_of("insert", "upsert", "update"),
        ),
        ConfigKey(
            "pk.mode",
            ConfigType.STRING,
            "What identifies a row: none, kafka (topic, partition, offset), record_key, record_value.",
            "none",
            Importance.HIGH,
            check=one_of("none", "kafka", "record_key", "record_value"),
        ),
        ConfigKey("pk.fields", ConfigType.LIST, "The columns that identify a row; empty: all fields of the key.", []),
        ConfigKey("delete.enabled", ConfigType.BOOLEAN, "A record without value deletes the row of its key.", False),
        ConfigKey("auto.create", ConfigType.BOOLEAN, "Create a table that is not there.", False),
        ConfigKey("auto.evolve", ConfigType.BOOLEAN, "Add columns that a table lacks.", False),
        ConfigKey(
            "table.name.format", ConfigType.STRING, "The table's name; ${topic} stands for the topic.", "${topic}"
        ),
        ConfigKey("fields.whitelist", ConfigType.LIST, "Fields of the value that become columns; empty for all.", []),
        ConfigKey(
            "batch.size",
            ConfigType.INT,
            "How many records are written in one transaction, as a wish.",
            10_000,
            check=at_least(1),
        ),
        ConfigKey(
            "positions.table",
            ConfigType.STRING,
            "The table in which the sink notes how far it is.",
            "ottla_connect_positions",
        ),
    ]
)


def validate(config: Mapping[str, str]) -> list[ConfigValue]:
    values = SINK.validate(config)
    problems = dict(_together(config))
    return [
        replace(value, errors=(*value.errors, problems[value.key.name])) if value.key.name in problems else value
        for value in values
    ]


def _together(config: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    insert, mode = config.get("insert.mode", "insert"), config.get("pk.mode", "none")
    fields = [part for part in config.get("pk.fields", "").split(",") if part.strip()]
    found = []
    if insert in ("upsert", "update") and mode == "none":
        found.append(
            (
                "pk.mode",
                f"insert.mode={insert} needs to know what identifies a row: set pk.mode to record_key, "
                "record_value or kafka.",
            )
        )
    if mode == "record_value" and not fields:
        found.append(("pk.fields", "pk.mode=record_value needs pk.fields: which fields of the value identify a row."))
    if mode == "kafka" and len(fields) not in (0, 3):
        found.append(("pk.fields", "pk.mode=kafka needs three pk.fields (topic, partition, offset) or none."))
    if config.get("delete.enabled", "false").strip().lower() == "true" and mode != "record_key":
        found.append(
            ("delete.enabled", "delete.enabled=true needs pk.mode=record_key: a record without value has its key only.")
        )
    return found
