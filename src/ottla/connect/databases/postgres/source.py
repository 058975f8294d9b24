"""PostgresSource: rows of PostgreSQL's tables, then every change of them, in Debezium's envelope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.plugins import Offset, Partition, check_numbers
from ottla.connect.databases.changes.settings import one_of, settings
from ottla.connect.databases.changes.source import ChangeSource, Session
from ottla.connect.databases.postgres.session import PostgresSession

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _slot_name(value: str) -> str | None:
    return None if re.fullmatch(r"[a-z0-9_]{1,63}", value) else "lower case letters, digits and '_' only, at most 63"


class PostgresSource(ChangeSource):
    """Needs wal_level=logical and a user with REPLICATION, who owns the tables or finds a publication."""

    aliases: ClassVar[Sequence[str]] = ("io.debezium.connector.postgresql.PostgresConnector",)
    config_def: ClassVar[ConfigDef] = settings(5432, ("initial", "never", "no_data")) + ConfigDef(
        [
            ConfigKey(
                "database.dbname", ConfigType.STRING, "The database whose tables are read.", importance=Importance.HIGH
            ),
            ConfigKey(
                "database.sslmode", ConfigType.STRING, "TLS, in libpq's words.", "prefer", check=one_of(*_SSL_MODES)
            ),
            ConfigKey(
                "plugin.name",
                ConfigType.STRING,
                "The plugin that decodes the WAL.",
                "pgoutput",
                check=one_of("pgoutput"),
            ),
            ConfigKey(
                "slot.name",
                ConfigType.STRING,
                "The replication slot; made if there is none.",
                "ottla",
                check=_slot_name,
            ),
            ConfigKey(
                "publication.name", ConfigType.STRING, "The publication; made if there is none.", "ottla_publication"
            ),
            ConfigKey(
                "publication.autocreate.mode",
                ConfigType.STRING,
                "filtered: a publication of the tables that are read. all_tables: of all. disabled: it must be there.",
                "filtered",
                check=one_of("filtered", "all_tables", "disabled"),
            ),
        ]
    )

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        return super().check_offset(partition, offset) or check_numbers(offset, "lsn")

    def session(self, offset: Offset | None) -> Session:
        return PostgresSession(self.settings, offset)
