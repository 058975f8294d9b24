"""Every way a batch can get into a partition, times every way a request can bring it.

A request for a few partitions, for many, or of a layout that was here before takes another path through the broker, and
so does a batch that is stamped, recompressed, opened for its keys or part of a transaction. Whatever the combination,
what was sent is stored, and what is answered is true.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.protocol import messages as m
from ottla.records import batch as v2
from ottla.records import validate
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch, iterate_batches, read_records
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import fetch_request
from tests.support.transactional_client import Identity, add_codes, add_request, init_request

NOW_MS = 1_700_000_000_000
STAMPED_MS = NOW_MS - 5000
# Each holds a descriptor, of which there may be 1,024.
PARTITIONS_AT_ONCE = 700
CODEC_NAMES = {"producer": None, "uncompressed": Codec.NONE, "gzip": Codec.GZIP, "lz4": Codec.LZ4}
# By name with few fields, by name with tags, partitions added by the request itself, topics by id.
VERSIONS = (3, 9, 12, 13)


class Case(NamedTuple):
    """One combination."""

    stamped_by_broker: bool
    topic_codec: str
    compacted: bool
    sent_codec: Codec
    writer: str
    version: int

    @property
    def name(self) -> str:
        parts = (self.topic_codec, self.sent_codec.name, self.writer, f"v{self.version}")
        flags = "".join("ny"[flag] for flag in (self.stamped_by_broker, self.compacted))
        return "-".join((flags, *parts)).lower()

    @property
    def changes_batches(self) -> bool:
        wanted = CODEC_NAMES[self.topic_codec]
        return self.stamped_by_broker or (wanted is not None and wanted != self.sent_codec)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "message.timestamp.type": "LogAppendTime" if self.stamped_by_broker else "CreateTime",
            "compression.type": self.topic_codec,
            "cleanup.policy": "compact" if self.compacted else "delete",
        }


WRITERS = ("plain", "idempotent", "transactional")
EVERY = [
    Case(*values)
    for values in itertools.product(
        (False, True), CODEC_NAMES, (False, True), (Codec.NONE, Codec.GZIP, Codec.ZSTD), WRITERS, VERSIONS
    )
    if not (values[3] is Codec.ZSTD and values[5] < 7)  # older producers do not know it
]


class Checksums:
    """How many were computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        compute = v2.crc32c

        def counted(data: Any) -> int:
            self.count += 1
            return int(compute(data))

        monkeypatch.setattr(v2, "crc32c", counted)
        monkeypatch.setattr(validate, "crc32c", counted)


