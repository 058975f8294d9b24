"""One run: brokers, clients, faults and checks from one seed.

It begins with a cluster that is well and a topic. Then faults strike while clients work. When they end, everything must
come back: each partition has a leader and all its replicas in sync, and every client gets on. Then all that was ever
promised is held against what is there.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TextIO

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.common.errors import ApiError
from ottla.common.ids import TopicPartition
from ottla.metastore.port import StoreConflict, StoreUnavailable
from ottla.testing.simulation.checks.lives import as_brokers_call_it
from ottla.testing.simulation.checks.promises import Promises
from ottla.testing.simulation.checks.replicas import Replicas
from ottla.testing.simulation.checks.stored import Stored
from ottla.testing.simulation.checks.violation import Violation
from ottla.testing.simulation.clients.client import Client
from ottla.testing.simulation.clients.committer import Committer
from ottla.testing.simulation.clients.creator import Creator
from ottla.testing.simulation.clients.deleter import Deleter
from ottla.testing.simulation.clients.member import Member
from ottla.testing.simulation.clients.operator import Operator
from ottla.testing.simulation.clients.producer import Producer
from ottla.testing.simulation.clients.reader import Reader
from ottla.testing.simulation.clients.remaker import Remaker
from ottla.testing.simulation.clients.transactor import Transactor
from ottla.testing.simulation.ensemble import Ensemble
from ottla.testing.simulation.faults import Faults
from ottla.testing.simulation.loop import NeverEnding, SimulatedLoop
from ottla.testing.simulation.network import Network
from ottla.testing.simulation.node import Node
from ottla.testing.simulation.settings import Settings
from ottla.testing.simulation.surroundings import seeded_surroundings
from ottla.testing.simulation.threads import some_delay
from ottla.testing.simulation.transcript import LogsToTranscript, Transcript

TOPIC = "orders"
# Simulated seconds. A healthy cluster forms, and heals, in a fraction of it.
_PATIENCE_S = 120.0
# Failures that a broker lives with.
_EXPECTED = (ApiError, PeerUnavailable, StoreConflict, StoreUnavailable)


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    violation: Violation | None
    # What brokers did not expect, though no promise was broken by it.
    errors: list[tuple[str, str]]
    transcript: Transcript
    simulated_s: float
    events: int
    acks: int
    commits: int


class World:
    def __init__(self, seed: int, settings: Settings, folder: Path, output: TextIO | None = None) -> None:
        self.seed = seed
        self.settings = settings
        self.folder = folder
        self.loop = SimulatedLoop()
        self.transcript = Transcript(self.loop, output)
        self.transcript.aliases[f"{folder}/"] = ""
        self.network = Network(self.loop, Random(f"{seed} network"))
        self.ensemble = Ensemble(self.loop)
        self.session_timeout_s = int(settings.properties()["zookeeper.session.timeout.ms"]) / 1000
        self.replicas = Replicas()
        self.promises = Promises(self.replicas)
        self.nodes: dict[int, Node] = {}
        self._disks_lost: set[int] = set()
        # The least that min.insync.replicas may be in force with, from now on.
        self._min_insync = settings.min_insync_replicas
        self.stored = Stored(
            self.ensemble, self.replicas, lambda: self.nodes.values(), self._who_acts, self.transcript.say, self.found
        )
        self.partitions = [TopicPartition(TOPIC, index) for index in range(settings.partitions)]
        self.clients: list[Client] = []
        self.operator = Operator(self, "operator")
        self.violation: Violation | None = None
        self._stopped: asyncio.Future[None] | None = None
        threads_rng = Random(f"{seed} threads")
        self.loop.threads.delay_s = lambda: some_delay(threads_rng, 0.001, 0.05)
        self.loop.set_exception_handler(self._on_exception)

    # --- violations

    def found(self, violation: Violation) -> None:
        """The run ends with the first."""
        if self.violation is None:
            self.violation = violation
            self.transcript.say("VIOLATION", str(violation))
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    def look_at(self, node: Node) -> None:
        """After each event of its broker."""
        try:
            self.replicas.look_at(node)
        except Violation as violation:
            self.found(violation)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation):
            self.found(error)
            return
        if "never retrieved" in context["message"] and isinstance(error, _EXPECTED):
            return  # of a process that was killed, mostly: nobody was left to look at it
        who = self._who_acts()
        trace = logging.Formatter().formatException((type(error), error, error.__traceback__)) if error else ""
        self.transcript.errors.append((who, f"{context['message']}: {error!r}\n{trace}"))

    def _who_acts(self) -> str:
        process = self.loop.process
        return process.name if process is not None else "nobody"

    def led_epoch(self, broker_id: int, partition: TopicPartition) -> int | None:
        """The leader epoch in which this broker believes to lead: it may have been deposed, and not know it yet."""
        node = self.nodes[broker_id]
        if node.broker is None or not node.is_open:
            return None
        led = node.broker.partitions.get(partition.topic, partition.partition)
        return None if led is None else led.leader_epoch

    # --- power

    def may_lose_power(self, node: Node) -> bool:
        """Nobody has to keep anything where all of it is synced."""
        if self.settings.flushes_each and not self._has_lost_disks():
            return True
        return self.may_lose_disk(node)

    def may_lose_disk(self, node: Node) -> bool:
        """Whether somebody else keeps all that is committed, whatever happens to it later. If as many as
        min.insync.replicas were lost before anybody knows, they would be the in-sync replicas as soon as the rest is
        away for a moment, and nobody else would be asked (KIP-966)."""
        for image in self.replicas.partitions.values():
            members = {*image.isr, *image.elr}
            if node.id in members:
                lost = [member for member in members if member == node.id or self.replicas.is_lossy(member)]
                if len(lost) >= self._min_insync or len(lost) == len(members):
                    return False
        return True

    def may_promise(self, min_insync: int) -> bool:
        """Somebody is about to set this min.insync.replicas, which may be so at once, later, or never. Not less than
        what the losses of before allow."""
        if min_insync < self._min_insync and any(map(self.replicas.is_lossy, self.nodes)):
            return False
        self._min_insync = min(self._min_insync, min_insync)
        return True

    def cut_power(self, node: Node) -> None:
        registration = self.stored.registrations.get(node.id)
        self.replicas.power_cut(node, registration.epoch if registration is not None else 0)
        node.cut_power()

    def replace_disk(self, node: Node) -> None:
        registration = self.stored.registrations.get(node.id)
        self.replicas.power_cut(node, registration.epoch if registration is not None else 0)
        self._disks_lost.add(node.id)
        node.replace_disk()

    def damage_disk(self, node: Node, partition: TopicPartition) -> str:
        """What has become of it, in words."""
        node.kill()
        what = node.damage_disk(partition)
        if what is None:
            return "its disk has kept everything"
        registration = self.stored.registrations.get(node.id)
        self.replicas.power_cut(node, registration.epoch if registration is not None else 0)
        self._disks_lost.add(node.id)
        return what

    def _has_lost_disks(self) -> bool:
        """Whether somebody has not caught up since it lost its disk: it has nothing, also where all is synced."""
        self._disks_lost = {
            lost
            for lost in self._disks_lost
            if self.replicas.is_lossy(lost)
            or any(lost in image.replicas and lost not in image.isr for image in self.replicas.partitions.values())
        }
        return bool(self._disks_lost)

    # --- the run

    async def play(self) -> None:
        self._stopped = asyncio.get_running_loop().create_future()
        playing = asyncio.ensure_future(self._play())
        await asyncio.wait([playing, self._stopped], return_when=asyncio.FIRST_COMPLETED)
        if playing.done() and playing.exception() is not None:
            error = playing.exception()
            assert error is not None
            if not isinstance(error, Violation):
                raise error
            self.found(error)

    async def _play(self) -> None:
        settings = self.settings
        for node_id in range(1, settings.brokers + 1):
            self.nodes[node_id] = Node(self, node_id, settings.properties())
        for node in self.nodes.values():
            node.start()
        await self._until("a new cluster forms", self._inactive)
        creator = self._start(Creator(self, "creator"))
        await self._until("a topic is created", lambda: _working([creator]))
        working = [self._start(client) for client in self._make_clients()]
        await self._strike()
        self.operate(self._give_up_what_is_empty())
        await self._until("all replicas are in sync again", self._unwell)
        acks, commits = self.promises.acks, self.promises.commits
        await self._until("clients get on", lambda: self._standing_still(acks + 3, commits + 1))
        for client in [*self.clients, self.operator]:
            client.is_stopping = True
        await self._until("clients come to an end", lambda: _working(working))
        await self._until("watermarks reach the end", self._unfinished)
        self._check_all()

    def _make_clients(self) -> list[Client]:
        deleters: list[Client] = [Deleter(self, "c10"), Remaker(self, "c11")] if self.settings.deletes else []
        return [
            Producer(self, "c1"),
            Producer(self, "c2"),
            Reader(self, "c3", is_committed_only=False),
            Reader(self, "c4", is_committed_only=True),
            Committer(self, "c5", "simple"),
            Transactor(self, "c6"),
            Transactor(self, "c7", is_rare=True),
            Member(self, "c8", "members"),
            Member(self, "c9", "members"),
            *deleters,
        ]

    def _start(self, client: Client) -> asyncio.Task[None]:
        self.clients.append(client)
        return self._watch(client.start())

    def operate(self, work: Coroutine[Any, Any, None]) -> None:
        """In the name of the operator."""
        self._watch(self.loop.create_task(work, context=self.operator.process.context()))

    def _watch(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        task.add_done_callback(self._on_client_done)
        return task

    def _on_client_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Violation):
            self.found(error)
        elif error is not None:
            raise error

    async def _strike(self) -> None:
        faults, rng = Faults(self), Random(f"{self.seed} when")
        for _ in range(self.settings.faults):
            await asyncio.sleep(rng.random() ** 2 * 2)
            faults.strike()
        await asyncio.sleep(rng.random() * 2.5)
        faults.end_all()
        for node in self.nodes.values():
            node.start()

    async def _give_up_what_is_empty(self) -> None:
        """A topic may be made while the only broker that is in sync from its beginning has lost its disk already, and
        nobody knows yet. Whether that had records only a person can tell."""
        while not self.operator.is_stopping:
            for partition, image in list(self.stored.partitions.items()):
                is_waiting = image.leader < 0 and image.last_known_leader in image.emptied
                if is_waiting and self.replicas.of(partition).end_offset == 0:
                    await self.operator.give_up_nothing(as_brokers_call_it(partition))
            await asyncio.sleep(1)

    async def _until(self, what: str, is_lacking: Callable[[], Iterable[str]]) -> None:
        """`is_lacking` tells what is not as it should be."""
        give_up_s = self.loop.time() + _PATIENCE_S
        while (lacking := next(iter(is_lacking()), None)) is not None:
            if self.loop.time() > give_up_s:
                raise Violation("liveness", f"{what}: not within {_PATIENCE_S:.0f} s, {lacking}")
            await asyncio.sleep(0.1)

    # --- what is lacking

    def _inactive(self) -> Iterator[str]:
        for node in self.nodes.values():
            known = self.stored.registrations.get(node.id)
            if known is None or not known.is_active or not node.is_open:
                yield f"{node.name} is not taken in"

    def _unwell(self) -> Iterator[str]:
        yield from self._inactive()
        for partition, image in self.stored.partitions.items():
            if image.leader < 0 or len(image.isr) < len(image.replicas):
                yield f"{partition} has leader {image.leader} and in sync {image.isr}"
            elif image.adding or image.removing:
                yield f"{partition} is moved to {image.adding} and from {image.removing}"

    def _unfinished(self) -> Iterator[str]:
        """Not all replicas have all of the log, or know that it is committed."""
        for partition, image in self.stored.partitions.items():
            end = self.replicas.of(partition).end_offset
            for member in image.replicas:
                broker = self.nodes[member].broker
                log = None if broker is None else broker.logs.logs.get(as_brokers_call_it(partition))
                if log is None:
                    yield f"b{member} has no log of {partition}"
                elif log.log_end_offset != end or log.high_watermark != end:
                    yield (
                        f"b{member} has {partition} to {log.log_end_offset}, watermark {log.high_watermark}; {end} is "
                        f"committed, {image.leader} leads"
                    )
                elif log.last_stable_offset != end:
                    yield f"b{member}: a transaction hangs in {partition}, at {log.last_stable_offset} of {end}"

    def _standing_still(self, acks: int, commits: int) -> Iterator[str]:
        if self.promises.acks < acks:
            yield "producers stand still"
        if self.promises.commits < commits:
            yield "offsets are not committed"

    def _check_all(self) -> None:
        for partition, image in self.stored.partitions.items():
            committed = self.replicas.of(partition)
            for member in image.replicas:
                broker = self.nodes[member].broker
                assert broker is not None
                committed.compare(
                    broker.logs.logs[as_brokers_call_it(partition)], 0, committed.end_offset, f"b{member}"
                )
        self.promises.check_all()
        self.promises.check_transactions()


def play(seed: int, settings: Settings, *, output: TextIO | None = None, level: int = logging.WARNING) -> Outcome:
    with _folder() as folder, _no_collection():
        world = World(seed, settings, folder, output)
        loop = world.loop
        with seeded_surroundings(seed, loop.time):
            try:
                with LogsToTranscript(world.transcript, loop, level):
                    try:
                        loop.run_until_complete(world.play())
                    except NeverEnding as error:
                        world.found(Violation("never ending", str(error)))
            finally:
                with LogsToTranscript(Transcript(loop), loop, logging.CRITICAL):
                    _end(world)
        return Outcome(
            seed,
            world.violation,
            world.transcript.errors,
            world.transcript,
            loop.time(),
            loop.events,
            world.promises.acks,
            world.promises.commits,
        )


def _working(tasks: Iterable[asyncio.Task[None]]) -> Iterator[str]:
    return (f"{task.get_name()} is not done" for task in tasks if not task.done())


@contextmanager
def _no_collection() -> Iterator[None]:
    """A run makes little garbage in circles, and lives for less than a second: whoever plays many collects between."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _folder() -> Iterator[Path]:
    """In memory, where that can be: nothing here has to survive anything."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="ottla-simulation-", dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end(world: World) -> None:
    """Whatever was going on ends here, unheard, and not when it is collected: in the middle of another run."""
    loop = world.loop
    for node in world.nodes.values():
        node.unwatch()
    loop.set_exception_handler(lambda loop, context: None)
    loop.threads.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended: set[asyncio.Task[Any]] = set()
        # What ends may begin something else, in a `finally`: here, or a loop of the real world would keep it.
        asyncio._set_running_loop(loop)
        while left := asyncio.all_tasks(loop) - ended:
            ended |= left
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(BaseException):
                    task.get_coro().close()
        asyncio._set_running_loop(None)
        loop.close()
