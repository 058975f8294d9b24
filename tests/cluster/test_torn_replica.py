"""A broker that lacks records which it had synced: it leads nothing of them while others have them, and copies them."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.common.ids import TopicPartition
from ottla.storage.log_dirs.checkpoints import RECOVERY_POINTS, read_offsets
from tests.cli.command import Cli
from tests.cluster.replica_files import batches, differences
from tests.cluster.test_replaced_disk import _await, _partition
from tests.support.brokers import OttlaProcess
from tests.support.zookeeper import Zookeeper

# Two fit into a segment, which is no smaller than a megabyte.
VALUES = [f"{number:04d}" * 100_000 for number in range(20)]


@pytest.mark.timeout(300)
def test_a_broker_that_lost_synced_records_copies_them_again_and_does_not_lead_without_them(
    tmp_path: Path, own_zookeeper: Zookeeper
) -> None:
    common = {"zookeeper.connect": f"{own_zookeeper.address}/torn", "log.flush.interval.messages": "1"}
    common |= {"log.flush.offset.checkpoint.interval.ms": "100"}
    first, second = (OttlaProcess(tmp_path / str(node), {"node.id": str(node), **common}) for node in (1, 2))
    with first, second:
        cli = Cli(f"{first.bootstrap},{second.bootstrap}")
        admin = AdminClient({"bootstrap.servers": cli.bootstrap})
        small = {"segment.bytes": "1048576"}
        for topic, replicas in (("copied", [1, 2]), ("alone", [1])):
            new = NewTopic(topic, 1, replica_assignment=[replicas], config=small)
            admin.create_topics([new])[topic].result(60)
            _fill(cli.bootstrap, topic)
        copies = {number: node.data_dir / "copied-0" for number, node in ((1, first), (2, second))}
        for topic in ("copied", "alone"):
            _await(lambda topic=topic: _recovery_point(first, topic) == len(VALUES), "it is known to be synced")  # type: ignore[misc]
        first.kill()
        for topic in ("copied", "alone"):
            removed = sorted((first.data_dir / f"{topic}-0").glob("*.log"))[3]
            removed.unlink()
            removed.with_suffix(".index").unlink()
        assert len(batches(copies[1])) < len(VALUES)

        first.start()
        _await(lambda: _partition(cli, "copied")["isr"] == [1, 2], "it copies what it lacks")
        assert "replicas lack records that were synced" in first.log_tail(20_000)
        assert len(batches(copies[1])) == len(VALUES)
        assert differences(copies, below=len(VALUES)) == []
        assert 0 < len(cli.ok("consume", "alone", "-e").lines) < len(VALUES), "the only copy goes on with what is left"

        # What it has copied counts as any other does.
        second.stop()
        assert _partition(cli, "copied")["leader"] == 1
        assert cli.ok("consume", "copied", "-e").lines == VALUES

        # It is the last one in sync now: nobody has what it loses, and a person has to say that it may lead.
        _await(lambda: _recovery_point(first, "copied") == len(VALUES), "it is known to be synced")
        first.kill()
        sorted((first.data_dir / "copied-0").glob("*.log"))[3].unlink()
        first.start()
        assert _partition(cli, "copied")["leader"] in (None, -1)
        second.start()
        assert _partition(cli, "copied")["leader"] in (None, -1), "whoever was out of sync may lack what is committed"


def _fill(bootstrap: str, topic: str) -> None:
    """One batch for each record."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in VALUES:
        producer.produce(topic, value)
        assert producer.flush(60) == 0


def _recovery_point(broker: OttlaProcess, topic: str) -> int:
    tp = TopicPartition(topic, 0)
    return (read_offsets(broker.data_dir / RECOVERY_POINTS) or {}).get(tp, 0)
