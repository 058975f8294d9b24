"""A broker, topics and pipelines for the tests of the runner."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.home import Home, Status
from ottla.spark.pipeline.progress import BatchFigures
from ottla.spark.pipeline.runner import Runner, RunSettings
from ottla.testing import Broker
from tests.support.either_cluster import EITHER, one_node

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture(scope="module", params=EITHER)
def either_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The servers of an Ottla, and in the slow suite those of an Apache Kafka as well."""
    with one_node(request.param, tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


@pytest.fixture
def name() -> str:
    """Of a pipeline that nothing else has."""
    return f"pipeline-{next(_numbers)}"


class Heard:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.sentences: list[str] = []
        self.batches: list[BatchFigures] = []

    def event(self, name: str, sentence: str, **facts: Any) -> None:
        self.events.append(name)
        self.sentences.append(facts.get("problem") or sentence)

    def batch(self, status: Status, batch: BatchFigures) -> None:
        self.batches.append(batch)


class Running:
    """A pipeline under a runner in this process, on the session of all tests."""

    def __init__(self, spark: Any, pipeline: Pipeline, servers: str, folder: Path, **settings: Any) -> None:
        self.heard = Heard()
        self.home = Home(folder, pipeline.name)
        client = {"kafka.bootstrap.servers": servers} | settings.pop("client", {})
        wanted = RunSettings(client=client, **{"pause_s_first": 0.1, **settings})
        self.runner = Runner(pipeline, wanted, self.home, self.heard, sessions=lambda: spark)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.runner.run()
        except BaseException as error:
            self.error = error

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.runner.request_stop()
        self.wait()

    def wait(self, timeout_s: float = 280) -> None:
        self._thread.join(timeout_s)
        assert not self._thread.is_alive()


def order(customer: str, euro: float) -> bytes:
    return json.dumps({"customer": customer, "euro": euro}).encode()
