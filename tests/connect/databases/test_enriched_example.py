"""examples/connect/enriched_orders: a table of PostgreSQL as a compacted topic, with which orders are enriched."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.connect.databases.test_end_to_end import create, wait
from tests.support.databases import Database
from tests.support.kafka_jars import REPO_ROOT

FOLDER = REPO_ROOT / "examples" / "connect" / "enriched_orders"
TOPIC = "shop.public.customers"


@pytest.fixture
def example() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "enriched.py"))


def test_it_shows_what_it_says_without_a_database(example: dict[str, Any]) -> None:
    assert [(one["name"], one["country"]) for one in example["run"]()] == [
        ("Anna", "DE"),
        ("Anna", "FR"),
        ("unknown", "unknown"),
    ]


def config_of_the_file(postgres: Database) -> dict[str, str]:
    lines = [line for line in (FOLDER / "customers.properties").read_text().splitlines() if not line.startswith("#")]
    config = dict(line.split("=", 1) for line in lines)
    assert config.pop("name") == "customers"
    return {**config, **postgres.settings, "database.dbname": postgres.name, "slot.name": postgres.name}


def test_a_change_of_the_table_enriches_the_next_order(
    example: dict[str, Any], connect: Any, broker: Any, postgres: Database
) -> None:
    """Its own files, with the address of this database: what the connector writes is what the application reads."""
    from ottla.streams import TopologyTestDriver

    postgres.sql(*filter(str.strip, (FOLDER / "customers.sql").read_text().split(";")))
    broker.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    create(connect, "enriched-customers", config_of_the_file(postgres))

    def written() -> list[Any]:
        return list(broker.records(TOPIC))

    wait(lambda: len(written()) == 2, connect, "enriched-customers")
    postgres.sql("UPDATE customers SET country = 'AT' WHERE id = 2", "DELETE FROM customers WHERE id = 1")
    # The update, the delete, and the record without a value behind it.
    wait(lambda: len(written()) == 5, connect, "enriched-customers")
    app, orders = example["app"], [("7", {"customer": 1}), ("8", {"customer": 2})]
    with TopologyTestDriver(app.topology, handling=app.handling) as driver:

        def enriched() -> list[str]:
            for key, order in orders:
                driver.input_topic("orders").pipe(order, key=key)
            found = [one.value for one in driver.output_topic("enriched-orders").read_all()]
            return [f"{order['name']} {order['country']}" for order in found]

        seen = []
        for number, record in enumerate(written(), start=1):
            value = None if record.value is None else record.json
            driver.input_topic(TOPIC).pipe(value, key=record.key.decode())
            if number in (2, 5):
                seen.append(enriched())
    assert seen == [["Anna DE", "Ben FR"], ["unknown unknown", "Ben AT"]]
    assert connect.ask("DELETE", "/connectors/enriched-customers")[0] == 204
