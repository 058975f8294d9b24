"""One instance of the registry: the state it replays, and the way of every change.

All of the state lives on the event loop; the reader's thread only hands records over. A change is decided, written,
read back and answered one at a time, by the instance that the group has chosen; the others forward to it. An instance
that was chosen takes over the topic first and reads all of it, so it decides on everything that was ever answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ottla.common.errors import OttlaError
from ottla.registry import errors
from ottla.registry.changes import Change, Decision
from ottla.registry.records import SCHEMA, UnreadableRecord, decode
from ottla.registry.settings import RegistrySettings
from ottla.registry.state import RegistryState
from ottla.registry.topic.election import Election, Identity
from ottla.registry.topic.limit import record_bytes_max
from ottla.registry.topic.reader import Read, TopicReader
from ottla.registry.topic.writer import Fenced, TooLarge, TopicWriter

_LOG = logging.getLogger("ottla.registry")
_RENEW_S = 3_600.0
_ATTEMPTS = 3
# Texts that any topic takes: no broker has less than its 1 MiB without a reason.
_ALWAYS_FITS = 500_000


class Forwarded(Exception):
    """Another instance writes: ask it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class Instance:
    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.state = RegistryState(settings.default_level)
        self._writer = TopicWriter(
            settings.address, settings.topic, f"{settings.topic}-{settings.group}", timeout_s=settings.write_timeout_s
        )
        self._reader = TopicReader(
            {"bootstrap.servers": settings.bootstrap, **settings.client}, settings.topic, self._deliver
        )
        self.identity = Identity(settings.advertised_host or settings.host, settings.port, settings.scheme)
        self._election: Election | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # The next offset to be replayed, and who waits for one.
        self.position = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        # Records that were refused on replay, of which a writer asks for its own.
        self._refused: dict[int, str] = {}
        # Who writes; whether we do, and have taken over; what changes next wake those who wait for a writer.
        self.writer: Identity | None = None
        self._is_ready = False
        self._settled = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.TimerHandle | None = None

    # --- life

    async def start(self, port: int) -> None:
        """`port`: where we listen, known only now if any free one was asked for. Returns once all is read."""
        self._loop = asyncio.get_running_loop()
        self.identity = self.identity._replace(port=port)
        await asyncio.to_thread(self._writer.create_topic)
        end = await asyncio.to_thread(self._reader.start)
        if end > 0:
            await self._replayed(end - 1)
        settings = self.settings
        self._election = Election(
            settings.address,
            settings.group,
            self.identity._replace(is_eligible=not settings.is_read_only),
            self._on_writer,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_ms=settings.heartbeat_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
        )
        self._election.start()

    async def stop(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        if self._election is not None:
            await asyncio.to_thread(self._election.stop)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._reader.stop)
        self._writer.close()

    # --- replay

    def _deliver(self, batch: list[Read]) -> None:
        """In the reader's thread."""
        self._call(self._replay, batch)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: we are stopping
            pass

    def _replay(self, batch: list[Read]) -> None:
        for read in batch:
            try:
                self.state.replay(decode(read.key, read.value), read.timestamp_ms)
            except UnreadableRecord as error:
                self._refused[read.offset] = str(error)
                _LOG.error("record %d of %s is passed over: %s", read.offset, self.settings.topic, error)
        self.position = batch[-1].offset + 1
        still: list[tuple[int, asyncio.Future[None]]] = []
        for offset, future in self._waiting:
            if offset >= self.position:
                still.append((offset, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still

    async def _replayed(self, offset: int) -> None:
        if offset >= self.position:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, future))
            await future

    # --- who writes

    def _on_writer(self, writer: Identity | None) -> None:
        """In the election's thread."""
        self._call(self._learn_writer, writer)

    def _learn_writer(self, writer: Identity | None) -> None:
        if writer is not None:
            writer = writer._replace(is_eligible=self.identity.is_eligible)
        if writer != self.writer or writer is None:
            _LOG.info("the writer is %s", writer.url if writer is not None else "not known")
        is_ours = writer == self.identity
        self.writer = writer
        self._settled.clear()
        if writer is None or not is_ours:
            self._is_ready = False
            if writer is not None:
                self._settled.set()
        elif self._is_ready:
            self._settled.set()
        else:
            self._spawn(self._take_over())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_over(self) -> None:
        async with self._one_at_a_time:
            if self.writer != self.identity or self._is_ready:
                return
            try:
                await self._replayed(await asyncio.to_thread(self._writer.take_over))
            except (OttlaError, OSError, Fenced) as error:
                _LOG.warning("this instance was chosen to write and cannot: %s", error)
                self._ask_again()
                return
            if self.writer == self.identity:
                self._is_ready = True
                self._settled.set()
                self._renewal = asyncio.get_running_loop().call_later(_RENEW_S, self._renew)

    def _renew(self) -> None:
        if self._is_ready:
            self._is_ready = False
            self._settled.clear()
            self._spawn(self._take_over())

    def _ask_again(self) -> None:
        self._is_ready = False
        self._settled.clear()
        if self._election is not None:
            self._election.again()

    # --- changes

    async def require_fits(self, text: str) -> None:
        """Raises for a schema that the topic does not take, before anybody has worked on it."""
        if len(text) <= _ALWAYS_FITS:
            return
        settings, size = self.settings, len(text.encode())
        most = await asyncio.to_thread(record_bytes_max, settings.address, settings.topic, settings.write_timeout_s)
        if most is not None and size > most:
            raise _too_large(f"{size} bytes", settings.topic)

    async def change(self, decide: Decision, *, may_forward: bool = True) -> Any:
        """The reply. Raises Forwarded when another instance has to be asked, RegistryError otherwise."""
        if self.settings.is_read_only:
            raise errors.not_permitted("This instance is read-only")
        for _ in range(_ATTEMPTS):
            await self._wait_for_writer()
            if self.writer is not None and self.writer != self.identity:
                if not may_forward:
                    raise errors.unknown_leader()
                raise Forwarded(self.writer.url)
            async with self._one_at_a_time:
                if not self._is_ready:
                    continue
                try:
                    return await self._write(await asyncio.to_thread(decide, self.state))
                except Fenced as error:
                    _LOG.warning("another instance has taken over: %s", error)
                    self._ask_again()
        raise errors.unknown_leader()

    async def _wait_for_writer(self) -> None:
        try:
            await asyncio.wait_for(self._settled.wait(), self.settings.write_timeout_s)
        except TimeoutError:
            raise errors.unknown_leader() from None

    async def _write(self, change: Change) -> Any:
        if not change.records:
            return change.reply
        try:
            last = await asyncio.to_thread(self._writer.append, change.records)
            await asyncio.wait_for(self._replayed(last), self.settings.write_timeout_s)
        except TooLarge as error:
            raise _too_large(error, self.settings.topic) from None
        except TimeoutError:
            raise errors.timed_out("The write was sent, but it could not be read back in time") from None
        except (OttlaError, OSError) as error:
            self._ask_again()
            raise errors.store_error(f"Error while writing to the topic {self.settings.topic}: {error}") from None
        self._require_kept(change, last)
        return change.reply

    def _require_kept(self, change: Change, last: int) -> None:
        """An answer names only what replay has taken, here as everywhere."""
        first = last - len(change.records) + 1
        for offset in range(first, last + 1):
            if (reason := self._refused.get(offset)) is not None:
                raise errors.store_error(f"The record was refused when it was read back: {reason}")
        for record in change.records:
            if record.key.type == SCHEMA and record.value is not None:
                kept = self.state.subjects.get(str(record.key.subject), {}).get(int(record.key.version or 0))
                if kept is None or kept.id != record.value["id"]:
                    raise errors.store_error("The schema is not there after it was written: try again")


def _too_large(size: object, topic: str) -> errors.RegistryError:
    return errors.too_large(f"Write failed because schema is too large: {size}, see max.message.bytes of {topic}")
