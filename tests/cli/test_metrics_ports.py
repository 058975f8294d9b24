"""Brokers of one configuration tell their metrics at consecutive ports."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.cluster.plan import METRICS, Plan
from ottla.cli.several_brokers import _own_properties
from ottla.common.config import BrokerConfig


def test_brokers_of_a_local_cluster() -> None:
    plan = Plan(3, 9092, {METRICS: "127.0.0.1:9404"})
    assert [plan.broker_properties(one, Path("d"))[METRICS] for one in plan.ids] == [
        "127.0.0.1:9404",
        "127.0.0.1:9405",
        "127.0.0.1:9406",
    ]
    assert METRICS not in Plan(3, 9092).broker_properties(1, Path("d"))


def test_brokers_of_one_file() -> None:
    config = BrokerConfig.load({METRICS: "127.0.0.1:9404"})
    assert [_own_properties(number, config)[METRICS] for number in range(2)] == ["127.0.0.1:9404", "127.0.0.1:9405"]
