"""Where a checkpoint is: on this machine, or wherever Hadoop's settings say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.common.errors import OttlaError
from ottla.spark.sink.checkpoint import Checkpoint, local_path, query_of
from ottla.spark.sink.streaming import FILE_MANAGER
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import copying, customers, send
from tests.spark.reading import committed_records

_numbers = itertools.count()


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:///data/x", "/data/x"),
        ("file:/data/x", "/data/x"),
        ("file://localhost/data/x", "/data/x"),
        ("file:///data/a b#c?d%20e", "/data/a b#c?d%20e"),
        ("/data/x", None),
        ("data/x", None),
        ("hdfs://name/data/x", None),
        ("files:/x", None),
    ],
)
def test_a_location_says_that_it_is_here_or_does_not(location: str, path: str | None) -> None:
    assert local_path(location) == (None if path is None else Path(path))


@pytest.fixture
def elsewhere(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A session whose default file system is another one: `/there` is a folder behind it."""
    (tmp_path / "behind").mkdir()
    session = spark.newSession()
    # Another one for each test: Hadoop keeps those that it has met.
    other = f"other{next(_numbers)}"
    session.conf.set("fs.defaultFS", f"viewfs://{other}/")
    session.conf.set(f"fs.viewfs.mounttable.{other}.link./there", f"file://{tmp_path}/behind")
    ottla.spark.register(session)
    yield session


def test_a_path_without_a_scheme_is_on_the_default_file_system(spark: Any, elsewhere: Any, tmp_path: Path) -> None:
    assert Checkpoint(spark, f"{tmp_path}/x/").local == tmp_path / "x"
    assert Checkpoint(elsewhere, f"file://{tmp_path}/x").local == tmp_path / "x"
    there = Checkpoint(elsewhere, "/there/x")
    assert there.local is None
    assert there.qualified == f"{elsewhere.conf.get('fs.defaultFS')}there/x"
    assert there.last_query() is None
    there.remove_all()


def test_a_query_whose_checkpoint_is_not_here_is_written_and_goes_on(
    elsewhere: Any, broker: Broker, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    source, target = topics.create(servers), topics.create(servers)
    for numbers in (range(10), range(10, 20)):
        topics.produce(servers, source, numbers)
        stream = (
            elsewhere.readStream.format("ottla")
            .options(**{"kafka.bootstrap.servers": servers, "subscribe": source, "startingOffsets": "earliest"})
            .load()
        )
        ottla.spark.write_stream(
            stream.select("value"), name=source, bootstrap=servers, topic=target, checkpoint="/there/deep/checkpoint",
            trigger={"availableNow": True},
        ).awaitTermination()  # fmt: skip
    assert sorted(int(value[1:]) for _, value in committed_records(servers, target)) == list(range(20))
    assert elsewhere.conf.get(FILE_MANAGER, None) is None, "the one for local disks is for local disks"
    assert query_of(tmp_path / "behind" / "deep" / "checkpoint") is not None


@pytest.mark.parametrize(
    "place",
    [
        "file:///",
        pytest.param("file:/", marks=pytest.mark.slow),
        pytest.param("/", marks=pytest.mark.slow),
        "elsewhere",
    ],
)
def test_a_reset_removes_the_checkpoint_and_the_marker(
    spark: Any, elsewhere: Any, broker: Broker, tmp_path: Path, place: str
) -> None:
    servers, name = broker.bootstrap_servers, f"reset-{len(place)}"
    session = elsewhere if place == "elsewhere" else spark
    folder = tmp_path / ("behind" if place == "elsewhere" else "a b#c") / "checkpoint"
    location = "/there/checkpoint" if place == "elsewhere" else place + str(folder).lstrip("/")
    source, target = topics.create(servers), topics.create(servers)
    send(servers, source, [order("one", 1)])

    def running() -> Running:
        return Running(
            session, copying(name, source, target), servers, tmp_path / "home", once=True, checkpoint=location
        )

    for _ in range(2):
        with running() as run:
            run.wait()
        assert run.error is None
    assert customers(servers, target) == ["one"]
    again = running()
    again.runner.reset()
    assert not folder.exists()
    assert ottla.spark.published(name=name, bootstrap=servers) is None
    with again:
        again.wait()
    assert again.error is None
    assert customers(servers, target) == ["one", "one"]


def test_a_reset_removes_neither_where_it_cannot_remove_both(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = broker.bootstrap_servers
    source, target = topics.create(servers), topics.create(servers)
    send(servers, source, [order("one", 1)])
    with Running(spark, copying("kept", source, target), servers, tmp_path, once=True) as run:
        run.wait()
    away = Running(spark, copying("kept", source, target), "127.0.0.1:1", tmp_path, once=True)
    with pytest.raises(OttlaError, match="cannot reach any broker"):
        away.runner.reset()
    assert query_of(run.home.checkpoint) is not None

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    again = Running(spark, copying("kept", source, target), servers, tmp_path, once=True)
    with pytest.raises(OttlaError, match=r"cannot be removed: Permission denied\."):
        again.runner.reset()
    assert ottla.spark.published(name="kept", bootstrap=servers) is not None
