"""Replicas on their way from one log directory to another: AlterReplicaLogDirs starts them, this sees them through.

One move per partition. The copying runs in a thread of its own, so moves go one after another; producers and consumers
notice a pause of a few milliseconds at the end. A move ends early when it is not wanted any more, and at once: the
broker can stop in the middle of a terabyte. One that a crash cuts short leaves a `-future` folder, which the next start
removes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ottla.broker.partitions.partition_table import Partitions
from ottla.common.clock import Clock
from ottla.common.errors import ApiError
from ottla.common.ids import TopicPartition
from ottla.replication.quota import UNLIMITED
from ottla.storage.background import COPIES, DELETIONS
from ottla.storage.log_dirs.future_log import CopyGivenUp, FutureLog
from ottla.storage.log_dirs.log_dir import LogDir
from ottla.storage.log_manager import LogManager

log = logging.getLogger("ottla.broker")


@dataclass(slots=True)
class Move:
    target: LogDir
    task: asyncio.Task[None] | None = None
    # The copy, once it has begun.
    future: FutureLog | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True
        if self.future is not None:
            self.future.give_up()


class ReplicaMoves:
    def __init__(
        self, logs: LogManager, partitions: Partitions, clock: Clock, *, rate: Callable[[], int] = lambda: UNLIMITED
    ) -> None:
        """`rate`: how many bytes per second may be copied."""
        self._rate = rate
        self._logs = logs
        self._partitions = partitions
        self._clock = clock
        self._moves: dict[TopicPartition, Move] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, tp: TopicPartition) -> Move | None:
        return self._moves.get(tp)

    def start(self, tp: TopicPartition, target: LogDir) -> None:
        """Move the partition there; a move to elsewhere ends, one to the place where it is ends as well."""
        under_way = self._moves.get(tp)
        if under_way is not None:
            if under_way.target is target:
                return
            under_way.cancel()
            del self._moves[tp]
        current = self._logs.get(tp)
        if current is None or current.dir.parent == target.path:
            return
        move = self._moves[tp] = Move(target)
        move.task = asyncio.get_running_loop().create_task(self._run(tp, move))
        self._tasks.add(move.task)
        move.task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for move in self._moves.values():
            move.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, tp: TopicPartition, move: Move) -> None:
        try:
            await self._copy_and_switch(tp, move)
        except CopyGivenUp:
            pass
        except (OSError, ApiError) as error:
            log.error("a replica was not moved", extra={"partition": str(tp), "why": str(error)})
        finally:
            if self._moves.get(tp) is move:
                del self._moves[tp]

    async def _copy_and_switch(self, tp: TopicPartition, move: Move) -> None:
        current = self._logs.get(tp)
        if current is None or move.cancelled:
            return
        future = move.future = self._logs.begin_move(current, move.target, self._rate)
        try:
            while missing := future.missing(self._clock.now_ms()):
                await asyncio.wrap_future(self._logs.background.submit(partial(future.copy, missing), COPIES))
                if move.cancelled or self._logs.get(tp) is not current:
                    return
            # So that little is left to sync while the log stands still.
            await current.flush_async()
            if move.cancelled or self._logs.get(tp) is not current:
                return
            moved = self._logs.switch(future, move.target)
            replica = self._partitions.get(*tp) or self._partitions.by_name.get_followed(
                tp.topic.encode(), tp.partition
            )
            if replica is not None:
                replica.replace_log(moved)
            log.info("replica moved", extra={"partition": str(tp), "folder": str(moved.dir)})
        finally:
            if future.folder.exists():
                self._logs.background.submit(future.abandon, DELETIONS)
