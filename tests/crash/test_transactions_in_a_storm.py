"""Transactions of several clients while clients and the broker are killed and answers are lost: all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.bank import Bank, bank_properties, shown
from tests.crash.broken_broker import BrokenBroker
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("crash")

EVERYBODY = ["confluent-kafka", "aiokafka", "kafka-python"]


def run(folder: Path, workers: list[str], transactions: int, seed: int, timeout_s: float) -> Bank:
    with Proxy(seed) as proxy, OttlaProcess(folder, bank_properties(proxy)) as broker:
        proxy.target = broker.port
        bank = Bank(broker, proxy, workers, seed)
        try:
            bank.storm(transactions, timeout_s)
            bank.settle()
        finally:
            bank.close()
    return bank


def test_a_short_storm(tmp_path: Path) -> None:
    bank = run(tmp_path, EVERYBODY, 300, 1, 120)
    assert not bank.checker.violations(), shown(bank.checker)
    assert bank.checker.committed_count > 50


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ("let-readers-one-batch-too-far", {"aborted", "dirty"}),
        ("keep-quiet-about-aborted-transactions", {"aborted"}),
        ("abort-in-the-last-partition", {"lost"}),
        ("commit-offsets-at-once", {"offset"}),
    ],
)
def test_a_broken_broker_is_found_out(tmp_path: Path, mistake: str, found: set[str]) -> None:
    with Proxy(1) as proxy:
        environment = {"PYTHONPATH": f"{REPO_ROOT / 'src'}:{REPO_ROOT}"}
        broken = BrokenBroker(tmp_path, bank_properties(proxy), environment=environment)
        broken.kind = mistake
        with broken as broker:
            proxy.target = broker.port
            bank = Bank(broker, proxy, ["confluent-kafka", "aiokafka"], 1)
            try:
                bank.storm(60, 60, kill_broker=False)
                bank.settle()
            finally:
                bank.close()
    assert found & {one.kind for one in bank.checker.violations()}, shown(bank.checker)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_long_storms(tmp_path: Path, seed: int) -> None:
    """More than 10,000 transactions in all."""
    bank = run(tmp_path, EVERYBODY * 2, 3_000, 100 + seed, 1_500)
    assert not bank.checker.violations(), shown(bank.checker)
    assert bank.checker.committed_count > 1_000
    assert bank.kills > 5
