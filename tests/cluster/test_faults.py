"""Three brokers, a load that keeps a ledger, and faults: nothing acknowledged is lost, doubled or out of order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import faults
from tests.cluster.ordeal import Fault, Ordeal
from tests.support.kafka_jars import why_no_kafka
from tests.support.network import Network, require_network
from tests.support.small_disk import small_tmpfs
from tests.support.trio import KafkaTrio, OttlaTrio, Trio, require, trios

# Sessions of three seconds, and a follower that is gone leaves the ISR after five.
QUICK: dict[type[Trio], dict[str, str]] = {
    OttlaTrio: {"zookeeper.session.timeout.ms": "3000", "replica.lag.time.max.ms": "5000"},
    KafkaTrio: {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "replica.lag.time.max.ms": "5000",
    },
}
SMALL = {"log.segment.bytes": "1048576", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
Kind = type[OttlaTrio] | type[KafkaTrio]
EVERYBODY = ("confluent-kafka", "aiokafka")
java = why_no_kafka() is None


@contextmanager
def running(kind: Kind, folder: Path, *, network: bool = False, **more: object) -> Iterator[Trio]:
    require(kind)
    properties = QUICK[kind] | SMALL
    if not network:
        with kind(folder, properties, **more) as trio:  # type: ignore[arg-type]
            yield trio
        return
    require_network()
    with Network(3) as made, kind(folder, properties, made, **more) as trio:  # type: ignore[arg-type]
        yield trio


# --- short


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", [faults.kill_leader, faults.pause_leader, faults.rolling_restart])
def test_a_short_ordeal(tmp_path: Path, fault: Fault) -> None:
    with running(OttlaTrio, tmp_path / "trio") as trio, Ordeal(trio, seed=1) as ordeal:
        ordeal.suffer(fault)
        ordeal.verdict()


# --- long


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", trios())
@pytest.mark.parametrize("seed", range(2))
def test_crashes_and_pauses(tmp_path: Path, kind: Kind, seed: int) -> None:
    """20 rounds each on Ottla, 5 on Apache Kafka, which is what this harness was tried on first."""
    of_zookeeper = faults.OF_ZOOKEEPER if kind is OttlaTrio else ()
    rounds = 20 if kind is OttlaTrio else 5
    _suffer(kind, tmp_path, (*faults.ANYWHERE, *of_zookeeper), rounds, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", trios())
def test_a_broken_network(tmp_path: Path, kind: Kind) -> None:
    of_store = (faults.cut_from_the_store,) if kind is OttlaTrio else ()
    several = (*faults.OF_NETWORKS, *of_store)
    _suffer(kind, tmp_path, several, 2 * len(several) if kind is OttlaTrio else len(several), seed=3, network=True)


def _suffer(
    kind: Kind, folder: Path, several: Sequence[Fault], rounds: int, seed: int, *, network: bool = False
) -> None:
    """Each fault once in some order, then again."""
    with (
        running(kind, folder / "trio", network=network) as trio,
        Ordeal(trio, seed, java=java, transactional=EVERYBODY) as ordeal,
    ):
        waiting: list[Fault] = []
        for _ in range(rounds):
            if not waiting:
                waiting = ordeal.rng.sample(several, len(several))
            ordeal.suffer(waiting.pop())
        ordeal.verdict()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", trios())
def test_a_full_disk_of_one_broker(tmp_path: Path, kind: Kind) -> None:
    require(kind)
    with (
        small_tmpfs(tmp_path / "small", "64m") as small,
        running(kind, tmp_path / "trio", data_dirs={3: small / "data"}) as trio,
        Ordeal(trio, seed=5) as ordeal,
    ):
        ordeal.suffer(faults.fill_disk)
        ordeal.verdict()
