"""Transactions of several clients while clients and the broker are killed and answers are lost: all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.append_lists import AppendLists
from tests.crash.bank import Bank
from tests.crash.broken_broker import BrokenBroker
from tests.crash.storm import shown, storm_properties
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("crash")

EVERYBODY = ["confluent-kafka", "aiokafka", "kafka-python"]
KINDS: list[type[Bank] | type[AppendLists]] = [Bank, AppendLists]
Kind = type[Bank] | type[AppendLists]


def run(
    folder: Path, kind: Kind, workers: list[str], transactions: int, seed: int, timeout_s: float, kills: int
) -> Bank | AppendLists:
    with Proxy(seed) as proxy, OttlaProcess(folder, storm_properties(proxy)) as broker:
        proxy.target = broker.port
        storm = kind(broker, proxy, workers, seed)
        try:
            storm.blow(transactions, timeout_s, broker_kills=kills)
            storm.settle()
        finally:
            storm.close()
        assert proxy.lost > 0
    assert not storm.checker.violations(), shown(storm.checker)
    return storm


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_storm(tmp_path: Path, kind: Kind) -> None:
    storm = run(tmp_path, kind, EVERYBODY, 300, 1, 120, kills=2)
    assert storm.checker.committed_count > 50


@pytest.mark.parametrize(
    ("kind", "mistake", "found"),
    [
        (Bank, "let-readers-one-batch-too-far", {"aborted", "dirty"}),
        (Bank, "keep-quiet-about-aborted-transactions", {"aborted"}),
        (Bank, "abort-in-the-last-partition", {"lost"}),
        (Bank, "commit-offsets-at-once", {"offset"}),
        (AppendLists, "let-readers-one-batch-too-far", {"incompatible", "dirty"}),
        (AppendLists, "keep-quiet-about-aborted-transactions", {"aborted"}),
        (AppendLists, "abort-in-the-last-partition", {"lost"}),
    ],
)
def test_a_broken_broker_is_found_out(tmp_path: Path, kind: Kind, mistake: str, found: set[str]) -> None:
    """It shows when a client is killed at the wrong moment: if not in the first storm, then in another."""
    for seed in range(1, 6):
        storm = _storm_on_a_broken_broker(tmp_path / str(seed), kind, mistake, seed)
        if found & {one.kind for one in storm.checker.violations()}:
            return
    pytest.fail(shown(storm.checker))


def _storm_on_a_broken_broker(folder: Path, kind: Kind, mistake: str, seed: int) -> Bank | AppendLists:
    folder.mkdir()
    with Proxy(seed) as proxy:
        environment = {"PYTHONPATH": f"{REPO_ROOT / 'src'}:{REPO_ROOT}"}
        broken = BrokenBroker(folder, storm_properties(proxy), environment=environment)
        broken.kind = mistake
        with broken as broker:
            proxy.target = broker.port
            storm = kind(broker, proxy, ["confluent-kafka", "aiokafka"], seed)
            try:
                storm.blow(60, 60)
                storm.settle()
            finally:
                storm.close()
    return storm


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_long_storms(tmp_path: Path, kind: Kind, seed: int) -> None:
    """18,000 transactions in all, through 120 kills of the broker and many more of its clients."""
    storm = run(tmp_path, kind, EVERYBODY * 2, 3_000, 100 + seed, 1_500, kills=20)
    assert storm.checker.committed_count > 1_000
    assert storm.client_kills > 20
