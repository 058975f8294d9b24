"""What a database's error means for a connector: an outage, bad records, or something that only its owner can change.

Told apart by SQLSTATE where the driver has it, by MySQL's number or SQLite's class elsewhere. Each sentence names the
setting that would help.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.common.errors import OttlaError
from ottla.connect.api.plugins import BadRecords, ConnectorFailure, Outage

# Classes and whole codes. Connection exceptions, transaction rollbacks (deadlocks), no resources, shut down, lock.
_OUTAGES = ("08", "40", "53", "57P", "57014", "55P03", "55006", "25P03", "XX000")
_DEADLOCKS = ("40001", "40P01")
_MYSQL_DEADLOCKS = (1205, 1213)
# A table, a column, the type of a table, or a row of the catalogue: IF NOT EXISTS looks first, and is not alone.
_THERE = ("42P07", "42701", "42710", "23505")
_MYSQL_THERE = (1050, 1060)
_THERE_WORDS = {
    "sqlite3": ("already exists", "duplicate column name"),
    "_duckdb": ("already exists", "Catalog write-write conflict"),
}
# Data exceptions, constraints.
_BAD_RECORDS = ("22", "23", "44")
_MYSQL_LOGIN = {1044, 1045, 1698, 3159}
_MYSQL_OUTAGES = {
    1040,
    1041,
    1053,
    1152,
    1159,
    1160,
    1161,
    1203,
    1205,
    1213,
    1226,
    1290,
    1836,
    1927,
    2002,
    2003,
    2006,
    2013,
    2055,
}
_MYSQL_BAD = {
    1048,
    1062,
    1169,
    1216,
    1217,
    1263,
    1264,
    1265,
    1292,
    1364,
    1365,
    1366,
    1367,
    1406,
    1411,
    1425,
    1427,
    1451,
    1452,
    1557,
    1586,
    1690,
    1761,
    1762,
    3140,
    3819,
    4025,
}
_LOGIN_WORDS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
)


class Names:
    """The settings that a sentence names."""

    def __init__(self, host: str, user: str, password: str, database: str) -> None:
        self.host, self.user, self.password, self.database = host, user, password, database


JDBC = Names("connection.url", "connection.user", "connection.password", "connection.url")
CDC = Names("database.hostname and database.port", "database.user", "database.password", "database.dbname")


def first_line(error: BaseException) -> str:
    text = str(error.args[1] if len(error.args) > 1 and isinstance(error.args[0], int) else error).strip()
    return (text.splitlines() or [type(error).__name__])[0].strip().rstrip(".")


def is_deadlock(error: BaseException | None) -> bool:
    """Whether the transaction was given up for the sake of another one, and may be done again at once."""
    original = getattr(error, "orig", None) or error
    if original is None:
        return False
    number = original.args[0] if original.args else None
    is_conflict = type(original).__module__ == "_duckdb" and type(original).__name__ == "TransactionException"
    return number in _MYSQL_DEADLOCKS or getattr(original, "pgcode", None) in _DEADLOCKS or is_conflict


def is_there_already(error: BaseException) -> bool:
    """Of a statement that makes a table or a column: whether somebody else has made it at the same moment."""
    original = getattr(error, "orig", None) or error
    number = original.args[0] if original.args else None
    words = _THERE_WORDS.get(type(original).__module__, ())
    return (
        number in _MYSQL_THERE
        or getattr(original, "pgcode", None) in _THERE
        or any(word in str(original) for word in words)
    )


def told(error: BaseException, names: Names, doing: str) -> OttlaError:
    """The same error as one of ours. `doing`: what was tried, as "write to the table orders"."""
    original = getattr(error, "orig", None) or error
    said = first_line(original)
    state = getattr(original, "pgcode", None) or getattr(original, "sqlstate", None) or ""
    number = original.args[0] if original.args and isinstance(original.args[0], int) else None
    if number in _MYSQL_LOGIN or state.startswith("28") or any(word in str(original) for word in _LOGIN_WORDS):
        return ConnectorFailure(
            f"The database does not let the connector log in ({said}): check {names.user} and {names.password}."
        )
    if number == 1049 or state == "3D000" or ("database" in said and "does not exist" in said):
        return ConnectorFailure(f"There is no such database ({said}): check {names.database}.")
    if _is_outage(original, state, number):
        return Outage(f"The database cannot be reached ({said}); if that lasts, check {names.host}.")
    if (
        state.startswith(_BAD_RECORDS)
        or number in _MYSQL_BAD
        or any(kind.__name__ in ("IntegrityError", "DataError") for kind in type(original).__mro__)
    ):
        return BadRecords(f"The database does not take a record: {said}.")
    if state == "42501" or number in (1142, 1143, 1227):
        return ConnectorFailure(
            f"The user is not allowed to {doing} ({said}): grant it the right, or check {names.user}."
        )
    return ConnectorFailure(f"The database refuses to {doing}: {said}.")


def _is_outage(error: Any, state: str, number: int | None) -> bool:
    name = type(error).__name__
    if number is not None:
        return number in _MYSQL_OUTAGES or (number == 0 and name == "InterfaceError")
    if state:
        return state.startswith(_OUTAGES)
    module = type(error).__module__
    if module.startswith("sqlite3"):
        return name == "OperationalError" and any(
            word in str(error) for word in ("locked", "busy", "disk I/O", "unable to open")
        )
    if module == "_duckdb":
        # Files, and transactions that get into one another's way.
        return name in ("IOException", "ConnectionException", "TransactionException")
    # Drivers of PostgreSQL have no code for what happens to the connection itself.
    return name in (
        "OperationalError",
        "InterfaceError",
        "DatabaseError",
        "DisconnectionError",
        "TimeoutError",
    ) or isinstance(error, OSError)


@contextmanager
def telling(names: Names, doing: str, *errors: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise told(error, names, doing) from error
