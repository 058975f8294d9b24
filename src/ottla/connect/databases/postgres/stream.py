"""The connection on which a replication slot is read, and on which the server is told what it may forget."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping
from typing import Any

import psycopg2
import psycopg2.extras

from ottla.connect.api.plugins import Outage
from ottla.connect.databases.postgres.catalogue import connection_options, telling_failures

_FEEDBACK_SECONDS = 10.0
_SLOT_SECONDS, _SLOT_PAUSE_SECONDS = 10.0, 0.1


class ReplicationStream:
    """Raises what psycopg2 raises, but for `open`."""

    def __init__(self, settings: Mapping[str, Any], lsn: int) -> None:
        """The server takes a moment to see that whoever read from the slot before is gone."""
        self._settings = settings
        self._connection: Any = None
        self._feedback_at = 0.0
        deadline = time.monotonic() + _SLOT_SECONDS
        with telling_failures("stream its changes"):
            while True:
                try:
                    self._start(lsn)
                    return
                except psycopg2.errors.ObjectInUse as error:
                    self.close()
                    if time.monotonic() > deadline:
                        slot = settings["slot.name"]
                        raise Outage(
                            f"Somebody else reads from the slot {slot} ({str(error).strip()}): stop that reader, or "
                            "choose another slot.name."
                        ) from error
                    time.sleep(_SLOT_PAUSE_SECONDS)

    def _start(self, lsn: int) -> None:
        self._connection = psycopg2.connect(
            **connection_options(self._settings),
            connection_factory=psycopg2.extras.LogicalReplicationConnection,
        )
        self._cursor = self._connection.cursor()
        self._cursor.start_replication(
            slot_name=self._settings["slot.name"],
            decode=False,
            start_lsn=lsn,
            options={"proto_version": "1", "publication_names": self._settings["publication.name"]},
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self) -> Any:
        """A message, or None if there is none for now."""
        return self._cursor.read_message()

    def wait(self, seconds: float) -> None:
        select.select([self._cursor], [], [], seconds)

    @property
    def wal_end(self) -> int:
        return int(self._cursor.wal_end)

    def confirm(self, lsn: int, is_due: bool = False) -> None:
        """What is published the server may forget."""
        if not is_due and time.monotonic() - self._feedback_at < _FEEDBACK_SECONDS:
            return
        self._feedback_at = time.monotonic()
        with telling_failures("stream its changes"):
            self._cursor.send_feedback(flush_lsn=lsn, force=True)
