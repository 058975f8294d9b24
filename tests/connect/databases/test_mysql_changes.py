"""What MariaDB's binlog has beside plain transactions."""

from __future__ import annotations

import pytest

from ottla.connect.api import ConnectorFailure
from ottla.connect.databases.mysql.source import MysqlSource
from tests.connect.databases.driving import Driven
from tests.support.databases import Database


def test_a_prepared_transaction_is_refused_and_what_was_before_it_is_published(mariadb: Database) -> None:
    """Its rows are in the binlog though it may be rolled back."""
    mariadb.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    config = {
        **mariadb.settings,
        "name": "shop",
        "topic.prefix": "shop",
        "database.include.list": mariadb.name,
        "poll.interval.ms": "20",
    }
    driven = Driven(lambda: MysqlSource(config))
    driven.round()
    mariadb.sql(
        "INSERT INTO orders VALUES (1)",
        "XA START 'one'",
        "INSERT INTO orders VALUES (2)",
        "XA END 'one'",
        "XA PREPARE 'one'",
        "XA ROLLBACK 'one'",
        "INSERT INTO orders VALUES (3)",
    )
    with pytest.raises(ConnectorFailure, match="XA transaction at binlog"):
        driven.round()
    assert [each.key["id"] for each in driven.topics] == [1]
    with pytest.raises(ConnectorFailure, match="without XA PREPARE"):
        driven.round()
    assert [each.key["id"] for each in driven.topics] == [1]
    driven.die()
