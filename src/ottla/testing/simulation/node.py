"""A machine with one broker: its disk, its clock, and what can happen to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.broker.router import Router
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.metastore.port import MetadataStore, StoreUnavailable
from ottla.testing.simulation.clock import SimulatedClock
from ottla.testing.simulation.damage import damage
from ottla.testing.simulation.durable_disk import DurableDisk
from ottla.testing.simulation.loop import Process
from ottla.testing.simulation.network import ServerEnd
from ottla.testing.simulation.store import SimulatedStore
from ottla.testing.simulation.threads import FLUSHES, DelayedWork, ImmediateWork, some_delay

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

STORE = "store"
_START_AGAIN_S = 1.0


class Node:
    def __init__(self, world: World, node_id: int, properties: Mapping[str, str]) -> None:
        self.world = world
        self.id = node_id
        self.name = f"b{node_id}"
        self.say = world.transcript.speaker(self.name)
        self.machine = world.network.machine(self.name)
        self.clock = SimulatedClock(world.loop)
        self._rng = Random(f"{world.seed} {self.name}")
        self._properties = properties
        self._boots = 1
        self._folder = world.folder / f"{self.name}.{self._boots}"
        self._folder.mkdir()
        self._disk = DurableDisk(self._folder)
        self._is_disk_slow = False
        # How often its broker was started.
        self.starts = 0
        self.process: Process | None = None
        # That of the last start, also while it is dead: what it had is what it has.
        self.broker: Broker | None = None
        self.is_open = False
        self._ends: list[ServerEnd] = []
        # Kept from the garbage collector, which would run what is left of them.
        self._dead: list[object] = []

    @property
    def is_up(self) -> bool:
        return self.process is not None and not self.process.is_dead

    # --- starting

    def start(self) -> None:
        if self.is_up:
            return
        self.starts += 1
        self.say("starts")
        process = self.process = Process(self.world.loop, self.name)
        process.after_event = partial(self.world.look_at, self)
        self.machine.process = process
        ends = self._ends = []
        self.machine.serve = ends.append
        self.world.loop.create_task(self._run(ends), context=process.context())

    async def _run(self, ends: list[ServerEnd]) -> None:
        """As `server.Server`: ports are taken first, and answer when the broker is open."""
        config = BrokerConfig.load(
            {
                "node.id": str(self.id),
                "log.dirs": str(self._folder),
                "listeners": f"PLAINTEXT://{self.name}:9092",
                "zookeeper.connect": "store:2181",
                **self._properties,
            }
        )
        broker = Broker(
            config,
            clock=self.clock,
            disk=self._disk,
            make_threads=self._make_threads,
            open_store=self._open_store,
            boot_id=f"boot {self._boots}",
        )
        if self.broker is not None:
            self._dead.append(self.broker)
        self.broker = broker
        router = Router(broker)
        broker.advertise("PLAINTEXT", self.name, 9092)
        try:
            await broker.open()
        except OttlaError as error:
            self.say(f"cannot start: {error}")
            self.kill()
            self.world.loop.call_later(_START_AGAIN_S, self.start, context=self.world.network.nobody.copy())
            return
        self.is_open = True
        self.say("is open")

        def serve(end: ServerEnd) -> None:
            ends.append(end)
            end.serve_with(router.handle)

        self.machine.serve = serve
        for end in ends:
            end.serve_with(router.handle)

    def unwatch(self) -> None:
        if self.process is not None:
            self.process.after_event = None

    def _make_threads(self, count: int, name: str) -> Executor:
        return DelayedWork(self.world.loop, self._flush_delay_s) if name == FLUSHES else ImmediateWork()

    def _flush_delay_s(self) -> float:
        return some_delay(self._rng, 2.0 if self._is_disk_slow else 0.005, 3.0)

    def _open_store(self, config: BrokerConfig) -> MetadataStore:
        assert self.process is not None
        world = self.world
        try:
            return SimulatedStore(
                world.ensemble,
                self.process,
                self._rng,
                timeout_s=config.zookeeper_session_timeout_ms / 1000,
                is_linked=self._is_linked_to_store,
                delay_s=lambda: world.network.delay_s(self.name, STORE),
                say=self.say,
            )
        except StoreUnavailable as error:
            raise OttlaError(f"{error}.") from error

    def _is_linked_to_store(self) -> bool:
        cut = self.world.network.is_cut
        return not cut(self.name, STORE) and not cut(STORE, self.name)

    # --- what happens to it

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume()

    def kill(self) -> None:
        """The process ends; what it has written stays, synced or not."""
        if self._end():
            self.world.network.process_ended(self.machine)

    def cut_power(self) -> None:
        """The machine goes down: of what was not synced the disk has what the seed says."""
        after = self._go_down()
        self._disk.image(after, self._rng, keeps_order_of_names=True)
        self._use(after)

    def replace_disk(self) -> None:
        """The machine goes down, and comes back with an empty one."""
        after = self._go_down()
        after.mkdir()
        self._use(after)

    def damage_disk(self, partition: TopicPartition) -> str | None:
        """While it is dead."""
        what = damage(self._folder, partition, self._rng)
        if what is not None:
            self._use(self._folder)  # what is there is all that there is
        return what

    def _go_down(self) -> Path:
        """Where its next disk is."""
        if self._end():
            self.world.network.power_lost(self.machine)
        self._boots += 1
        return self.world.folder / f"{self.name}.{self._boots}"

    def _use(self, folder: Path) -> None:
        self._dead.append(self._disk)
        self._folder = folder
        self._disk = DurableDisk(folder)
        self._disk.take_as_synced()

    def return_power(self) -> None:
        self.world.network.power_is_back(self.machine)

    def _end(self) -> bool:
        if self.process is None or self.process.is_dead:
            return False
        self.is_open = False
        self.process.kill()
        self._dead.append(self.process)
        if self.broker is not None and self.broker.has_logs:
            for log_dir in self.broker.logs.dirs:
                log_dir.unlock()  # as the kernel does
        return True

    def stop(self) -> None:
        """Begin a clean stop; the process ends with it."""
        broker, process = self.broker, self.process
        if broker is None or process is None or not self.is_open:
            return
        self.is_open = False

        async def stop() -> None:
            await broker.leave()
            broker.release_waiting()
            self.machine.serve = None
            await asyncio.gather(*(end.drain() for end in self._ends))
            await broker.close(clean=True)
            self.say("has stopped")
            self.kill()

        self.world.loop.create_task(stop(), context=process.context())

    def slow_disk(self, is_slow: bool) -> None:
        self._is_disk_slow = is_slow

    def limit_disk(self, room: int | None) -> None:
        """So many bytes fit; None: as many as one likes."""
        self._disk.room = room
