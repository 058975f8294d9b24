"""Logs over directories: create, find again, delete, lock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.checkpoints import RECOVERY_POINTS, read_partition_metadata
from ottla.storage.log_manager import LogManager
from ottla.testing.simulation.durable_disk import DurableDisk, SyncedOnly
from tests.storage.batches import append, open_log, read_all
from tests.support.manual_clock import ManualClock


def manager(*dirs: Path, clock: ManualClock | None = None, node_id: int = 1) -> LogManager:
    return LogManager(
        dirs, node_id=node_id, cluster_id="cluster-a", clock=clock or ManualClock(), default_config=LogConfig()
    )


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    one = manager(tmp_path)
    one.open()
    yield one
    one.close()


def test_a_log_is_found_again_after_a_stop(tmp_path: Path) -> None:
    first = manager(tmp_path)
    first.open()
    topic_id = random_topic_id()
    log = first.create(TopicPartition("a.b-c", 3), topic_id, LogConfig())
    append(log, b"1", b"2")
    first.close()
    second = manager(tmp_path)
    second.open()
    found = second.get(TopicPartition("a.b-c", 3))
    assert found is not None
    assert (found.topic_id, found.high_watermark, found.recovery_point) == (topic_id, 2, 2)
    assert read_all(found) == [(0, b"1"), (1, b"2")]
    second.close()


def test_the_recovery_point_of_a_moved_log_is_on_disk_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash right after the move finds a compacted log, whose gaps are no holes."""
    logs = manager(tmp_path / "a", tmp_path / "b")
    logs.open()
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig(cleanup_compact=True))
    append(log, b"1", b"2")
    target = logs.dirs[1]
    future = logs.begin_move(log, target)
    future.copy(future.missing(0))
    monkeypatch.setattr(logs, "checkpoint", list)
    new = logs.switch(future, target)
    assert new.dir.parent == tmp_path / "b"
    assert target.read_offsets(RECOVERY_POINTS) == {TopicPartition("t", 0): 2}
    logs.close(clean=False)


def test_a_log_that_lacks_records_lacks_them_in_its_new_place(tmp_path: Path) -> None:
    """Or it would go on behind the hole as soon as it follows somebody."""
    first = manager(tmp_path / "a", tmp_path / "b")
    first.open()
    log = first.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    for value in (b"1", b"2", b"3"):
        append(log, value)
    log.flush()
    first.checkpoint()
    first.close(clean=False)
    path = log.segments[0].path(".log")
    os.truncate(path, path.stat().st_size - 1)
    second = manager(tmp_path / "a", tmp_path / "b")
    second.open()
    torn = second.logs[TopicPartition("t", 0)]
    assert torn.hole == 2
    target = next(one for one in second.dirs if one is not second.dir_of(torn.topic_partition))
    future = second.begin_move(torn, target)
    future.copy(future.missing(0))
    moved = second.switch(future, target)
    assert (moved.hole, moved.damage) == (2, torn.damage)
    second.close()


def test_after_a_clean_stop_all_is_synced_whatever_the_checkpoint_says(tmp_path: Path) -> None:
    first = manager(tmp_path)
    first.open()
    append(first.create(TopicPartition("t", 0), random_topic_id(), LogConfig()), b"1", b"2")
    first.close()
    (tmp_path / RECOVERY_POINTS).unlink()
    second = manager(tmp_path)
    second.open()
    assert second.logs[TopicPartition("t", 0)].recovery_point == 2
    second.close()


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path, logs: LogManager) -> None:
    with pytest.raises(OttlaError, match="in use by another broker"):
        manager(tmp_path).open()


def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    first = manager(tmp_path)
    first.open()
    first.close()
    with pytest.raises(OttlaError, match=r"node\.id 1"):
        manager(tmp_path, node_id=2).open()


def test_new_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    logs = manager(tmp_path / "a", tmp_path / "b")
    logs.open()
    for n in range(4):
        logs.create(TopicPartition("t", n), random_topic_id(), LogConfig())
    assert sorted(log.dir.parent.name for log in logs.logs.values()) == ["a", "a", "b", "b"]
    logs.close()


def test_deleted_files_go_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = manager(tmp_path, clock=clock)
    logs.open()
    topic_partition = TopicPartition("t", 0)
    append(logs.create(topic_partition, random_topic_id(), LogConfig()), b"x")
    logs.delete(topic_partition)
    assert logs.get(topic_partition) is None
    assert next(one.name for one in tmp_path.glob("t-0*")).endswith("-delete")
    clock.advance(59_000)
    assert logs.doomed.tick() is None
    assert list(tmp_path.glob("t-0*"))
    clock.advance(1_000)
    removal = logs.doomed.tick()
    assert removal is not None
    removal.result()
    assert not list(tmp_path.glob("t-0*"))
    logs.close()


def test_a_log_is_of_the_topic_that_it_was_made_for(logs: LogManager) -> None:
    tp, topic_id = TopicPartition("t", 0), random_topic_id()
    append(first := logs.create(tp, topic_id, LogConfig()), b"x")
    assert logs.create(tp, topic_id, LogConfig()) is first
    assert read_all(logs.create(tp, random_topic_id(), LogConfig())) == []


@pytest.mark.parametrize("ahead", ["a", "b", None])
def test_a_partition_in_two_directories_is_kept_where_it_goes_further(tmp_path: Path, ahead: str | None) -> None:
    logs = manager(tmp_path / "a", tmp_path / "b")
    logs.open()
    tp = TopicPartition("t", 0)
    log = logs.create(tp, random_topic_id(), LogConfig())
    append(log, b"1")
    logs.close()
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    if ahead is not None:
        lone = open_log(tmp_path / ahead / "t-0")
        append(lone, b"2")
        lone.close()
    for folder in ("a", "b"):
        (tmp_path / folder / ".kafka_cleanshutdown").unlink()
    logs = manager(tmp_path / "a", tmp_path / "b")
    logs.open()
    kept = logs.logs[tp]
    assert kept.dir.parent.name == (ahead or "a")
    assert len(read_all(kept)) == (2 if ahead else 1)
    assert len(list(tmp_path.glob("*/t-0.*-stray"))) == 1
    logs.close()


def test_two_topics_of_one_name_in_two_directories_are_for_a_person_to_sort_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        logs = manager(tmp_path / name)
        logs.open()
        logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
        logs.close()
    with pytest.raises(OttlaError, match="remove one of them"):
        manager(tmp_path / "a", tmp_path / "b").open()
    manager(tmp_path / "a").open()


@pytest.mark.parametrize("is_named_later", [False, True])
def test_records_that_survive_a_power_cut_are_of_a_topic_that_is_known(tmp_path: Path, is_named_later: bool) -> None:
    """Or the next topic of the name takes them for its own. Found by the simulation (seed 601038 with --deletes)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = DurableDisk(folder)
    logs = LogManager([folder], node_id=1, cluster_id="a", clock=ManualClock(), default_config=LogConfig(), disk=disk)
    logs.open()
    topic_id, tp = random_topic_id(), TopicPartition("t", 0)
    log = logs.create(tp, ZERO_TOPIC_ID if is_named_later else topic_id, LogConfig())
    append(log, b"1")
    log.flush()
    if is_named_later:
        logs.name_topic(log, topic_id)
    disk.image(tmp_path / "after", SyncedOnly())
    logs.close()
    assert read_partition_metadata(tmp_path / "after" / "t-0") == topic_id
