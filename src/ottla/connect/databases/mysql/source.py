"""MysqlSource: rows of MySQL's or MariaDB's tables, then every change of them, in Debezium's envelope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType
from ottla.connect.api.plugins import Offset, Partition, check_numbers
from ottla.connect.databases.changes.settings import at_least, one_of, patterns, settings
from ottla.connect.databases.changes.source import ChangeSource, Session
from ottla.connect.databases.mysql.session import MysqlSession


class MysqlSource(ChangeSource):
    """Needs the binlog in row format with full metadata, and a user with REPLICATION SLAVE, REPLICATION CLIENT and
    SELECT."""

    aliases: ClassVar[Sequence[str]] = (
        "io.debezium.connector.mysql.MySqlConnector",
        "io.debezium.connector.mariadb.MariaDbConnector",
    )
    config_def: ClassVar[ConfigDef] = settings(3306, ("initial", "never", "no_data")) + ConfigDef(
        [
            ConfigKey(
                "database.server.id",
                ConfigType.LONG,
                "Tells this reader from the server's replicas.",
                5_400,
                check=at_least(1),
            ),
            ConfigKey(
                "database.include.list",
                ConfigType.LIST,
                "Regular expressions of databases; empty for all.",
                [],
                check=patterns,
            ),
            ConfigKey(
                "bigint.unsigned.handling.mode",
                ConfigType.STRING,
                "Numbers of BIGINT UNSIGNED: long, which has no room above 9223372036854775807, or precise, a decimal.",
                "long",
                check=one_of("long", "precise"),
            ),
        ]
    )

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        if not isinstance(offset.get("file"), str) or "pos" not in offset:
            return "the offset must have the keys 'file' and 'pos', of a place in the binlog where a transaction begins"
        return super().check_offset(partition, offset) or check_numbers(offset, "pos")

    def session(self, offset: Offset | None) -> Session:
        return MysqlSession(self.settings, offset)
