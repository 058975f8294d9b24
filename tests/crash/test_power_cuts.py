"""Power cuts: only what was synced survives. With flush.messages=1 an acknowledgement says that it was.

kill -9 leaves the page cache alone, so it cannot show a missing fsync. Here a broker works on a file system of its own,
is stopped in its tracks, and the device is copied as it is at that moment; a second broker starts on the copy.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from ottla.testing.checker import Checker
from tests.crash.broken_broker import BrokenBroker
from tests.crash.load import ConfluentProducer, KafkaPythonProducer, RetryingProducer, read_log, wait_until
from tests.crash.test_kills import create_topic, verdict
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.loop_device import make_image, mounted, pull_the_plug, require_loop_device

pytestmark = pytest.mark.xdist_group("crash")

PROPERTIES = {
    "log.flush.interval.messages": "1",
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "offsets.topic.num.partitions": "1",
}


class OnDevice(OttlaProcess):
    """Keeps its data on the mounted device, and its log file elsewhere."""

    def __init__(self, folder: Path, device: Path) -> None:
        super().__init__(folder, PROPERTIES)
        self.data_dir = device / "data"


class ForgetsToSync(BrokenBroker):
    """Says that it has synced, and has not."""

    kind = "forget-to-sync"

    def __init__(self, folder: Path, device: Path) -> None:
        super().__init__(folder, PROPERTIES, environment={"PYTHONPATH": f"{REPO_ROOT / 'src'}:{REPO_ROOT}"})
        self.data_dir = device / "data"


def cut_the_power(broker: OttlaProcess, image: Path, copy: Path, checker: Checker) -> Checker:
    """The ledger at the moment of the cut. What is acknowledged while we copy was synced before we began."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        pull_the_plug(image, copy)
        time.sleep(0.05)  # answers that were on their way arrive
        return checker.snapshot()
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def found_after_the_cut(copy: Path, folder: Path, ledger: Checker) -> Checker:
    with mounted(copy, folder / "after"), OnDevice(folder / "second", folder / "after") as second:
        read_log(second.bootstrap, ledger)
    return ledger


def storm(
    folder: Path, broker_class: type[OnDevice] | type[ForgetsToSync], cuts: int, *, real_clients: bool
) -> list[Checker]:
    """Ledgers with what a broker finds after each cut."""
    rng = random.Random(7)
    checker = Checker()
    image = make_image(folder / "disk.img")
    ledgers = []
    with mounted(image, folder / "disk") as device, broker_class(folder / "first", device) as broker:
        create_topic(broker.bootstrap)
        kinds = [ConfluentProducer, KafkaPythonProducer] if real_clients else [RetryingProducer]
        producers = [kind(kind.__name__, broker.bootstrap, checker) for kind in kinds]
        for producer in producers:
            producer.start()
        try:
            wait_until(lambda: checker.acknowledged_count > 30)
            for number in range(cuts):
                time.sleep(rng.uniform(0.1, 0.7))
                ledgers.append(cut_the_power(broker, image, folder / f"cut-{number}.img", checker))
            for producer in producers:
                producer.finish()
        finally:
            for producer in producers:
                producer.stopping.set()
    for number, ledger in enumerate(ledgers):
        found_after_the_cut(folder / f"cut-{number}.img", folder, ledger)
        (folder / f"cut-{number}.img").unlink()
    return ledgers


def test_what_was_acknowledged_survives_power_cuts(tmp_path: Path) -> None:
    require_loop_device(tmp_path)
    for ledger in storm(tmp_path, OnDevice, cuts=3, real_clients=True):
        assert not ledger.violations(), verdict(ledger)


@pytest.mark.slow
def test_what_was_acknowledged_survives_many_power_cuts(tmp_path: Path) -> None:
    require_loop_device(tmp_path)
    for ledger in storm(tmp_path, OnDevice, cuts=25, real_clients=True):
        assert not ledger.violations(), verdict(ledger)


def test_a_broker_that_forgets_to_sync_is_found_out(tmp_path: Path) -> None:
    require_loop_device(tmp_path)
    (ledger,) = storm(tmp_path, ForgetsToSync, cuts=1, real_clients=False)
    assert "lost" in {one.kind for one in ledger.violations()}
