"""A broker on the test's own event loop, without sockets: requests go to its router as frames, answers come back.

Nothing happens in another thread but fsync, so what a test does to the disk it does at a known point. The disk can die:
`Crash` leaves the broker in the middle of what it does, and `LoopBroker` on the same folder is the next start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from ottla.broker.broker import Broker
from ottla.broker.chores.timers import JumpingTimers
from ottla.broker.router import Router
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.controller.topic_plan import NewTopic
from ottla.protocol import codec
from ottla.protocol.framing import API_VERSIONS, flexible_from
from ottla.storage.disk import Disk
from ottla.testing.simulation.network import joined
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import request_frame

_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.initial.task.delay.ms": "3600000",
}


class Crash(BaseException):
    """The broker's process ends here. Not an Exception: nothing in the broker may take it for an error."""


class CrashDisk(Disk):
    """Dies at the n-th write, counted from 1: before it reaches the file, or just after. Then nothing changes any more.

    `steps` names the files that were written, so that a test can say where it crashed."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self.at = at
        self.after = after
        self.dead = False
        self.steps: list[str] = []

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        return self._write(fd, memoryview(data).nbytes, lambda: os.pwrite(fd, data, position))

    def pwritev(self, fd: int, buffers: Any, position: int) -> int:
        size = sum(memoryview(one).nbytes for one in buffers)
        return self._write(fd, size, lambda: os.pwritev(fd, buffers, position))

    def _write(self, fd: int, size: int, write: Any) -> int:
        if self.dead:
            return size
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if path.suffix != ".log":
            return int(write())
        self.steps.append(path.parent.name)
        is_here = len(self.steps) == self.at
        if is_here and not self.after:
            self._die()
        written = int(write())
        if is_here:
            self._die()
        return written

    def _die(self) -> None:
        self.dead = True
        raise Crash(f"at write {self.at}, to {self.steps[-1]}")

    def fsync(self, fd: int) -> None:
        if not self.dead:
            os.fsync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        if not self.dead:
            os.ftruncate(fd, size)

    def rename(self, source: str | Path, target: str | Path) -> None:
        if not self.dead:
            os.rename(source, target)

    def unlink(self, path: str | Path) -> None:
        if not self.dead:
            os.unlink(path)


class LoopBroker:
    """`async with LoopBroker(folder) as broker:`; `call(request, version)` gives the decoded answer."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        jumps: bool = False,
    ) -> None:
        """With `jumps`, timers follow a clock that is moved by `pass_time`."""
        self._config = {**_DEFAULTS, "log.dirs": str(folder), **(properties or {})}
        self._options: dict[str, Any] = {"clock": clock}
        if disk is not None:
            self._options["disk"] = disk
        if jumps:
            self._options["make_timers"] = JumpingTimers

    async def __aenter__(self) -> Self:
        self.broker = Broker(BrokerConfig.load(self._config), **self._options)
        await self.broker.open()
        self.broker.advertise("PLAINTEXT", "localhost", 9092)
        self._router = Router(self.broker)
        self._connection: Any = SimpleNamespace(
            context=None,
            client_host="here",
            principal="User:ANONYMOUS",
            id=1,
            listener=SimpleNamespace(name="PLAINTEXT"),
            client_software=("", ""),
            login=None,
            closed=False,
        )
        self._connection.close = lambda: setattr(self._connection, "closed", True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.release_waiting()
        await self.broker.close(clean=kind is None)

    async def crash(self) -> None:
        """Leave the folder as it is now."""
        await self.broker.close(clean=False)

    async def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        await self.broker.topics.create_one(NewTopic(name, partitions, configs=dict(configs or {})))

    async def delete_topic(self, name: str) -> None:
        await self.broker.topics.delete([self.broker.image.topics[name]])

    async def pass_time(self, ms: int) -> None:
        """Move the clock; what is due then has begun when this is done."""
        timers, clock = self.broker.timers, self.broker.clock
        assert isinstance(timers, JumpingTimers) and isinstance(clock, ManualClock)
        await _turns()
        clock.advance(ms)
        timers.on_jump()
        await _turns()

    async def loaded(self) -> None:
        """Until the coordinators have read their logs and done what was left to do."""
        while self.broker.transactions.runtime.is_loading or self.broker.groups.runtime.is_loading:
            await asyncio.sleep(0.001)

    async def call(self, request: codec.Message, version: int, client_id: str = "raw") -> Any:
        name = type(request).__name__
        frame = memoryview(bytearray(request_frame(request, version, client_id=client_id)))
        answer: Any = self._router.handle(self._connection, frame)
        if not isinstance(answer, (bytes, bytearray, list)):
            assert answer is not None, f"the connection was closed on {name}"
            answer = await answer
        raw = joined(answer)
        response = name.removesuffix("Request") + "Response"
        flexible = version >= flexible_from(name) and codec.definition(name)["key"] != API_VERSIONS
        message, end = codec.decode_from(response, version, raw, 9 if flexible else 8)
        assert end == len(raw)
        return message


async def _turns() -> None:
    """Tasks that were begun get as far as they can without waiting for a thread."""
    for _ in range(100):
        await asyncio.sleep(0)
