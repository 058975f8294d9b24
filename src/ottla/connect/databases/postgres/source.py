"""PostgresSource: rows of PostgreSQL's tables, then every change of them, in Debezium's envelope."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.plugins import Offset, Partition, Read, Source
from ottla.connect.databases.changes.settings import one_of, settings
from ottla.connect.databases.postgres.session import PostgresSession

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _slot_name(value: str) -> str | None:
    return None if re.fullmatch(r"[a-z0-9_]{1,63}", value) else "lower case letters, digits and '_' only, at most 63"


class PostgresSource(Source):
    """Needs wal_level=logical and a user with REPLICATION, who owns the tables or finds a publication."""

    aliases: ClassVar[Sequence[str]] = ("io.debezium.connector.postgresql.PostgresConnector",)
    reads_on_driver: ClassVar[bool] = True
    config_def: ClassVar[ConfigDef] = settings(5432, ("initial", "never", "no_data")) + ConfigDef(
        [
            ConfigKey("database.dbname", ConfigType.STRING, "The database whose tables are read.", importance=Importance.HIGH),
            ConfigKey("database.sslmode", ConfigType.STRING, "TLS, in libpq's words.", "prefer", check=one_of(*_SSL_MODES)),
            ConfigKey("plugin.name", ConfigType.STRING, "The plugin that decodes the WAL.", "pgoutput", check=one_of("pgoutput")),
            ConfigKey("slot.name", ConfigType.STRING, "The replication slot; made if there is none.", "ottla", check=_slot_name),
            ConfigKey("slot.drop.on.stop", ConfigType.BOOLEAN, "Drop the slot when the connector stops. For tests only: changes "
                      "from then on are lost.", False),
            ConfigKey("publication.name", ConfigType.STRING, "The publication; made if there is none.", "ottla_publication"),
            ConfigKey("publication.autocreate.mode", ConfigType.STRING, "filtered: a publication of the tables that are read. "
                      "all_tables: of all. disabled: it must be there.", "filtered",
                      check=one_of("filtered", "all_tables", "disabled")),
        ]
    )  # fmt: skip

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._session: PostgresSession | None = None

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"server": self.settings["topic.prefix"]}]

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        try:
            session = self._at(offset)
            while (piece := session.next()) is not None:
                yield piece
        except GeneratorExit:
            # The worker has enough for now: the session stands behind what it has taken.
            raise
        except BaseException:
            self.close_session()
            raise

    def _at(self, offset: Offset | None) -> PostgresSession:
        if self._session is None or _text(self._session.offset) != _text(offset):
            self.close_session()
            self._session = PostgresSession(self.settings, offset)
        return self._session

    def published(self, partition: Partition, offset: Offset) -> None:
        if self._session is not None:
            try:
                self._session.published(offset)
            except BaseException:
                self.close_session()
                raise

    def close_session(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def close(self) -> None:
        self.close_session()


def _text(offset: Any) -> str:
    return json.dumps(offset, sort_keys=True)
