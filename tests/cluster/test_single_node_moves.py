"""A single node becomes a cluster with everything it has, as docs/cluster.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.support.brokers import OttlaProcess
from tests.support.zookeeper import Zookeeper

QUICK = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}


@pytest.mark.timeout(900)
def test_a_single_node_becomes_one_of_three(tmp_path: Path, own_zookeeper: Zookeeper) -> None:
    first = OttlaProcess(tmp_path / "one", {"node.id": "1", **QUICK})
    with first:
        cli = Cli(first.bootstrap)
        cli.ok("topic", "create", "orders", "-p", "2", "-c", "retention.ms=-1")
        cli.ok("produce", "orders", "-q", stdin="".join(f"{number}\n" for number in range(100)))
        cli.ok("consume", "orders", "-g", "billing", "-e", "-n", "60")
        lag = cli.ok("group", "lag", "billing", "--output", "json").data
        topic_id = cli.ok("topic", "describe", "orders", "--output", "json").data[0]["id"]
        first.stop()

        connect = {"zookeeper.connect": f"{own_zookeeper.address}/moved"}
        first.properties |= connect
        first.start()
        others = [OttlaProcess(tmp_path / str(node), {"node.id": str(node), **QUICK, **connect}) for node in (2, 3)]
        with others[0], others[1]:
            cli = Cli(",".join(node.bootstrap for node in (first, *others)))
            for topic in ("orders", "__consumer_offsets"):
                cli.ok("partition", "move", topic, "--to", "1,2,3", "--wait", "240", timeout_s=280)
            (described,) = cli.ok("topic", "describe", "orders", "--output", "json").data
            assert described["id"] == topic_id
            assert described["settings"] == {"retention.ms": "-1"}
            assert [sorted(one["isr"]) for one in described["partitions"]] == [[1, 2, 3], [1, 2, 3]]
            first.kill()  # what it alone had is on the others
            assert sorted(map(int, cli.ok("consume", "orders", "-e").lines)) == list(range(100))
            assert cli.ok("group", "lag", "billing", "--output", "json").data == lag
