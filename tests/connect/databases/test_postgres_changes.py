"""Changes of PostgreSQL's tables as records: the envelope, what the log leaves out, and what cannot work."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from decimal import Decimal

import pytest

from ottla.connect.api import ConnectorFailure, Outage
from ottla.connect.databases.postgres.catalogue import lsn_of_text
from ottla.connect.databases.postgres.source import PostgresSource
from ottla.connect.databases.postgres.visibility import is_seen
from tests.connect.databases.driving import Driven
from tests.support.databases import Database
from tests.support.process import free_ports

Reading = Callable[..., Driven]


@pytest.fixture
def reading(postgres: Database) -> Reading:
    def driven(**settings: str) -> Driven:
        config = {
            **postgres.settings,
            "database.dbname": postgres.name,
            "topic.prefix": "shop",
            "slot.name": postgres.name,
            "poll.interval.ms": "300",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        return Driven(lambda: PostgresSource(config))

    return driven


def changes(driven: Driven, table: str = "orders") -> list[tuple[str, object, object]]:
    found = []
    for each in driven.of(f"shop.public.{table}"):
        value = each.value or {"op": "-", "before": None, "after": None}
        found.append((value["op"], value["before"], value["after"]))
    return found


def read(driven: Driven, count: int) -> None:
    """Until so many records are there in all."""
    driven.until(lambda: len(driven.topics) >= count)
    assert len(driven.topics) == count, driven.topics[count:]


def test_rows_then_changes_in_debeziums_envelope(postgres: Database, reading: Reading) -> None:
    postgres.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, euro NUMERIC(8,2) NOT NULL)", "INSERT INTO orders VALUES (1, 2.5)"
    )
    driven = reading()
    read(driven, 1)
    postgres.sql(
        "UPDATE orders SET euro = 3",
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (2, 0)",
        "UPDATE orders SET id = 3",
    )
    read(driven, 8)
    driven.die()
    first = {"id": 1, "euro": Decimal("2.50")}
    zero = {"euro": Decimal("0.00")}
    assert changes(driven) == [
        ("r", None, first),
        ("u", None, {**first, "euro": Decimal("3.00")}),
        ("d", {"id": 1, **zero}, None),
        ("-", None, None),
        ("c", None, {"id": 2, **zero}),
        ("d", {"id": 2, **zero}, None),
        ("-", None, None),
        ("c", None, {"id": 3, **zero}),
    ]
    assert [each.key["id"] for each in driven.topics] == [1, 1, 1, 1, 2, 2, 2, 3]
    source = driven.topics[1].value["source"]
    assert (source["connector"], source["name"], source["schema"], source["table"]) == (
        "postgresql",
        "shop",
        "public",
        "orders",
    )
    assert (
        source["snapshot"] == "false" and source["lsn"] > 0 and driven.topics[0].value["source"]["snapshot"] == "true"
    )
    schema = driven.batches[0].values.schema
    assert schema is not None and schema.name == "shop.public.orders.Envelope"
    assert [each.name for each in schema.fields] == ["before", "after", "source", "op", "ts_ms"]
    key = driven.batches[0].keys.schema
    assert key is not None and key.name == "shop.public.orders.Key"


def test_a_large_value_that_did_not_change_is_marked_or_told_from_the_old_row(
    postgres: Database, reading: Reading
) -> None:
    postgres.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT, body TEXT)",
        "ALTER TABLE orders ALTER body SET STORAGE EXTERNAL",
    )
    driven = reading(snapshot_mode="never")
    driven.round()
    postgres.sql(
        "INSERT INTO orders VALUES (1, 1, repeat('x', 9000))",
        "UPDATE orders SET n = 2",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "UPDATE orders SET n = 3",
    )
    read(driven, 3)
    driven.die()
    bodies = [each.value["after"]["body"] for each in driven.topics]
    assert bodies == ["x" * 9000, "__debezium_unavailable_value", "x" * 9000]
    assert driven.topics[2].value["before"]["n"] == 2


def test_columns_may_come_and_go(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY, a INT)")
    driven = reading()
    driven.round()
    postgres.sql(
        "INSERT INTO orders VALUES (1, 1)",
        "ALTER TABLE orders ADD b TEXT",
        "INSERT INTO orders VALUES (2, 2, 'b')",
        "ALTER TABLE orders DROP a",
        "INSERT INTO orders VALUES (3, 'c')",
    )
    read(driven, 3)
    driven.die()
    assert [after for _, _, after in changes(driven)] == [
        {"id": 1, "a": 1},
        {"id": 2, "a": 2, "b": "b"},
        {"id": 3, "b": "c"},
    ]


def test_a_table_without_a_key_is_refused_until_its_rows_can_be_told_apart(
    postgres: Database, reading: Reading
) -> None:
    postgres.sql("CREATE TABLE orders (id INT)", "INSERT INTO orders VALUES (1)")
    with pytest.raises(
        ConnectorFailure, match=r"public\.orders has no primary key.*REPLICA IDENTITY FULL.*table\.exclude\.list"
    ):
        reading().round()
    postgres.sql("UPDATE orders SET id = 2", "ALTER TABLE orders REPLICA IDENTITY FULL")
    driven = reading()
    driven.round()
    postgres.sql("UPDATE orders SET id = 3", "DELETE FROM orders")
    read(driven, 3)
    driven.die()
    assert changes(driven) == [("r", None, {"id": 2}), ("u", {"id": 2}, {"id": 3}), ("d", {"id": 3}, None)]
    assert [each.key for each in driven.topics] == [None, None, None]


def test_truncates_are_told_if_asked(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    driven = reading(skipped_operations="none")
    driven.round()
    postgres.sql("INSERT INTO orders VALUES (1)", "TRUNCATE orders", "INSERT INTO orders VALUES (1)")
    read(driven, 3)
    driven.die()
    assert [op for op, _, _ in changes(driven)] == ["c", "t", "c"] and driven.topics[1].key is None


def test_a_transaction_larger_than_a_batch_is_cut_and_goes_on_where_it_was(
    postgres: Database, reading: Reading
) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE TABLE lines (id INT PRIMARY KEY)")
    driven = reading(max_batch_size="100")
    driven.round()
    before = driven.offset
    postgres.sql(
        "WITH made AS (INSERT INTO orders SELECT generate_series(1, 1000) RETURNING id) INSERT INTO lines SELECT "
        "id FROM made"
    )
    while len(driven.topics) < 2000:
        if driven.round_of_one_piece():
            driven.die()
    driven.die()
    for table in ("orders", "lines"):
        assert [after["id"] for _, _, after in changes(driven, table)] == list(range(1, 1001))  # type: ignore[index]
    assert driven.offset is not None and before is not None and driven.offset["changes"] == 2000


@pytest.mark.parametrize("between", ["snapshot", "heartbeat"])
def test_tables_of_a_transaction_that_are_out_stay_out_whatever_comes_before_the_others(
    postgres: Database, reading: Reading, between: str
) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE TABLE lines (id INT PRIMARY KEY)")
    driven = reading()
    driven.round()
    postgres.sql("WITH made AS (INSERT INTO orders VALUES (1), (2) RETURNING id) INSERT INTO lines SELECT id FROM made")
    while not driven.topics:
        driven.round_of_one_piece()
    assert len({each.topic for each in driven.topics}) == 1, "only one of the tables is out"
    driven.die()
    if between == "snapshot":
        postgres.sql("CREATE TABLE more (id INT PRIMARY KEY)", "INSERT INTO more VALUES (7)")
    else:
        driven.make = reading(heartbeat_interval_ms="1").make
    driven.round_of_one_piece()
    driven.die()
    driven.make = reading().make
    driven.until(lambda: all(changes(driven, table) for table in ("orders", "lines")))
    driven.die()
    for table in ("orders", "lines"):
        assert [after["id"] for _, _, after in changes(driven, table)] == [1, 2]  # type: ignore[index]


def test_a_large_key_that_did_not_change_stays_the_key(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id TEXT PRIMARY KEY, n INT)", "ALTER TABLE orders ALTER id SET STORAGE EXTERNAL")
    driven = reading(snapshot_mode="never")
    driven.round()
    postgres.sql("INSERT INTO orders VALUES (repeat('k', 2500), 1)", "UPDATE orders SET n = 2")
    driven.until(lambda: len(driven.topics) >= 2)
    driven.die()
    assert [op for op, _, _ in changes(driven)] == ["c", "u"]
    assert [each.key for each in driven.topics] == [{"id": "k" * 2500}] * 2
    assert driven.topics[1].value["after"] == {"id": "k" * 2500, "n": 2}


def test_an_idle_table_holds_no_wal_and_what_is_not_published_does(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE TABLE other (id INT)")

    def confirmed() -> int:
        ((lsn,),) = postgres.sql(
            f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{postgres.name}'"
        )
        return lsn_of_text(lsn)

    driven = reading(table_include_list="public.orders", heartbeat_interval_ms="1")
    driven.until(lambda: bool(driven.of("__debezium-heartbeat.shop")))
    postgres.sql("INSERT INTO other SELECT generate_series(1, 10000)")
    ((now,),) = postgres.sql("SELECT pg_current_wal_lsn()")
    driven.until(lambda: confirmed() >= lsn_of_text(now))
    # Read, but not published: the server must keep it.
    postgres.sql("INSERT INTO orders VALUES (1)")
    ((then,),) = postgres.sql("SELECT pg_current_wal_lsn()")
    pieces = driven.pieces()
    while next(pieces).records.topics[0].as_py() != "shop.public.orders":
        pass
    assert confirmed() < lsn_of_text(then)
    driven.die()
    driven.until(lambda: bool(driven.of("shop.public.orders")))
    driven.die()
    assert len(driven.of("shop.public.orders")) == 1


def test_a_table_that_is_new_gets_its_snapshot_too(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    driven = reading()
    driven.round()
    driven.die()
    postgres.sql("CREATE TABLE lines (id INT PRIMARY KEY)", "INSERT INTO lines VALUES (7)")
    driven.round()
    postgres.sql("INSERT INTO lines VALUES (8)")
    read(driven, 3)
    driven.die()
    assert [op for op, _, _ in changes(driven, "lines")] == ["r", "c"]


def test_what_cannot_work_names_the_setting(postgres: Database, reading: Reading) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    for settings, words in (
        ({"database_password": "wrong"}, r"check database\.user and database\.password"),
        ({"database_dbname": "nowhere"}, r"no such database.*database\.dbname"),
        ({"table_include_list": "public.nothing"}, r"table\.include\.list"),
        ({"publication_autocreate_mode": "disabled"}, r"publication\.autocreate\.mode"),
    ):
        with pytest.raises(ConnectorFailure, match=words):
            reading(**settings).round()
    with pytest.raises(Outage, match=r"database\.hostname and database\.port"):
        reading(database_port=str(free_ports(1)[0])).round()
    driven = reading()
    driven.round()
    driven.die()
    postgres.sql(f"SELECT pg_drop_replication_slot('{postgres.name}')")
    with pytest.raises(ConnectorFailure, match=r"slot db\d+ is gone.*DELETE the connector's offsets"):
        driven.round()


def test_types_that_have_no_twin_come_as_text_and_none_is_lost(postgres: Database, reading: Reading) -> None:
    postgres.sql(
        "CREATE TYPE colour AS ENUM ('red', 'blue')",
        "CREATE TABLE orders (id UUID PRIMARY KEY, c colour, tags TEXT[], numbers INT[], j JSONB, ip INET, span "
        "INTERVAL, "
        "day DATE, at TIMESTAMP, big NUMERIC, raw BYTEA, ok BOOL, f REAL)",
    )
    row = (
        "('6f1f9a3e-0000-4000-8000-000000000000', 'blue', '{\"a b\",NULL,\"q\\\"\"}', '{1,2}', '{\"k\": [1]}', "
        "'10.0.0.1', "
        "'1 day 2 hours', '0044-03-15 BC', 'infinity', 12345678901234567890.5, '\\x00ff', true, 0.1)"
    )
    driven = reading()
    driven.round()
    postgres.sql(f"INSERT INTO orders VALUES {row}")
    read(driven, 1)
    driven.die()
    again = reading()
    again.round()
    # Row by row and by COPY it is the same.
    assert again.topics[0].value["after"] == driven.topics[0].value["after"]
    after = driven.topics[0].value["after"]
    assert after["c"] == "blue" and after["tags"] == ["a b", None, 'q"'] and after["numbers"] == [1, 2]
    assert json.loads(after["j"]) == {"k": [1]} and after["ip"] == "10.0.0.1" and after["span"] == "P1DT2H"
    assert after["at"] == 2**63 - 1 and after["raw"] == b"\x00\xff" and after["ok"] is True
    assert after["day"] == -735160 and after["big"] == {"scale": 1, "value": (123456789012345678905).to_bytes(9, "big")}


def test_a_snapshot_sees_what_was_committed_before_it_also_across_epochs() -> None:
    assert is_seen("10:20:12,15", 9) and is_seen("10:20:12,15", 11)
    assert not is_seen("10:20:12,15", 12) and not is_seen("10:20:12,15", 20)
    epoch = 1 << 32
    assert is_seen(f"{epoch + 5}:{epoch + 5}:", 2**32 - 1) and not is_seen(f"{epoch - 1}:{epoch - 1}:", 3)


def test_a_slot_that_somebody_else_reads_is_waited_for_and_then_named(
    postgres: Database, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    first = reading()
    first.round()
    second = reading()
    second.offset = first.offset
    monkeypatch.setattr("ottla.connect.databases.postgres.stream._SLOT_SECONDS", 0.3)
    with pytest.raises(Outage, match="Somebody else reads from the slot"):
        second.round()
    monkeypatch.undo()
    leaving = threading.Timer(0.5, first.die)
    leaving.start()
    postgres.sql("INSERT INTO orders VALUES (1)")
    read(second, 1)
    leaving.join()
    second.die()


@pytest.mark.parametrize("include", ["", "public.orders"])
def test_changes_of_partitions_are_those_of_their_table(postgres: Database, reading: Reading, include: str) -> None:
    postgres.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id)",
        "CREATE TABLE orders_low PARTITION OF orders FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE orders_high PARTITION OF orders FOR VALUES FROM (100) TO (200)",
        "INSERT INTO orders VALUES (1, 1)",
    )
    driven = reading(table_include_list=include)
    read(driven, 1)
    postgres.sql("INSERT INTO orders VALUES (101, 1)", "UPDATE orders SET n = 2 WHERE id = 1")
    postgres.sql("UPDATE orders SET id = 102 WHERE id = 1")
    read(driven, 6)
    driven.die()
    assert [each.key["id"] for each in driven.topics] == [1, 101, 1, 1, 1, 102]
    assert [op for op, _, _ in changes(driven)] == ["r", "c", "u", "d", "-", "c"]


def test_a_publication_that_names_partitions_is_refused_or_changed(postgres: Database, reading: Reading) -> None:
    postgres.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE orders_low PARTITION OF orders FOR VALUES FROM (0) TO (100)",
        "CREATE PUBLICATION ottla_publication FOR TABLE orders",
    )
    with pytest.raises(ConnectorFailure, match=r"has partitions.*publish_via_partition_root"):
        reading(publication_autocreate_mode="disabled").round()
    driven = reading()
    driven.round()
    postgres.sql("INSERT INTO orders VALUES (1)")
    read(driven, 1)
    driven.die()
    assert [op for op, _, _ in changes(driven)] == ["c"]
