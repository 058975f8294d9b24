"""The data directory of a stopped broker, copied, is a backup: what docs/operations.md says about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.support.brokers import OttlaProcess


@pytest.mark.parametrize("stopped", ["cleanly", pytest.param("killed", marks=pytest.mark.slow)])
def test_a_copy_of_the_data_directory_is_the_same_cluster(tmp_path: Path, stopped: str) -> None:
    with OttlaProcess(tmp_path / "first", {"offsets.topic.num.partitions": "2"}) as first:
        ottla = Cli(first.bootstrap)
        ottla.ok("topic", "create", "orders", "-p", "2", "-c", "retention.ms=123456789")
        ottla.ok("produce", "orders", stdin="a\nb\nc\n")
        ottla.ok("group", "seek", "billing", "-t", "orders", "--to", "end", "-y")
        cluster = ottla.ok("cluster", "info", "--output", "json").data["cluster_id"]
        first.stop() if stopped == "cleanly" else first.kill()
        backup = tmp_path / "backup"
        shutil.copytree(first.data_dir, backup)
        first.start()
        ottla.ok("topic", "delete", "orders", "-y")

    second = OttlaProcess(tmp_path / "second")
    second.data_dir = backup
    with second:
        ottla = Cli(second.bootstrap)
        assert ottla.ok("cluster", "info", "--output", "json").data["cluster_id"] == cluster
        assert sorted(ottla.ok("consume", "orders", "-e").lines) == ["a", "b", "c"]
        (described,) = ottla.ok("topic", "describe", "orders", "--output", "json").data
        assert described["settings"]["retention.ms"] == "123456789"
        (group,) = ottla.ok("group", "describe", "billing", "--output", "json").data
        assert sum(one["committed_offset"] for one in group["offsets"]) == 3


def test_without_its_metadata_a_backup_is_not_taken_for_a_new_cluster(tmp_path: Path) -> None:
    with OttlaProcess(tmp_path / "first") as broker:
        Cli(broker.bootstrap).ok("topic", "create", "orders")
        Cli(broker.bootstrap).ok("produce", "orders", stdin="a\n")
        broker.stop()
        for one in broker.data_dir.glob("__ottla_metadata.sqlite*"):
            one.unlink()
        sentence = Cli().fails(1, "start", "--listen", "127.0.0.1:0", "--data-dir", broker.data_dir)
        assert "ottla.adopt.logs=true" in sentence
        broker.properties["ottla.adopt.logs"] = "true"
        broker.start()
        assert Cli(broker.bootstrap).ok("consume", "orders", "-e").lines == ["a"]
