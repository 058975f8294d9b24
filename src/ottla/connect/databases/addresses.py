"""Addresses of databases: JDBC's URLs, as existing configurations have them, and SQLAlchemy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg2.extensions
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from ottla.connect.api.plugins import ConnectorFailure

_DRIVERS = {
    "postgresql": "postgresql+psycopg2",
    "postgres": "postgresql+psycopg2",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
    "duckdb": "duckdb+ottla",
}
registry.register("duckdb.ottla", "ottla.connect.databases.duckdb", "DuckDialect")
_CONNECT_SECONDS = 15
# In pg_type.
_INTERVAL = 1186
# Of JDBC's drivers, with no meaning for ours.
_JDBC_ONLY = {
    "useSSL",
    "serverTimezone",
    "rewriteBatchedStatements",
    "reWriteBatchedInserts",
    "allowPublicKeyRetrieval",
    "stringtype",
}
# What a URL may ask of a driver by the same name.
_PASSED = {"sslmode", "sslrootcert", "sslcert", "sslkey", "options", "application_name", "charset", "ssl_ca"}


def problem(text: str) -> str | None:
    try:
        address(text, None, None)
    except ValueError as error:
        return str(error)
    return None


def address(text: str, user: str | None, password: str | None) -> URL:
    """Raises ValueError with what is wrong."""
    url = _of_jdbc(text[5:]) if text.startswith("jdbc:") else _of_sqlalchemy(text)
    if user:
        url = url.set(username=user)
    if password:
        url = url.set(password=password)
    return url


def _of_jdbc(rest: str) -> URL:
    kind, _, place = rest.partition(":")
    if kind not in _DRIVERS:
        raise ValueError(f"there is no driver for {kind}: postgresql, mysql, mariadb, sqlite and duckdb are known")
    if kind in ("sqlite", "duckdb"):
        if not place:
            raise ValueError(f"it names no file: jdbc:{kind}:/folder/file")
        return URL.create(_DRIVERS[kind], database=place)
    parts = urlsplit(place if place.startswith("//") else f"//localhost/{place}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the host and port cannot be read: {error}") from None
    if not parts.path.strip("/"):
        raise ValueError("it names no database: jdbc:postgresql://host:port/database")
    asked = dict(parse_qsl(parts.query))
    user, password = asked.pop("user", None), asked.pop("password", None)
    unknown = sorted(asked.keys() - _JDBC_ONLY - _PASSED)
    if unknown:
        raise ValueError(f"the driver here does not know {', '.join(unknown)}")
    query = {name: value for name, value in asked.items() if name in _PASSED}
    return URL.create(_DRIVERS[kind], user, password, host or "localhost", port, parts.path.strip("/"), query)


def _of_sqlalchemy(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError("it is neither a JDBC URL nor one of SQLAlchemy") from None
    name = url.drivername.partition("+")[0]
    return url.set(drivername=_DRIVERS[name]) if name in _DRIVERS else url


def engine(settings: Mapping[str, Any], *, only_reads: bool = False) -> sa.Engine:
    """Connects only when it is used, and keeps no connection."""
    url = address(settings["connection.url"], settings["connection.user"], settings["connection.password"])
    options: dict[str, Any] = {}
    if url.get_backend_name() in ("postgresql", "mysql"):
        options["connect_timeout"] = _CONNECT_SECONDS
    if url.get_backend_name() == "postgresql":
        options["options"] = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601"
    if url.get_backend_name() == "mysql":
        options["init_command"] = "SET time_zone = '+00:00'"
    if url.get_backend_name() == "sqlite":
        options["timeout"] = 60
    if url.get_backend_name() == "duckdb" and only_reads:
        # Several tasks may do that at the same time.
        options["read_only"] = True
    # JSON stays the text that it is: Python would round its numbers, and make None of its null.
    more: dict[str, Any] = {} if url.get_backend_name() == "duckdb" else {"json_deserializer": str}
    try:
        made = sa.create_engine(url, poolclass=NullPool, connect_args=options, **more)
    except (NoSuchModuleError, ImportError, ModuleNotFoundError) as error:
        raise ConnectorFailure(
            f"There is no driver for connection.url: {error}. pip install it, or `ottla[connect]` (DuckDB: "
            "`ottla[connect,duckdb]`)."
        ) from error
    if url.get_backend_name() == "postgresql":
        event.listen(made, "connect", _keep_intervals)
    return made


def _keep_intervals(connection: Any, record: Any) -> None:
    """As text: Python's have no months."""
    kept = psycopg2.extensions.new_type((_INTERVAL,), "INTERVAL", lambda text, cursor: text)
    psycopg2.extensions.register_type(kept, connection)
