"""The small files of a log directory: written whole or not at all, and missed when they make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.checkpoints import MetaProperties
from ottla.storage.log_dirs.log_names import DELETE_SUFFIX, FolderName, marked_folder, parse_folder
from ottla.storage.log_manager import LogManager
from tests.storage.batches import append, read_all
from tests.support.manual_clock import ManualClock

TP = TopicPartition("a.b-c_d", 12)


def manager(path: Path, node_id: int = 1) -> LogManager:
    return LogManager([path], node_id=node_id, cluster_id="c", clock=ManualClock(), default_config=LogConfig())


def test_offsets_come_back(tmp_path: Path) -> None:
    offsets = {TP: 5, TopicPartition("x", 0): 2**40}
    checkpoints.write_offsets(tmp_path / "f", offsets)
    assert (tmp_path / "f").read_text() == f"0\n2\na.b-c_d 12 5\nx 0 {2**40}\n"
    assert checkpoints.read_offsets(tmp_path / "f") == offsets
    assert not (tmp_path / "f.tmp").exists()


@pytest.mark.parametrize(
    "content", [b"", b"0", b"0\n1\n", b"1\n0\n", b"0\n1\na b c\n", b"0\n1\na 1\n", b"\xff\xfe", b"\0" * 9]
)
def test_a_damaged_checkpoint_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    assert checkpoints.read_offsets(tmp_path / "f") is None
    assert checkpoints.read_epochs(tmp_path / "f") is None


def test_a_damaged_partition_metadata_counts_as_missing(tmp_path: Path) -> None:
    topic_id = random_topic_id()
    checkpoints.write_partition_metadata(tmp_path, topic_id)
    assert checkpoints.read_partition_metadata(tmp_path) == topic_id
    for content in ("", "version: 0", "version: 1\ntopic_id: x", "version: 0\ntopic_id: short"):
        (tmp_path / "partition.metadata").write_text(content)
        assert checkpoints.read_partition_metadata(tmp_path) is None


@pytest.mark.parametrize("content", ["", "version=0\nbroker.id=1\n", "version=1\nnode.id=1\n"])
def test_a_directory_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(OttlaError, match="not a data directory"):
        manager(tmp_path).open()
    manager(tmp_path / "other").open()


def test_meta_properties_come_back(tmp_path: Path) -> None:
    meta = MetaProperties(3, "cluster", random_topic_id())
    checkpoints.write_meta_properties(tmp_path, meta)
    assert checkpoints.read_meta_properties(tmp_path) == meta


def test_lost_checkpoints_cost_time_not_records(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open()
    log = logs.create(TP, random_topic_id(), LogConfig(segment_bytes=300))
    for n in range(20):
        append(log, b"%d" % n)
    expected = read_all(log)
    logs.close()
    for path in tmp_path.glob("*-checkpoint"):
        path.unlink()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    logs = manager(tmp_path)
    logs.open()
    assert read_all(logs.logs[TP]) == expected
    logs.close()


def test_a_partition_made_again_does_not_inherit_the_old_ones_offsets(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open()
    log = logs.create(TP, random_topic_id(), LogConfig())
    for n in range(20):
        append(log, b"%d" % n)
    log.flush()
    log.delete_records(15)
    logs.checkpoint()
    logs.delete(TP)
    append(logs.create(TP, random_topic_id(), LogConfig()), b"new")
    logs.close(clean=False)
    logs = manager(tmp_path)
    logs.open()
    assert read_all(logs.logs[TP]) == [(0, b"new")]
    logs.close()


def test_log_starts_survive_a_crash_after_a_checkpoint(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open()
    log = logs.create(TP, random_topic_id(), LogConfig())
    for n in range(5):
        append(log, b"%d" % n)
    log.delete_records(3)
    logs.checkpoint()
    logs.close(clean=False)
    logs = manager(tmp_path)
    logs.open()
    assert (logs.logs[TP].log_start_offset, logs.logs[TP].high_watermark) == (3, 5)
    logs.close()


def test_folder_names() -> None:
    assert parse_folder("a.b-c_d-12") == FolderName(TP, "")
    assert parse_folder(marked_folder(TP, DELETE_SUFFIX)) == FolderName(TP, DELETE_SUFFIX)
    long = TopicPartition("x" * 249, 100)
    assert len(marked_folder(long, DELETE_SUFFIX)) <= 255
    for other in ("plain", "lost+found", "a-", "-1", "meta.properties", "a-1.deadbeef-delete"):
        assert parse_folder(other) is None
