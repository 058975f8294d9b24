"""A disk that is full where a pipeline lives ends it with a sentence; with room again, it goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import copying, customers, eventually, send
from tests.support.small_disk import fill, small_tmpfs


@pytest.fixture
def servers(either_cluster: str) -> str:
    return either_cluster


def test_a_pipeline_does_not_begin_without_room(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "disk", "64k") as disk:
        home = Home(disk, "orders")
        with home.locked():
            pass
        fill(disk)
        (home.folder / "lock").write_text("")
        fill(disk)
        with pytest.raises(OttlaError, match="cannot be used: No space left on device"), home.locked():
            pass


def test_a_pipeline_that_runs_out_of_room_says_so_and_goes_on_when_there_is_some(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order("one", 1)])
    with small_tmpfs(tmp_path / "disk", "4m") as disk:
        with Running(spark, made, servers, disk) as run:
            eventually(lambda: len(run.heard.batches) == 1)
            ballast = fill(disk)
            send(servers, source, [order("two", 1)])
            run.wait()
        assert isinstance(run.error, OttlaError)
        assert "there is no room left on a disk" in str(run.error)
        assert "\n" not in str(run.error)
        ballast.unlink()
        with Running(spark, made, servers, disk, once=True) as run:
            run.wait()
        assert run.error is None
    assert customers(servers, target) == ["one", "two"]
