"""A connector that does not get on is not called RUNNING, and one that is shut out takes its place again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionalProducer
from ottla.connect import plugins
from ottla.connect.api import (
    Column,
    ConfigDef,
    Offset,
    Outage,
    Partition,
    Read,
    Records,
    Schema,
    SchemaType,
    Source,
)
from tests.connect.conftest import MakeConnect
from tests.connect.test_connectors import eventually


class Stubborn(Source):
    """Read on the driver, so that a test can hold it."""

    reads_on_driver: ClassVar[bool] = True
    config_def: ClassVar[ConfigDef] = ConfigDef()
    may_go = threading.Event()
    is_out: ClassVar[bool] = False
    due: ClassVar[int] = 0
    published_up_to: ClassVar[list[int]] = []

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"of": "stubborn"}]

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        Stubborn.may_go.wait(60)
        if Stubborn.is_out:
            raise Outage("the other side is away.")
        first = int((offset or {}).get("next", 0))
        if first < Stubborn.due:
            numbers = [str(number) for number in range(first, Stubborn.due)]
            count, text = len(numbers), Schema(SchemaType.STRING)
            yield Read(
                Records(
                    pa.repeat("stubborn", count),
                    pa.nulls(count, pa.int32()),
                    pa.nulls(count, pa.int64()),
                    Column(text, pa.array(numbers)),
                    Column(text, pa.array(numbers)),
                ),
                {"next": Stubborn.due},
            )

    def published(self, partition: Partition, offset: Offset) -> None:
        Stubborn.published_up_to.append(int(offset["next"]))


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Stubborn]]:
    shipped = (*plugins._SHIPPED, f"{__name__}:Stubborn")
    monkeypatch.setattr(plugins, "_SHIPPED", shipped)
    plugins._loaded.cache_clear()
    yield Stubborn
    plugins._loaded.cache_clear()


def test_a_broker_that_restarts_costs_nothing_but_time(broker: Any, connect: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out"
    source.write_text("0\n1\n")
    connect.create("through", connector_class="FileStreamSource", file=source, topic="through")
    files = {"path": target, "format": "text", "rotate_interval_ms": 100}
    connect.create("to-files", connector_class="FilesSink", topics="through", **files)

    def lines() -> list[str]:
        paths = [path for path in sorted(target.rglob("*.txt")) if not path.name.startswith(".")]
        return [line for path in paths for line in path.read_text().splitlines()]

    eventually(lines, lambda seen: seen == ["0", "1"])
    broker.restart()
    with source.open("a") as file:
        file.write("2\n3\n")
    eventually(lines, lambda seen: seen == ["0", "1", "2", "3"])
    for name in ("through", "to-files"):
        connect.wait_for(name, "RUNNING")
        assert connect.ask("DELETE", f"/connectors/{name}")[0] == 204


def values(broker: Any, count: int) -> list[str]:
    return sorted((record.value.decode() for record in broker.records("stubborn", count=count, timeout_s=120)), key=int)


def test_a_connector_that_hangs_is_away_or_is_shut_out_says_so_and_goes_on(
    broker: Any, make_connect: MakeConnect, stubborn: type[Stubborn]
) -> None:
    settings = {"group.id": "watched", "ottla.progress.timeout.ms": "500"}
    settings |= {f"{one}.storage.topic": f"watched-{one}" for one in ("config", "offset", "status")}
    connect = make_connect(broker.bootstrap_servers, **settings)
    connect.create("hung", connector_class="Stubborn")
    trace = connect.wait_for("hung", "FAILED")["connector"]["trace"]
    assert trace.startswith("no progress for ")
    stubborn.due = 3
    stubborn.may_go.set()
    connect.wait_for("hung", "RUNNING")
    assert values(broker, 3) == ["0", "1", "2"]
    eventually(lambda: list(stubborn.published_up_to), lambda seen: seen == [3])

    stubborn.is_out = True
    assert connect.wait_for("hung", "FAILED")["connector"]["trace"].startswith("the other side is away.\nTraceback")
    stubborn.is_out = False
    connect.wait_for("hung", "RUNNING")

    # Somebody else takes the connector over, as the worker would that gets it: this one is shut out, says so, and as it
    # is still the one that the group has chosen, comes back without losing or doubling anything.
    with ClusterClient(broker.bootstrap_servers) as cluster, TransactionalProducer(cluster, "watched-hung") as other:
        other.start()
        stubborn.due = 6
        assert values(broker, 6) == ["0", "1", "2", "3", "4", "5"]
    connect.wait_for("hung", "RUNNING")
    assert values(broker, 6) == ["0", "1", "2", "3", "4", "5"]