class Writer:
    """Produces to all partitions of a topic, one request at a time, and keeps what must be there."""

    def __init__(self, broker: LoopBroker, case: Case, partitions: int, checksums: Checksums) -> None:
        self._broker = broker
        self._checksums = checksums
        self._case = case
        self._partitions = range(partitions)
        self._identity = Identity(-1, -1)
        self._sequence = 0
        self.sent: list[bytes] = []

    async def begin(self) -> None:
        case = self._case
        await self._broker.create_topic(case.name, len(self._partitions), case.settings)
        if case.writer == "plain":
            return
        name = case.name if case.writer == "transactional" else None
        answer = await self._broker.call(init_request(name), 4)
        assert answer.error_code == 0
        self._identity = Identity(answer.producer_id, answer.producer_epoch)
        if name is not None and case.version < 12:
            added = await self._broker.call(add_request(name, self._identity, {name: self._partitions}), 3)
            assert not any(add_codes(added))

    async def produce(self, count: int) -> None:
        """`count` records to each partition."""
        case, first = self._case, len(self.sent)
        self.sent += [b"record %d " % number * 20 for number in range(first, first + count)]
        topic = m.ProduceRequest.TopicProduceData(
            name=case.name,
            topic_id=self._topic_id(),
            partition_data=[
                m.ProduceRequest.PartitionProduceData(index=one, records=self._batch(self.sent[first:]))
                for one in self._partitions
            ],
        )
        self._sequence += count
        name = case.name if case.writer == "transactional" else None
        request = m.ProduceRequest(transactional_id=name, acks=-1, timeout_ms=30_000, topic_data=[topic])
        self._checksums.count = 0
        answer = await self._broker.call(request, case.version)
        if first and not case.changes_batches:  # the first request may begin a transaction, which is a batch of its own
            assert self._checksums.count == len(self._partitions), "each batch is checked once"
        lines = answer.responses[0].partition_responses
        time_ms = NOW_MS if case.stamped_by_broker else -1
        assert [(one.index, one.error_code, one.base_offset, one.log_append_time_ms) for one in lines] == [
            (one, 0, first, time_ms) for one in self._partitions
        ]

    def _topic_id(self) -> bytes:
        partition = self._broker.broker.partitions.get(self._case.name, 0)
        assert partition is not None
        return partition.topic_id

    def _batch(self, values: list[bytes]) -> bytearray:
        records = [Record(number, STAMPED_MS + number, b"key %d" % number, one) for number, one in enumerate(values)]
        producer_id, epoch = self._identity
        return build_batch(
            records,
            codec=self._case.sent_codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequence if producer_id >= 0 else -1,
            attributes=v2.TRANSACTIONAL_BIT if self._case.writer == "transactional" else 0,
        )

    async def check(self) -> None:
        """What is stored in each partition is what was sent, in batches that are whole and as the topic wants them."""
        for partition in self._partitions:
            request = fetch_request([(self._case.name, partition, 0)], max_wait_ms=0)
            ((line,),) = [one.partitions for one in (await self._broker.call(request, 12)).responses]
            self._check_batches(line.records)

    def _check_batches(self, records: Any) -> None:
        case, values = self._case, []
        wanted = CODEC_NAMES[case.topic_codec]
        for position, header in iterate_batches(records):
            assert v2.compute_crc(records, position, header.size) == header.crc
            assert header.codec == (case.sent_codec if wanted is None else wanted)
            assert header.is_transactional == (case.writer == "transactional")
            assert (header.producer_id, header.producer_epoch) == self._identity
            assert header.uses_log_append_time == case.stamped_by_broker
            for number, one in enumerate(read_records(records, position)):
                assert one.offset == len(values)
                assert one.timestamp == (NOW_MS if case.stamped_by_broker else STAMPED_MS + number)
                values.append(one.value)
        assert values == self.sent


def some_of(number: int) -> list[Case]:
    """Few enough for requests of many partitions: every pair of timestamp type, writer and version, and more."""
    chosen = [one for one in EVERY if not one.compacted and one.topic_codec == "producer" and one.sent_codec == 0]
    return chosen + [one for one in EVERY if one not in chosen][:: max(1, len(EVERY) // number)]


@pytest.mark.parametrize(
    ("partitions", "cases"),
    [
        (1, some_of(60)),  # the second request is of a known layout
        (2, some_of(60)),
        (129, [one for one in some_of(6) if one.version == 12]),  # more than are written in one go
        pytest.param(1, EVERY, marks=pytest.mark.slow),
        pytest.param(2, EVERY, marks=pytest.mark.slow),
        pytest.param(128, some_of(10), marks=pytest.mark.slow),
        pytest.param(129, some_of(50), marks=pytest.mark.slow),
        pytest.param(700, some_of(3), marks=pytest.mark.slow),
    ],
    ids=lambda value: str(value if isinstance(value, int) else len(value)),
)
async def test_what_is_sent_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, cases: list[Case]
) -> None:
    checksums = Checksums(monkeypatch)
    at_once = max(1, PARTITIONS_AT_ONCE // partitions)
    for start in range(0, len(cases), at_once):
        async with LoopBroker(tmp_path / str(start), clock=ManualClock(NOW_MS)) as broker:
            await broker.loaded()
            for case in cases[start : start + at_once]:
                writer = Writer(broker, case, partitions, checksums)
                await writer.begin()
                for count in (1, 3, 2):
                    await writer.produce(count)
                await writer.check()
        shutil.rmtree(tmp_path / str(start))
