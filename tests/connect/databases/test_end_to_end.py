"""A table of one database becomes a table of another one, through topics, by a worker on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.databases import PASSWORD, Database, Postgres

JSON = "org.apache.kafka.connect.json.JsonConverter"


def wait(done: Callable[[], bool], connect: Any, *names: str) -> None:
    deadline = time.monotonic() + 120
    while not done():
        if time.monotonic() > deadline:
            pytest.fail(str([connect.ask("GET", f"/connectors/{name}/status") for name in names]))
        time.sleep(0.2)


def create(connect: Any, name: str, config: dict[str, str]) -> None:
    status, answer = connect.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 201, answer


def test_changes_of_a_table_arrive_in_another_database(
    connect: Any, broker: Any, postgres: Database, postgres_server: Postgres
) -> None:
    target = postgres_server.database()
    postgres.sql("CREATE TABLE customers (id INT PRIMARY KEY, name TEXT NOT NULL, since TIMESTAMP)")
    postgres.sql(
        "INSERT INTO customers SELECT n, 'customer ' || n, TIMESTAMP '2026-01-01' FROM generate_series(1, 500) n"
    )
    converters = {"key.converter": JSON, "value.converter": JSON}
    create(
        connect,
        "customers-in",
        {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            **postgres.settings,
            "database.dbname": postgres.name,
            "topic.prefix": "shop",
            "slot.name": postgres.name,
            **converters,
        },
    )
    create(
        connect,
        "customers-out",
        {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "topics": "shop.public.customers",
            "connection.url": target.url,
            "connection.user": postgres_server.login,
            "connection.password": PASSWORD,
            "table.name.format": "customers",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
            **converters,
        },
    )

    def rows(database: Database) -> list[Any]:
        if not database.sql("SELECT to_regclass('customers') IS NOT NULL")[0][0]:
            return []
        return database.sql("SELECT id, name, since FROM customers ORDER BY id")

    def is_equal() -> bool:
        return rows(target) == rows(postgres)

    wait(lambda: len(rows(target)) == 500 and is_equal(), connect, "customers-in", "customers-out")
    postgres.sql(
        "UPDATE customers SET name = 'new' WHERE id % 7 = 0",
        "DELETE FROM customers WHERE id % 5 = 0",
        "INSERT INTO customers SELECT n, 'late', NULL FROM generate_series(1000, 1010) n",
        "UPDATE customers SET id = 2000 WHERE id = 1",
    )
    wait(is_equal, connect, "customers-in", "customers-out")
    assert connect.ask("POST", "/connectors/customers-in/restart?includeTasks=true")[0] == 202
    postgres.sql("INSERT INTO customers VALUES (3000, 'last', NULL)")
    wait(is_equal, connect, "customers-in", "customers-out")
    # A column that disappears is told in one sentence, with the trace below it; nothing is lost.
    target.sql("ALTER TABLE customers RENAME since TO gone")
    postgres.sql("UPDATE customers SET since = TIMESTAMP '2026-02-02' WHERE id = 3000")
    first, _, trace = connect.wait_for("customers-out", "FAILED")["connector"]["trace"].partition("\n")
    assert "column" in first and "since" in first and trace.startswith("Traceback")
    target.sql("ALTER TABLE customers RENAME gone TO since")
    assert connect.ask("POST", "/connectors/customers-out/restart?includeTasks=true")[0] == 202
    wait(is_equal, connect, "customers-in", "customers-out")
    connect.wait_for("customers-out", "RUNNING")
    records = broker.records("shop.public.customers", count=500 + 71 + 100 * 2 + 11 + 3 + 1 + 1, timeout_s=60)
    # Compaction forgets a key only after a record without a value.
    assert sum(record.value is None for record in records) == 101
    for name in ("customers-in", "customers-out"):
        assert connect.ask("DELETE", f"/connectors/{name}")[0] == 204
