"""A broker whose disk was replaced copies what others have, and leads nothing of which it has lost the records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.command import Cli
from tests.support.brokers import OttlaProcess
from tests.support.zookeeper import Zookeeper


@pytest.mark.timeout(300)
def test_a_broker_with_a_new_disk_follows_and_does_not_lead(tmp_path: Path, own_zookeeper: Zookeeper) -> None:
    common = {"zookeeper.connect": f"{own_zookeeper.address}/replaced"}
    first, second = (OttlaProcess(tmp_path / str(node), {"node.id": str(node), **common}) for node in (1, 2))
    with first, second:
        cli = Cli(f"{first.bootstrap},{second.bootstrap}")
        admin = AdminClient({"bootstrap.servers": cli.bootstrap})
        for topic, replicas in (("copied", [1, 2]), ("alone", [1])):
            admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic].result(60)
            cli.ok("produce", topic, "-q", "a", "b", "c")
        first.stop()
        kept = first.data_dir.rename(tmp_path / "kept")
        first.start()

        _await(lambda: _partition(cli, "copied")["isr"] == [1, 2], "it copies what the other one has")
        assert sorted(cli.ok("consume", "copied", "-e").lines) == ["a", "b", "c"]
        assert "copied" not in cli.ok("topic", "describe", "--unavailable").out
        assert "alone" in cli.ok("topic", "describe", "--unavailable").out, "nobody has its records"
        assert _partition(cli, "alone")["leader"] in (None, -1)
        assert "the log directory of replicas is gone" in first.log_tail(10_000)
        assert "partitions have no leader" in first.log_tail(10_000) + second.log_tail(10_000)

        # With the old disk its records are back, and what was written meanwhile comes from the other broker.
        cli.ok("produce", "copied", "-q", "d")
        first.stop()
        shutil.rmtree(first.data_dir)
        kept.rename(first.data_dir)
        first.start()
        _await(lambda: _partition(cli, "alone")["leader"] == 1, "it leads again")
        assert cli.ok("consume", "alone", "-e").lines == ["a", "b", "c"]
        _await(lambda: _partition(cli, "copied")["isr"] == [1, 2], "it is in sync again")
        assert sorted(cli.ok("consume", "copied", "-e").lines) == ["a", "b", "c", "d"]

        # If the disk is lost for good, somebody has to say so.
        first.stop()
        shutil.rmtree(first.data_dir)
        first.start()
        assert _partition(cli, "alone")["leader"] in (None, -1)
        cli.ok("partition", "elect", "alone:0", "--unclean", "--yes")
        _await(lambda: _partition(cli, "alone")["leader"] == 1, "it leads what is left")
        assert cli.ok("consume", "alone", "-e").lines == []


def _partition(cli: Cli, topic: str) -> dict[str, object]:
    (described,) = cli.ok("topic", "describe", topic, "--output", "json").data
    found: dict[str, object] = described["partitions"][0]
    found["isr"] = sorted(found["isr"])  # type: ignore[call-overload]
    return found


def _await(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
