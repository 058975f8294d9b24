"""Topics that are made larger, deleted or made anew under a pipeline that runs: it goes on, or says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import copying, customers, eventually, send


@pytest.fixture
def servers(either_cluster: str) -> str:
    return either_cluster


def some(first: int, count: int = 10) -> list[str]:
    return [f"c{number}" for number in range(first, first + count)]


class Scene:
    """A pipeline from one topic to another."""

    def __init__(self, spark: Any, servers: str, name: str, folder: Path) -> None:
        self._spark, self._name, self._folder = spark, name, folder
        self.servers = servers
        self.source, self.target = kafka.create(servers), kafka.create(servers)

    def running(self, **more: Any) -> Running:
        return Running(self._spark, copying(self._name, self.source, self.target), self.servers, self._folder, **more)

    def send(self, names: list[str]) -> None:
        send(self.servers, self.source, [order(one, 1) for one in names])

    def written(self) -> list[str]:
        return sorted(customers(self.servers, self.target), key=lambda one: int(one[1:]))

    def wait_for(self, names: list[str]) -> None:
        eventually(lambda: len(self.written()) >= len(names))
        assert self.written() == names


@pytest.fixture
def scene(spark: Any, servers: str, name: str, tmp_path: Path) -> Scene:
    return Scene(spark, servers, name, tmp_path)


@pytest.mark.slow
def test_both_topics_may_be_made_larger(scene: Scene) -> None:
    scene.send(some(0))
    with scene.running() as run:
        scene.wait_for(some(0))
        kafka.grow(scene.servers, scene.source, 3)
        kafka.grow(scene.servers, scene.target, 4)
        scene.send(some(10, 30))
        scene.wait_for(some(0, 40))
    assert run.error is None
    assert "restarting" not in run.heard.events
    with scene.running(once=True) as run:
        run.wait()
    assert scene.written() == some(0, 40)


@pytest.mark.slow
def test_an_output_that_was_deleted_ends_it_and_a_new_one_gets_the_rest(scene: Scene) -> None:
    scene.send(some(0))
    with scene.running() as run:
        scene.wait_for(some(0))
        kafka.delete(scene.servers, scene.target)
        scene.send(some(10))
        run.wait()
    assert f"there is no topic '{scene.target}'" in str(run.error)
    eventually(lambda: not kafka.exists(scene.servers, scene.target))
    kafka.create(scene.servers, name=scene.target)
    with scene.running(once=True) as run:
        run.wait()
    assert run.error is None
    assert scene.written() == some(10)


@pytest.mark.slow
@pytest.mark.parametrize("is_made_anew", [False, True], ids=["deleted", "made anew"])
def test_a_source_that_was_deleted_ends_it_and_nothing_is_read_twice(scene: Scene, is_made_anew: bool) -> None:
    scene.send(some(0))
    with scene.running() as run:
        scene.wait_for(some(0))
        kafka.delete(scene.servers, scene.source)
        if is_made_anew:
            eventually(lambda: not kafka.exists(scene.servers, scene.source))
            kafka.create(scene.servers, name=scene.source)
            scene.send(some(10, 20))
        run.wait()
    said = f"topic {scene.source} was deleted and made anew" if is_made_anew else f"partition {scene.source}-0 does not"
    assert f"data were lost: {said}" in str(run.error)
    assert "restarting" not in run.heard.events
    assert scene.written() == some(0)
