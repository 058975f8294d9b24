"""pytest fixtures; found by pytest itself once Ottla is installed. Nothing is imported until a test asks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.testing.broker import Broker
    from ottla.testing.pipelines import Pipelines


@pytest.fixture(scope="session")
def ottla_broker() -> Iterator[Broker]:
    """One broker for all tests of the session; give each test its own topic with `ottla_topic`."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def ottla_topic(ottla_broker: Broker, request: pytest.FixtureRequest) -> str:
    """A fresh topic of one partition, named after the test."""
    stem = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:100]
    name = f"{stem}-{uuid.uuid4().hex[:8]}"
    ottla_broker.create_topic(name)
    return name


@pytest.fixture(scope="session")
def ottla_spark() -> Iterator[SparkSession]:
    """The Spark of all tests of the session, on this machine. A fixture of this name of your own takes its place."""
    import ottla.spark

    settings = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 1, "spark.sql.session.timeZone": "UTC"}
    spark = ottla.spark.session(app="ottla-tests", master="local[2]", **settings)
    yield spark
    spark.stop()


@pytest.fixture
def ottla_pipelines(ottla_spark: SparkSession) -> Iterator[Pipelines]:
    """Runs pipelines on a broker that only this test has."""
    from ottla.testing.pipelines import Pipelines

    with Pipelines(ottla_spark) as pipelines:
        yield pipelines
