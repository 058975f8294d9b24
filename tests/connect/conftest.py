"""A worker in this process on the Spark that all tests of a run share, and a broker of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.conftest import spark  # noqa: F401

HERE = Path(__file__).parent
STRING = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS = {
    "key.converter": STRING,
    "value.converter": STRING,
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "300",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "status.storage.replication.factor": "1",
    "ottla.restart.backoff.ms": "200",
    "ottla.idle.max.ms": "200",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="module")
def broker() -> Iterator[Any]:
    from ottla.testing import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def connect(broker: Any, spark: Any) -> Iterator[Any]:  # noqa: F811
    """A worker in this process."""
    from ottla.testing import Connect

    with Connect(broker.bootstrap_servers, spark=spark, **SETTINGS) as running:
        yield running


class MakeConnect:
    """More workers in this process, each a member of its own."""

    def __init__(self, spark: Any) -> None:  # noqa: F811
        self._spark = spark
        self._started: list[Any] = []

    def __call__(self, bootstrap: str, **settings: Any) -> Any:
        from ottla.testing import Connect

        self._started.append(Connect(bootstrap, spark=self._spark, **{**SETTINGS, **settings}).start())
        return self._started[-1]

    def stop(self) -> None:
        """All of them; also before a cluster goes that they would wait for."""
        for one in self._started:
            one.stop()


@pytest.fixture
def make_connect(spark: Any) -> Iterator[MakeConnect]:  # noqa: F811
    made = MakeConnect(spark)
    yield made
    made.stop()
