"""How far moves are: which broker did not answer is said, and is not taken for one that has nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli.partition.status import _lines, _row
from ottla.client.admin.reassignments import Reassignment, ReplicaSizes, replica_bytes
from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from tests.support.scripted_broker import NODE, ScriptedBroker

TP = TopicPartition("orders", 0)
AWAY = 7


def _sizes(request: Any, version: int) -> m.Message:
    row = m.DescribeLogDirsResponse.DescribeLogDirsPartition(partition_index=0, partition_size=800, offset_lag=0)
    topic = m.DescribeLogDirsResponse.DescribeLogDirsTopic(name="orders", partitions=[row])
    folder = m.DescribeLogDirsResponse.DescribeLogDirsResult(log_dir="/data", topics=[topic])
    return m.DescribeLogDirsResponse(results=[folder])


def _refused(request: Any, version: int) -> m.Message:
    return m.DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[])


def test_a_broker_that_does_not_answer_is_named() -> None:
    with ScriptedBroker({"orders": 1}, DescribeLogDirs=_sizes) as broker, ClusterClient(broker.bootstrap) as client:
        told = replica_bytes(client, [TP], [NODE, AWAY])
    assert told.sizes == {(TP, NODE): 800}
    assert list(told.silent) == [AWAY]
    assert f"broker {AWAY} is not part of the cluster" in told.silent[AWAY]


def test_a_broker_that_refuses_to_tell_is_named() -> None:
    with ScriptedBroker({"orders": 1}, DescribeLogDirs=_refused) as broker, ClusterClient(broker.bootstrap) as client:
        told = replica_bytes(client, [TP], [NODE])
    assert (told.sizes, list(told.silent)) == ({}, [NODE])


@pytest.mark.parametrize(
    ("silent", "size", "new"),
    [
        ([], "800 B", "broker 3: not there"),
        ([3], "800 B", "broker 3: does not answer"),
        ([1], "300 B", "broker 3: not there"),
        ([1, 2, 3], "?", "broker 3: does not answer"),
    ],
)
def test_what_nobody_told_is_not_shown_as_nothing(silent: list[int], size: str, new: str) -> None:
    sizes = {(TP, 1): 800, (TP, 2): 300}
    told = ReplicaSizes(
        {replica: have for replica, have in sizes.items() if replica[1] not in silent}, dict.fromkeys(silent, "away")
    )
    row = _row(Reassignment(TP, (1, 2, 3), adding=(3,), removing=(2,)), told)
    assert row["silent"] == silent
    (_, line) = _lines([row])
    assert size in line and new in line
