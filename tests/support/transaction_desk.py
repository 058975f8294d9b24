"""A broker on the test's own loop with a client of transactions beside it, and a disk that is full where it is told."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.storage.disk import Disk
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import fetch_request
from tests.support.transactional_client import (
    Identity,
    all_codes,
    committed_records,
    end_request,
    init_request,
    produce_request,
    transactional_batch,
)


class Desk:
    """A broker with a topic, and one transactional id."""

    def __init__(self, broker: LoopBroker) -> None:
        self.broker = broker
        assert isinstance(broker.broker.clock, ManualClock)
        self.clock = broker.broker.clock
        self.transactions = broker.broker.transactions

    async def init(self, name: str = "t", timeout_ms: int = 60_000) -> Identity:
        answer = await self.ask(init_request(name, timeout_ms), 5)
        return Identity(answer.producer_id, answer.producer_epoch)

    async def ask(self, request: Any, version: int) -> Any:
        answer = await self.broker.call(request, version)
        assert not any(all_codes(answer)), answer
        return answer

    async def code(self, request: Any, version: int) -> ErrorCode:
        answer = await self.broker.call(request, version)
        return ErrorCode(max(all_codes(answer)))

    async def produce(self, who: Identity, value: bytes = b"x", *, name: str = "t", **more: Any) -> Any:
        return await self.ask(self.produce_request(who, value, name, **more), 12)

    def produce_request(self, who: Identity, value: bytes = b"x", name: str = "t", **more: Any) -> Any:
        topic, partition = more.pop("topic", "data"), more.pop("partition", 0)
        return produce_request(name, transactional_batch(who, value, **more), topic, partition)

    async def end(self, who: Identity, commit: bool, name: str = "t") -> Identity:
        answer = await self.ask(end_request(name, who, commit), 5)
        return Identity(answer.producer_id, answer.producer_epoch)

    async def state(self, name: str = "t") -> str:
        answer = await self.broker.call(m.DescribeTransactionsRequest(transactional_ids=[name]), 0)
        return str(answer.transaction_states[0].transaction_state)

    async def read(self, topic: str = "data", partition: int = 0, offset: int = 0) -> list[bytes]:
        request = fetch_request([(topic, partition, offset)], isolation_level=1, max_wait_ms=0)
        line = (await self.broker.call(request, 12)).responses[0].partitions[0]
        assert not line.error_code, ErrorCode(line.error_code).name
        found = committed_records(bytes(line.records or b""), line.aborted_transactions, line.last_stable_offset)
        return [record.value or b"" for record in found]

    def log(self, topic: str = "data", partition: int = 0) -> Any:
        found = self.broker.broker.partitions.get(topic, partition)
        assert found is not None
        return found.log


class FussyDisk(Disk):
    """Full, or broken, for the folders named; and a diary of what was written and synced."""

    def __init__(self) -> None:
        self.full: set[str] = set()
        self.broken: set[str] = set()
        self.refused: Counter[str] = Counter()
        self.diary: list[tuple[str, str]] = []

    def _folder(self, fd: int) -> str:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        return path.parent.name if path.suffix == ".log" else ""

    def _note(self, what: str, fd: int) -> None:
        folder = self._folder(fd)
        if folder:
            self.diary.append((what, folder))

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        folder = self._folder(fd)
        if folder in self.full or folder in self.broken:
            self.refused[folder] += 1
            code = errno.ENOSPC if folder in self.full else errno.EIO
            raise OSError(code, os.strerror(code))
        written = os.pwrite(fd, data, position)
        self._note("write", fd)
        return written

    def pwritev(self, fd: int, buffers: Any, position: int) -> int:
        return self.pwrite(fd, b"".join(bytes(one) for one in buffers), position)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)
        self._note("sync", fd)
