"""Power cuts without root: a disk that remembers what was synced, and brokers that start on what a cut may leave."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.messages import InitProducerIdRequest
from ottla.records.record import iterate_batches, read_records
from ottla.testing.checker import Checker, Stamp, stamped
from ottla.testing.simulation.durable_disk import DurableDisk
from tests.crash.test_kills import verdict
from tests.support.loop_broker import LoopBroker
from tests.support.raw_client import batch_of, fetch_request, produce_request

TOPIC = "ledger"
PARTITIONS = 2
PROPERTIES = {
    "log.flush.interval.messages": "1",
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "20",
    "log.index.interval.bytes": "2000",
}


async def produce_for_a_while(broker: LoopBroker, name: str, checker: Checker, count: int, size: int) -> None:
    told = await broker.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), 1)
    for number in range(count):
        for partition in range(PARTITIONS):
            stamp = Stamp(name, partition, number)
            checker.sent(stamp)
            batch = batch_of(
                stamped(*stamp, size), producer_id=told.producer_id, producer_epoch=0, base_sequence=number
            )
            answer = await broker.call(produce_request(TOPIC, batch, partition=partition), 9)
            line = answer.responses[0].partition_responses[0]
            assert line.error_code == 0
            checker.acknowledged(stamp, line.base_offset)


async def storm(
    folder: Path, seed: int, cuts: int, disk: DurableDisk, *, size: int = 20_000, each_with_news: bool = False
) -> list[Checker]:
    """Ledgers of the moments when the power was cut; the images are beside them. `each_with_news`: something has been
    acknowledged since the cut before."""
    rng = random.Random(seed)
    checker = Checker()
    ledgers: list[Checker] = []
    async with LoopBroker(disk.root, PROPERTIES, disk=disk) as broker:
        await broker.create_topic(TOPIC, PARTITIONS)
        load = asyncio.gather(*(produce_for_a_while(broker, name, checker, 60, size) for name in ("a", "b", "c")))
        while not load.done() and len(ledgers) < cuts:
            for _ in range(rng.randrange(1, 40)):
                await asyncio.sleep(0)
            await asyncio.sleep(rng.choice((0, 0, 0.001, 0.01)))
            known = ledgers[-1].acknowledged_count if ledgers else 0
            if each_with_news and checker.acknowledged_count == known:
                continue
            ledgers.append(checker.snapshot())
            disk.image(folder / f"cut-{len(ledgers) - 1}", rng)
        await load
    return ledgers


async def read_log(folder: Path, checker: Checker) -> None:
    async with LoopBroker(folder, PROPERTIES) as broker:
        for partition in range(PARTITIONS):
            offset = 0
            while True:
                answer = await broker.call(fetch_request([(TOPIC, partition, offset)], max_wait_ms=0), 12)
                line: Any = answer.responses[0].partitions[0]
                assert line.error_code == 0, line.error_code
                before = offset
                for position, header in iterate_batches(line.records or b""):
                    for record in read_records(line.records, position):
                        checker.log_record(partition, record.offset, record.value)
                    offset = header.last_offset + 1
                if offset == before:
                    break


async def judge(folder: Path, ledgers: list[Checker]) -> None:
    for number, ledger in enumerate(ledgers):
        await read_log(folder / f"cut-{number}", ledger)
        shutil.rmtree(folder / f"cut-{number}")


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_acknowledged_survives(tmp_path: Path, seed: int) -> None:
    ledgers = await storm(tmp_path, seed, 10, DurableDisk(tmp_path / "disk"))
    await judge(tmp_path, ledgers)
    assert ledgers[-1].acknowledged_count > 0
    for number, ledger in enumerate(ledgers):
        assert not ledger.violations(), f"seed {seed}, cut {number}: {verdict(ledger)}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(100, 120))
async def test_what_was_acknowledged_survives_many_cuts(tmp_path: Path, seed: int) -> None:
    ledgers = await storm(tmp_path, seed, 40, DurableDisk(tmp_path / "disk"))
    await judge(tmp_path, ledgers)
    for number, ledger in enumerate(ledgers):
        assert not ledger.violations(), f"seed {seed}, cut {number}: {verdict(ledger)}"


async def test_a_broker_that_forgets_to_sync_is_found_out(tmp_path: Path) -> None:
    ledgers = await storm(tmp_path, 1, 8, DurableDisk(tmp_path / "disk", forgets_suffix=".log"), each_with_news=True)
    await judge(tmp_path, ledgers)
    assert "lost" in {one.kind for ledger in ledgers for one in ledger.violations()}
