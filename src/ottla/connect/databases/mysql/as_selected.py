"""Where the binlog has another value than a SELECT gives: snapshot and stream are to tell the same value, and the same
key, in the same way."""

from __future__ import annotations

import datetime
import socket
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ottla.connect.databases.mysql.types import MysqlType

# MariaDB's own types, which the binlog has as bytes of a fixed size.
IN_BYTES = {"uuid": 16, "inet6": 16, "inet4": 4}
_WIDE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_AS_BYTES = " as bytes"
# TIMESTAMP begins a second after 1970 does; what lies before is 0000-00-00.
_FIRST_TIMESTAMP = datetime.datetime(1970, 1, 1, 0, 0, 1)
_YEAR_ZERO = 1900


def as_selected(kind: MysqlType) -> Callable[[Any], Any] | None:
    """From the binlog's value; None where it is the same."""
    if kind.name == "binary":
        return lambda value: _padded(value, kind.length)
    if kind.name == "uuid":
        return lambda value: _uuid(_padded(value, 16))
    if kind.name in IN_BYTES:
        family = socket.AF_INET6 if kind.name == "inet6" else socket.AF_INET
        return lambda value: socket.inet_ntop(family, _padded(value, IN_BYTES[kind.name]))
    if kind.name == "year":
        return lambda value: 0 if value == _YEAR_ZERO else value
    if kind.name == "timestamp":
        return lambda value: None if value < _FIRST_TIMESTAMP else value
    encoding = _WIDE.get(kind.charset.removesuffix(_AS_BYTES))
    return None if encoding is None else lambda value: value.decode(encoding)


def keep_bytes(columns: Sequence[Any]) -> None:
    """Of an event whose rows are not read yet. mysql-replication takes the last byte of such a character for its first;
    text of which it does not know the encoding it leaves as it is."""
    for column in columns:
        if column.character_set_name in _WIDE:
            column.character_set_name += _AS_BYTES


def _padded(value: Any, length: int) -> bytes:
    """Zeroes at the end are left out."""
    return (value.encode() if isinstance(value, str) else bytes(value)).ljust(length, b"\0")


def _uuid(data: bytes) -> str:
    """Those that begin with a time are kept with it at their end, so that they are near one another in an index;
    versions 6 and 7 are not."""
    if data[6] & 0x80 and 0 < data[8] < 0x60:
        data = data[12:16] + data[10:12] + data[8:10] + data[6:8] + data[0:6]
    return str(uuid.UUID(bytes=data))


def as_text(kind: MysqlType, value: Any) -> str:
    """As the server writes it: keys are compared with what it sorts."""
    digits = kind.fraction + 1 if kind.fraction else 0
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds")[: 19 + digits]
    if isinstance(value, datetime.timedelta):
        micros = abs(value) // datetime.timedelta(microseconds=1)
        seconds, micros = divmod(micros, 1_000_000)
        sign = "-" if value < datetime.timedelta(0) else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return sign + f"{clock}.{micros:06}"[: len(clock) + digits]
    return str(value)
