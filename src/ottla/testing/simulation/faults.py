"""What goes wrong: each fault begins, and ends after a while that the seed decides.

A machine loses its power, or its disk, only while somebody else who has everything that is committed keeps its own:
that is what the promise asks for. Where every record is synced before it is acknowledged, all machines may lose power.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ottla.common.ids import TopicPartition
from ottla.metadata import nodes as paths
from ottla.testing.simulation.node import STORE, Node

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World


class Faults:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(f"{world.seed} faults")
        self._undo: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._is_over = False
        self._kinds: list[tuple[int, Callable[[], str | None]]] = [
            (5, self._kill),
            (3, self._cut_power),
            (1, self._replace_disk),
            (4, self._pause),
            (2, self._pause_controller),
            (4, self._cut_link),
            (2, self._isolate),
            (3, self._cut_store),
            (2, self._stop_store),
            (2, self._expire_session),
            (2, self._elections_in_a_row),
            (3, self._leader_there_and_back),
            (2, self._move_replicas),
            (2, self._change_min_insync),
            (2, self._depose_controller),
            (4, self._reset),
            (2, self._slow_link),
            (2, self._slow_disk),
            (2, self._fill_disk),
            (2, self._refuse),
            (1, self._jump_clock),
            (2, self._restart),
            (3, self._cut_client),
        ]
        if world.settings.damages:
            self._kinds.append((6, self._damage_disk))

    def strike(self) -> None:
        """One of them, if it can be now."""
        weights = [weight for weight, _ in self._kinds]
        _, kind = self._rng.choices(self._kinds, weights)[0]
        what = kind()
        if what is not None:
            self._world.transcript.say("fault", what)

    def end_all(self) -> None:
        self._world.transcript.say("fault", "all faults end")
        self._is_over = True
        undo, self._undo = self._undo, {}
        for number in sorted(undo):
            undo[number]()
        self._world.network.heal_all()
        self._world.ensemble.return_to_service()
        for node in self._world.nodes.values():
            node.resume()
            node.slow_disk(False)
            node.limit_disk(None)

    # --- helpers

    def _until(self, longest_s: float, undo: Callable[[], None]) -> None:
        self._next += 1
        number = self._next
        self._undo[number] = undo

        def end() -> None:
            ending = self._undo.pop(number, None)
            if ending is not None:
                ending()

        # Mostly short, at times long.
        duration_s = longest_s * self._rng.random() ** 2
        self._after(duration_s, end)

    def _after(self, delay_s: float, then: Callable[[], None]) -> None:
        self._world.loop.call_later(delay_s, then, context=self._world.network.nobody.copy())

    def _node(self, *, is_up: bool = True) -> Node | None:
        nodes = [node for node in self._world.nodes.values() if node.is_up == is_up]
        return self._rng.choice(nodes) if nodes else None

    def _pair(self) -> tuple[Node, Node]:
        one, other = self._rng.sample(list(self._world.nodes.values()), 2)
        return one, other

    def _controller(self) -> Node | None:
        return self._world.nodes.get(self._world.stored.controller or 0)

    def _longest_silence_s(self) -> float:
        return self._world.session_timeout_s * 2

    # --- processes and machines

    def _kill(self) -> str | None:
        node = self._node()
        if self._rng.random() < 0.3:
            node = self._controller() or node
        if node is None or not node.is_up:
            return None
        node.kill()
        self._until(self._longest_silence_s(), node.start)
        return f"{node.name} is killed"

    def _cut_power(self) -> str | None:
        node = self._node()
        if node is None or not self._world.may_lose_power(node):
            return None
        self._world.cut_power(node)

        def start() -> None:
            node.return_power()
            node.start()

        self._until(self._longest_silence_s(), start)
        return f"{node.name} loses its power"

    def _replace_disk(self) -> str | None:
        """Its machine comes back with an empty one."""
        node = self._node()
        if node is None or not self._world.may_lose_disk(node):
            return None
        self._world.replace_disk(node)

        def start() -> None:
            node.return_power()
            node.start()

        self._until(self._longest_silence_s(), start)
        return f"{node.name} loses its disk"

    def _damage_disk(self) -> str | None:
        """The process ends, and its disk has not kept all that was synced."""
        node, partition = self._node(), self._rng.choice(self._world.partitions)
        if node is None or not self._world.may_lose_disk(node):
            return None
        what = self._world.damage_disk(node, partition)
        self._until(self._longest_silence_s(), node.start)
        return f"{node.name} is killed; {what}"

    def _pause(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        node.pause()
        self._until(self._longest_silence_s(), self._resume(node))
        return f"{node.name} is paused"

    def _pause_controller(self) -> str | None:
        node = self._controller()
        if node is None or not node.is_up:
            return None
        node.pause()
        resume = self._resume(node)
        self._until(0, lambda: self._until(self._longest_silence_s(), resume))
        return f"{node.name}, the controller, is paused"

    def _resume(self, node: Node) -> Callable[[], None]:
        process = node.process

        def resume() -> None:
            if process is not None and not process.is_dead:
                self._world.transcript.say("fault", f"{node.name} goes on")
                process.resume()

        return resume

    def _restart(self) -> str | None:
        node = self._node()
        if node is None or not node.is_open or node.process is None or not node.process.is_running:
            return None
        node.stop()

        def start() -> None:
            node.kill()
            node.start()

        self._until(self._longest_silence_s() * 3, start)
        return f"{node.name} is asked to stop"

    def _slow_disk(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        node.slow_disk(True)
        self._until(5, lambda: node.slow_disk(False))
        return f"{node.name} has a slow disk"

    def _fill_disk(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        node.limit_disk(self._rng.randrange(300))
        self._until(self._longest_silence_s(), lambda: node.limit_disk(None))
        return f"{node.name} has a full disk"

    def _jump_clock(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        node.clock.skew_ms += self._rng.randint(-100_000_000, 100_000_000)
        return f"{node.name}: the clock jumps"

    # --- the network

    def _cut(self, links: list[tuple[str, str]], what: str) -> str:
        network = self._world.network
        for source, target in links:
            network.cut(source, target)

        def heal() -> None:
            self._world.transcript.say("fault", f"{what}: healed")
            for source, target in links:
                network.heal(source, target)

        self._until(self._longest_silence_s() * 1.5, heal)
        return what

    def _cut_link(self) -> str:
        one, other = self._pair()
        links = [(one.name, other.name)]
        if self._rng.random() < 0.5:
            links.append((other.name, one.name))
            return self._cut(links, f"{one.name} and {other.name} are cut off from each other")
        return self._cut(links, f"{one.name} does not reach {other.name}")

    def _isolate(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        others = [other.name for other in self._world.nodes.values() if other is not node]
        if self._rng.random() < 0.5:
            others.append(STORE)
        links = [(node.name, other) for other in others] + [(other, node.name) for other in others]
        return self._cut(links, f"{node.name} is cut off from {', '.join(others)}")

    def _cut_store(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        return self._cut([(node.name, STORE)], f"{node.name} is cut off from the store")

    def _cut_client(self) -> str | None:
        node = self._node()
        if node is None:
            return None
        client = self._rng.choice(self._world.clients).name
        return self._cut([(node.name, client)], f"{client} hears nothing of {node.name}")

    def _reset(self) -> str | None:
        which = [self._world.network.reset_one() for _ in range(self._rng.randint(1, 6))]
        return f"connections break: {', '.join(one for one in which if one is not None)}"

    def _slow_link(self) -> str:
        one, other = self._pair()
        network = self._world.network
        network.slow_down(one.name, other.name, self._rng.choice((0.05, 0.5, 3.0)))
        self._until(5, lambda: network.slow_down(one.name, other.name, 0.0))
        return f"{one.name} to {other.name} is slow"

    def _refuse(self) -> str | None:
        """As if nobody listened there, for one who asks: a verdict that is wrong."""
        node = self._node()
        asking = self._controller()
        if node is None or asking is None or node is asking:
            return None
        network = self._world.network
        network.refuse(asking.name, node.name)
        self._until(1.0, lambda: network.stop_refusing(asking.name, node.name))
        return f"{asking.name}, the controller, is refused by {node.name}, which is alive"

    def _depose_controller(self) -> str | None:
        """Another broker takes the controller for dead and takes its place, while what the first one writes is still on
        its way to the store: it has work to do, because somebody else is really gone."""
        old = self._controller()
        others = [node for node in self._world.nodes.values() if node.is_up and node is not old]
        if old is None or not old.is_up or len(others) < 2:
            return None
        gone, successor = self._rng.sample(others, 2)
        network = self._world.network
        network.slow_down(old.name, STORE, self._rng.choice((0.2, 0.5, 1.0)))
        gone.kill()
        self._until(self._longest_silence_s(), gone.start)

        def refuse() -> None:
            network.refuse(successor.name, old.name)
            self._until(1.0, lambda: network.stop_refusing(successor.name, old.name))

        self._after(self._rng.random() * 0.2, refuse)
        self._until(3.0, lambda: network.slow_down(old.name, STORE, 0.0))
        return f"{gone.name} is killed, {successor.name} is refused by {old.name}, the controller, which is alive"

    # --- an operator

    def _leader_there_and_back(self) -> str | None:
        """The leader is moved to a replica that has got no records for a moment, and back before all have followed:
        what the first leader knew of the others is not so any more."""
        partition = self._rng.choice(self._world.partitions)
        image = self._world.stored.partitions.get(partition)
        if image is None or image.leader < 0 or len(image.isr) < 3:
            return None
        leader = image.leader
        successor, other = self._rng.sample([member for member in image.isr if member != leader], 2)
        self._world.operate(self._move_there_and_back(partition, leader, successor, other))
        return f"{partition}: the leader is moved from b{leader} to b{successor} and back"

    async def _move_there_and_back(self, partition: TopicPartition, leader: int, successor: int, other: int) -> None:
        operator, network = self._world.operator, self._world.network
        first, second, third = f"b{leader}", f"b{successor}", f"b{other}"
        network.slow_down(first, second, 1.0)
        await asyncio.sleep(0.2 + self._rng.random() * 0.6)
        is_moved = not self._is_over and await operator.move_leader(partition, (successor, leader, other))
        network.slow_down(first, second, 0.0)
        if not is_moved or self._is_over:
            return
        for link in ((first, third), (third, first)):
            network.slow_down(*link, 1.0)
        await asyncio.sleep(self._rng.random() * 0.2)
        if not self._is_over:
            await operator.move_leader(partition, (leader, successor, other))
            await asyncio.sleep(self._rng.random())
        for link in ((first, third), (third, first)):
            network.slow_down(*link, 0.0)

    def _move_replicas(self) -> str:
        """To other brokers, where there are more than replicas; and perhaps the operator thinks better of it."""
        partition = self._rng.choice(self._world.partitions)
        count = self._world.settings.replication_factor
        replicas = self._rng.sample(list(self._world.nodes), count)
        self._world.operate(self._move(partition, replicas, self._rng.random() < 0.3))
        return f"{partition} is moved to {', '.join(f'b{replica}' for replica in replicas)}"

    async def _move(self, partition: TopicPartition, replicas: list[int], is_cancelled: bool) -> None:
        operator = self._world.operator
        if await operator.reassign(partition, replicas) and is_cancelled:
            await asyncio.sleep(self._rng.random())
            await operator.reassign(partition, None)

    def _change_min_insync(self) -> str | None:
        """To what is often more than there are in sync, and seldom to one; for a while."""
        world = self._world
        topic, usual = world.partitions[0].topic, world.settings.min_insync_replicas
        count = min(self._rng.choice((1, 2, 2, 3, 3, 3)), world.settings.replication_factor)
        if not world.may_promise(count):
            return None
        world.operate(world.operator.set_min_insync(topic, count))
        self._until(self._longest_silence_s() * 2, lambda: world.operate(world.operator.set_min_insync(topic, usual)))
        return f"min.insync.replicas of {topic} is set to {count}"

    # --- the store

    def _elections_in_a_row(self) -> str | None:
        """Leaders change faster than followers get on, with ends of logs that only some have: who leads next got no
        records for a moment."""
        partition = self._rng.choice(self._world.partitions)
        image = self._world.stored.partitions.get(partition)
        if image is None or image.leader < 0 or len(image.isr) < 3 or not self._world.ensemble.is_up:
            return None
        leader = self._world.nodes[image.leader]
        successor = self._world.nodes[next(member for member in image.isr if member != image.leader)]
        network = self._world.network
        network.slow_down(leader.name, successor.name, 1.0)
        self._after(0.5, lambda: self._end_session_of(leader))

        def again() -> None:
            network.slow_down(leader.name, successor.name, 0.0)
            self._end_session_of(successor)

        self._after(0.6 + self._rng.random(), again)
        return f"{partition}: {leader.name} is deposed, then {successor.name}"

    def _end_session_of(self, node: Node) -> None:
        known = self._world.ensemble.tree.get(paths.broker_path(node.id))
        for session in self._world.ensemble.sessions:
            if known is not None and session.number == known.owner and self._world.ensemble.is_up:
                self._world.transcript.say("fault", f"the store ends the session of {node.name}")
                self._world.ensemble.end(session)

    def _stop_store(self) -> str | None:
        ensemble = self._world.ensemble
        if not ensemble.is_up:
            return None
        ensemble.is_up = False

        def return_to_service() -> None:
            self._world.transcript.say("fault", "the store is back")
            ensemble.return_to_service()

        self._until(self._longest_silence_s(), return_to_service)
        return "the store does not answer"

    def _expire_session(self) -> str | None:
        """Earlier than its time-out says: a server may do so."""
        sessions = self._world.ensemble.sessions
        if not sessions or not self._world.ensemble.is_up:
            return None
        session = self._rng.choice(sessions)
        self._world.ensemble.end(session)
        return f"the store ends session {session.number}"
