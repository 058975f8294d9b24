"""Which file of a binlog one is. Names say little: every server begins with the same, also after RESET MASTER.

A file begins with an event that says when and by whom it was made. It is sent first whenever the file is read, also
from its middle, so a file of the same name that was made by another server, or later, is told from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import FormatDescriptionEvent

from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.databases.mysql.catalogue import ANEW, BinlogConnection, connection_options, telling_failures

# The server's id, and the second in which it made the file.
Made = tuple[int, int]
_BEGINNING = 4
_CANNOT_READ = 1236


def made_of(event: Any) -> Made:
    return int(event.packet.server_id), int(event.timestamp)


def look_at(settings: Mapping[str, Any], file: str) -> Made | None:
    with telling_failures("stream its changes"), refuse_place(file, _BEGINNING):
        stream = BinLogStreamReader(
            connection_settings=connection_options(settings),
            server_id=settings["database.server.id"],
            only_events=[FormatDescriptionEvent],
            log_file=file,
            log_pos=_BEGINNING,
            resume_stream=True,
            blocking=False,
            pymysql_wrapper=BinlogConnection,
            enable_logging=False,
        )
        try:
            event = stream.fetchone()
        finally:
            stream.close()
    return None if event is None else made_of(event)


def refuse_other(file: str) -> ConnectorFailure:
    return ConnectorFailure(
        f"The server's binlog has another file {file} than the one that was read before: the server was replaced, or "
        f"RESET MASTER began its binlog anew, so changes may be missing. {ANEW}"
    )


@contextmanager
def refuse_place(file: str, position: int) -> Iterator[None]:
    """The server's own words for what it cannot read say neither why nor what to do."""
    try:
        yield
    except pymysql.Error as error:
        if error.args and error.args[0] == _CANNOT_READ:
            raise ConnectorFailure(
                f"The server cannot read its binlog from {file}:{position} ({error.args[1]}): that was removed, or the "
                f"server is another one than before. {ANEW}"
            ) from error
        raise
