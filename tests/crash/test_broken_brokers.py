"""The crash tests against brokers that are broken on purpose: each must be found out, by the right kind of fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing.checker import Checker
from tests.crash.broken_broker import BrokenBroker
from tests.crash.load import OneShotProducer, Producing, RetryingProducer, read_log, wait_until
from tests.crash.test_kills import PROPERTIES, create_topic, verdict
from tests.crash.test_lost_answers import lose_and_kill
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("crash")


def broken(folder: Path, kind: str, **properties: str) -> BrokenBroker:
    settings = PROPERTIES | {name.replace("_", "."): value for name, value in properties.items()}
    broker = BrokenBroker(folder, settings, environment={"PYTHONPATH": f"{REPO_ROOT / 'src'}:{REPO_ROOT}"})
    broker.kind = kind
    return broker


@pytest.mark.parametrize("kind", ["acknowledge-before-writing", "drop-the-last-batch-on-restart"])
def test_losses_are_found(tmp_path: Path, kind: str) -> None:
    checker = Checker()
    with broken(tmp_path / "broker", kind) as broker:
        create_topic(broker.bootstrap)
        with OneShotProducer("raw", broker.bootstrap, checker) as producer:
            wait_until(lambda: checker.acknowledged_count > 100)
            broker.kill()
            producer.finish()
        broker.start()
        read_log(broker.bootstrap, checker)
    assert "lost" in {one.kind for one in checker.violations()}


def test_a_sound_broker_passes_the_same_test(tmp_path: Path) -> None:
    checker = Checker()
    with OttlaProcess(tmp_path / "broker", PROPERTIES) as broker:
        create_topic(broker.bootstrap)
        with OneShotProducer("raw", broker.bootstrap, checker) as producer:
            wait_until(lambda: checker.acknowledged_count > 100)
            broker.kill()
            producer.finish()
        broker.start()
        read_log(broker.bootstrap, checker)
    assert not checker.violations(), verdict(checker)


@pytest.mark.parametrize("kind", ["forget-producers-on-restart", "take-duplicates-for-new"])
def test_duplicates_are_found(tmp_path: Path, kind: str) -> None:
    checker = Checker()
    with Proxy(seed=6) as proxy:
        advertised = f"PLAINTEXT://{proxy.address}"
        with broken(tmp_path / "broker", kind, advertised_listeners=advertised) as broker:
            proxy.target = broker.port
            create_topic(broker.bootstrap)
            producers: list[Producing] = [RetryingProducer("raw", proxy.address, checker)]
            lose_and_kill(broker, proxy, producers, checker, kills=1)
    assert "duplicated" in {one.kind for one in checker.violations()}


def test_a_sound_broker_has_no_duplicates(tmp_path: Path) -> None:
    checker = Checker()
    with Proxy(seed=6) as proxy:
        properties = PROPERTIES | {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        with OttlaProcess(tmp_path / "broker", properties) as broker:
            proxy.target = broker.port
            create_topic(broker.bootstrap)
            lose_and_kill(broker, proxy, [RetryingProducer("raw", proxy.address, checker)], checker, kills=2)
    assert not checker.violations(), verdict(checker)
