"""Messages of PostgreSQL's plugin pgoutput, protocol version 1: bytes to tuples. Pure.

Values stay bytes, in PostgreSQL's text form. A value that is not sent because it did not change (TOAST) is `UNCHANGED`.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

# PostgreSQL counts from 2000-01-01, in microseconds.
EPOCH_MS = 946_684_800_000
_BEGIN = Struct(">QqI")
_COMMIT = Struct(">BQQq")
_INT = Struct(">I")
_SHORT = Struct(">H")
_COLUMN_TYPE = Struct(">Ii")


class _Unchanged:
    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = _Unchanged()
Values = list[Any]  # bytes, None or UNCHANGED


@dataclass(frozen=True)
class Begin:
    commit_lsn: int
    ts_ms: int
    xid: int


@dataclass(frozen=True)
class Commit:
    end_lsn: int


@dataclass(frozen=True)
class RelationColumn:
    name: str
    is_key: bool
    type_oid: int
    modifier: int


@dataclass(frozen=True)
class Relation:
    oid: int
    schema: str
    name: str
    # d: the primary key, f: all columns, i: an index, n: nothing.
    identity: str
    columns: tuple[RelationColumn, ...]

    @property
    def table(self) -> str:
        return f"{self.schema}.{self.name}"


class Change(NamedTuple):
    """One for each row: a tuple is made in half the time of a frozen dataclass."""

    op: str  # c, u, d
    oid: int
    # Of updates and deletes: what identifies the row, None if it is the same. `is_old_whole`: all of it.
    old: Values | None
    is_old_whole: bool
    new: Values | None


@dataclass(frozen=True)
class Truncate:
    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def decode(data: bytes) -> Message | None:
    """None for messages that do not matter here: origins, types."""
    kind = data[0]
    if kind == 73:  # I
        new, _ = _tuple(data, 6)
        return Change("c", _INT.unpack_from(data, 1)[0], None, False, new)
    if kind == 85:  # U
        return _update(data)
    if kind == 68:  # D
        old, _ = _tuple(data, 6)
        return Change("d", _INT.unpack_from(data, 1)[0], old, data[5] == 79, None)
    if kind == 66:  # B
        lsn, micros, xid = _BEGIN.unpack_from(data, 1)
        return Begin(lsn, micros // 1000 + EPOCH_MS, xid)
    if kind == 67:  # C
        return Commit(_COMMIT.unpack_from(data, 1)[2])
    if kind == 82:  # R
        return _relation(data)
    if kind == 84:  # T
        (count,) = _INT.unpack_from(data, 1)
        return Truncate(tuple(_INT.unpack_from(data, 6 + 4 * n)[0] for n in range(count)))
    return None


def _update(data: bytes) -> Change:
    (oid,) = _INT.unpack_from(data, 1)
    at, old, whole = 5, None, False
    if data[at] != 78:  # N
        whole = data[at] == 79  # O, else K
        old, at = _tuple(data, at + 1)
    new, _ = _tuple(data, at + 1)
    return Change("u", oid, old, whole, new)


def _tuple(data: bytes, at: int) -> tuple[Values, int]:
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    values: Values = []
    for _ in range(count):
        kind = data[at]
        if kind == 116:  # t
            begin = at + 5
            at = begin + _INT.unpack_from(data, at + 1)[0]
            values.append(data[begin:at])
        else:
            values.append(None if kind == 110 else UNCHANGED)  # n, u
            at += 1
    return values, at


def _relation(data: bytes) -> Relation:
    (oid,) = _INT.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _SHORT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN_TYPE.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(column, is_key, type_oid, modifier))
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
