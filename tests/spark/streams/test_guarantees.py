"""`at_least_once` on real Spark: results are seen before their batch is done, and come again when it is broken off, but
nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from ottla.spark.sink import publishing
from ottla.streams import ErrorHandling, OnError, StreamsBuilder, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.streams.test_application import by_key, in_order, produce


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


class DriverDied(Exception):
    pass


def die_before_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, when all that comes outside of it is written."""
    inside = publishing.Publisher._inside

    def die(self: Any, batches: Any) -> Any:
        monkeypatch.setattr(publishing.Publisher, "_inside", inside)
        raise DriverDied("here")

    monkeypatch.setattr(publishing.Publisher, "_inside", die)


@pytest.mark.slow
def test_results_of_a_batch_that_is_broken_off_come_again_and_state_is_exact(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, passed, counted, dead = (topics.create(servers, 1) for _ in range(4))
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    lines = builder.stream(source)
    lines.map_values(lambda value: str(10 // int(value))).to(passed)
    # Through a repartition topic: what a broken batch has put there must not be counted either.
    counts = lines.group_by(lambda key, value: f"{key}!").count(store="counts")
    counts.to_stream().map_values(str).to(counted)
    application = StreamsApplication(
        builder.build(),
        application_id="at-least-once",
        bootstrap=servers,
        handling=ErrorHandling(processing=OnError.DEAD_LETTER, dead_letter_topic=dead),
        processing_guarantee="at_least_once",
    )
    checkpoint = str(tmp_path / "checkpoint")
    produce(servers, [(source, "k", value, 5) for value in ("5", "2", "0")], {"k": 0})
    die_before_the_transaction(monkeypatch)
    with pytest.raises(StreamingQueryException, match="DriverDied"):
        application.run_available(spark, checkpoint=checkpoint)
    once = [("2", 5), ("5", 5)]
    # Read by a consumer that sees what is committed only: these are in no transaction.
    assert by_key(servers, passed) == {"k": once} and len(in_order(servers, dead)) == 1

    application.run_available(spark, checkpoint=checkpoint)
    assert by_key(servers, passed) == {"k": 2 * once} and len(in_order(servers, dead)) == 2
    assert by_key(servers, counted) == {"k!": [("1", 5), ("2", 5)]}
