"""Thousands of partitions: a start after a clean stop opens no log, reads little, and is quick."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.log_dir import CLEAN_SHUTDOWN_FILE
from ottla.storage.log_manager import LogManager
from tests.storage.batches import append
from tests.support.manual_clock import ManualClock


def manager(path: Path) -> LogManager:
    return LogManager([path], node_id=1, cluster_id="c", clock=ManualClock(), default_config=LogConfig())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def bytes_read() -> int:
    """By this process since it began."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_many_partitions_start_without_open_files(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open()
    before = descriptors()
    for n in range(300):
        log = logs.create(TopicPartition("t", n), random_topic_id(), LogConfig())
        if n % 2:
            append(log, b"x" * 20_000)
    assert descriptors() <= before + 151
    logs.close()
    assert descriptors() <= before

    logs = manager(tmp_path)
    began = bytes_read()
    logs.open()
    read = bytes_read() - began
    assert descriptors() <= before
    assert sum(log.log_end_offset for log in logs.logs.values()) == 150
    assert read < 150 * 20_000, "a start that reads logs reads more"
    logs.close()


def test_an_untouched_partition_is_a_folder_with_its_topic_id(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.open()
    log = logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig())
    assert [path.name for path in log.dir.iterdir()] == ["partition.metadata"]
    logs.close()
    logs = manager(tmp_path)
    logs.open()
    assert append(logs.logs[TopicPartition("t", 0)], b"first") == 0
    logs.close()


def test_a_stop_needs_few_descriptors(tmp_path: Path) -> None:
    """Also after a crash, when every index may have to be synced."""
    logs = manager(tmp_path)
    logs.open()
    for n in range(300):
        append(logs.create(TopicPartition("t", n), random_topic_id(), LogConfig()), b"x")
    logs.close(clean=False)
    logs = manager(tmp_path)
    logs.open()
    for log in logs.logs.values():
        log.flush()
        for segment in log.segments:
            segment.release()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 30, hard))
    try:
        logs.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
