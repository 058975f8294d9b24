"""A coordinator, its log, its clients, and a schedule made of one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, State
from ottla.groups.config import ConsumerSettings, GroupConfig
from ottla.groups.consumer_group import ConsumerGroup
from ottla.groups.records import Record
from ottla.groups.state import GroupState
from ottla.protocol.codec import Message
from ottla.protocol.messages import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    JoinGroupResponse,
)
from tests.groups.desk import Desk, MemoryLog, image_of
from tests.groups.sim import invariants
from tests.groups.sim.clients import GROUP, ClassicClient, ConsumerClient, SimClient

MINUTE = 60_000
CLIENTS_MAX = 6


class CrashingLog(MemoryLog):
    """Loses what is not durable in a crash, refuses appends now and then, and watches the numbers in the records."""

    def __init__(self) -> None:
        super().__init__()
        self.has_lost = False
        self.numbers: dict[str, int] = {}

    def append(self, batch: Sequence[Record], producer: tuple[int, int] | None) -> int:
        self.has_lost |= self.broken
        offset = super().append(batch, producer)
        for record in batch:
            self._watch(record)
        return offset

    def _watch(self, record: Record) -> None:
        """Generations and epochs of a group only grow, also across its changes of protocol."""
        value = record.value
        if isinstance(value, GroupMetadataValue):
            name, number = record.key.group, value.generation  # type: ignore[attr-defined]
        elif isinstance(value, ConsumerGroupMetadataValue):
            name, number = record.key.group_id, value.epoch  # type: ignore[attr-defined]
        else:
            return
        assert number >= self.numbers.get(name, 0), f"{name} went back from {self.numbers[name]} to {number}"
        self.numbers[name] = number

    def crash(self) -> None:
        del self.entries[self.durable :]
        self.waiting.clear()
        self.slow = self.broken = False
        self.numbers.clear()
        for key, value, _ in self.entries:
            record = records.deserialize(key, value)
            if record is not None and isinstance(record.key, GroupMetadataKey | ConsumerGroupMetadataKey):
                self.numbers.clear()  # there is but one group
                self._watch(record)

    def compact(self) -> None:
        """Only the last record of each key stays; tombstones may go or stay."""
        last = {key: number for number, (key, _, _) in enumerate(self.entries)}
        self.entries = [one for number, one in enumerate(self.entries) if last[one[0]] == number]
        self.durable = len(self.entries)


class SimDesk(Desk):
    log: CrashingLog

    def _deliver(self, ticket: int, message: Message) -> None:
        """Looked at here, and not when a client gets round to it: by then the group may be gone and made anew."""
        super()._deliver(ticket, message)
        if isinstance(message, JoinGroupResponse) and not message.error_code:
            group = self.state.groups[GROUP]
            assert message.generation_id <= (group.epoch if isinstance(group, ConsumerGroup) else group.generation)


class World:
    def __init__(self, seed: int, say: Callable[[str], None] | None = None) -> None:
        self.random = random.Random(seed)
        self._say = say
        self._numbers = 0
        rules = self.random.choice(("classic", "consumer", "mixed"))
        self.kinds = {"classic": ["classic"], "consumer": ["consumer"], "mixed": ["classic", "consumer"]}[rules]
        self.is_cooperative = self.chance(0.5)
        self.loss = self.random.choice((0.0, 0.1))
        config = GroupConfig(
            initial_rebalance_delay_ms=self.random.choice((0, 3_000)),
            new_member_join_timeout_ms=MINUTE,
            consumer=ConsumerSettings(10_000, 2_000, self.random.choice((0, 1_000))),
        )
        self.names_ever = {"a": None, "b": None}
        self.desk = SimDesk(config, {"a": self.random.randint(1, 4), "b": self.random.randint(1, 3)})
        self.desk.log = CrashingLog()
        self.desk.restart()
        self.clients: list[SimClient] = []
        # Topic partition -> what its committed offset may be: the last one acknowledged, or one that was tried since.
        self.commits: dict[tuple[str, int], list[int | None]] = {}
        self._mirror = self._fresh_mirror()
        self._mirrored = 0
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (30, self._pass_time),
            (6, self._client_comes),
            (3, self._client_goes),
            (3, self._client_dies),
            (4, self._client_pauses),
            (5, self._client_returns),
            (8, self._commit),
            (4, self._commit_as_zombie),
            (2, self._change_topics),
            (2, self._crash),
            (2, self._disk_fails),
            (2, self._disk_is_slow),
            (1, self._delete_group),
            (1, self._expire),
        ]

    # --- for clients

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, text: str) -> None:
        if self._say is not None:
            self._say(f"{self.desk.clock.monotonic_ms():>8} {text}")

    def take_answer(self, ticket: int) -> Any | None:
        return self.desk.answers.pop(ticket, None)

    # --- the schedule

    def run(self, steps: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._client_comes()
        weights = [weight for weight, _ in self.steps]
        for step in self.random.choices([action for _, action in self.steps], weights, k=steps):
            step()
            self._everybody_works()
            invariants.check(self)
        self._calm_down()

    def _everybody_works(self) -> None:
        for client in self.clients:
            if client.is_alive and not client.is_paused and self.chance(0.8):
                client.tick()

    def _pass_time(self) -> None:
        self.desk.wait(self.random.choice((100, 1_000, 2_000, 4_000)))

    def _some(self, *, paused: bool = False) -> SimClient | None:
        found = [one for one in self.clients if one.is_alive and one.is_paused == paused]
        return self.random.choice(found) if found else None

    def _client_comes(self) -> None:
        living = [one for one in self.clients if one.is_alive]
        if len(living) >= CLIENTS_MAX:
            return
        name = f"c{self.next_number()}"
        topics = self.random.choice((("a",), ("b",), ("a", "b"), ("a", "b")))
        instance = None
        if self.chance(0.25):
            taken = {one.instance for one in living}
            free = [one for one in ("i1", "i2", "i3") if one not in taken]
            instance = self.random.choice(free) if free else None
        if self.random.choice(self.kinds) == "classic":
            client: SimClient = ClassicClient(self, name, topics, instance, is_cooperative=self.is_cooperative)
        else:
            regex = self.random.choice((None, None, "[ac].*"))
            client = ConsumerClient(self, name, topics, instance, regex=regex)
        self.clients.append(client)
        client.say(f"comes as {client.kind}, reads {topics}{' as ' + instance if instance else ''}")

    def _client_goes(self) -> None:
        client = self._some()
        if client is not None:
            client.say("leaves")
            client.leave()
            client.is_alive = False

    def _client_dies(self) -> None:
        client = self._some()
        if client is not None:
            client.say("dies")
            client.lose_everything()
            client.is_alive = False

    def _client_pauses(self) -> None:
        client = self._some()
        if client is not None:
            client.say("is paused")
            client.is_paused = True

    def _client_returns(self) -> None:
        client = self._some(paused=True)
        if client is not None:
            client.say("goes on")
            client.is_paused = False

    # --- commits

    def _commit(self) -> None:
        client = self._some()
        if client is None or not client.owned:
            return
        topic = self.random.choice(sorted(client.owned))
        if client.owned[topic]:
            self._commit_for(client, topic, self.random.choice(client.owned[topic]), client.epoch)

    def _commit_as_zombie(self) -> None:
        """With an epoch, or for a partition, that may not be the member's any more."""
        if self.clients:
            client = self.random.choice(self.clients)
            epoch = max(0, client.epoch - self.random.randint(0, 2))
            self._commit_for(client, self.random.choice(("a", "b")), self.random.randint(0, 3), epoch)

    def _commit_for(self, client: SimClient, topic: str, partition: int, epoch: int) -> None:
        if topic not in self.desk.topics:
            return  # the broker refuses it before the coordinator hears of it
        offset = self.next_number()
        may = self._may_commit(client, topic, partition, epoch)
        log = self.desk.log
        size = len(log.entries)
        error = self.desk.commit(
            offset, topic=topic, partition=partition, member_id=client.member_id, epoch=epoch, instance=client.instance
        )
        has_written = len(log.entries) > size
        assert has_written <= may, f"{client.name} must not commit {topic}-{partition} with {epoch}"
        if may and not log.broken:
            assert error is ErrorCode.NONE, error
        if has_written:
            allowed = self.commits.setdefault((topic, partition), [None])
            if log.slow:
                allowed.append(offset)  # not acknowledged yet
            else:
                self.commits[topic, partition] = [offset]
            client.say(f"commits {topic}-{partition} at {offset}")

    def _may_commit(self, client: SimClient, topic: str, partition: int, epoch: int) -> bool:
        group = self.desk.state.groups.get(GROUP)
        if group is None or client.member_id not in group.members:
            return False
        if isinstance(group, ClassicGroup):
            static = group.static_ids.get(client.instance or "")
            is_fenced = client.instance is not None and static != client.member_id
            return epoch == group.generation and group.state is not State.COMPLETING and not is_fenced
        member = group.members[client.member_id]
        if epoch == member.epoch:
            return True
        found = self.desk.state.image.topics.get(topic)
        since = None if found is None else member.owned_since(found.id, partition)
        return epoch < member.epoch and since is not None and since <= epoch

    # --- the world around

    def _change_topics(self) -> None:
        topics = dict(self.desk.topics)
        what = self.random.choice(("grow", "grow", "new", "delete"))
        if what == "grow" and topics:
            topics[self.random.choice(sorted(topics))] += 1
        elif what == "new":
            name = self.random.choice(("a", "b", "c", "c2"))
            topics.setdefault(name, self.random.randint(1, 3))
            self.names_ever[name] = None
        elif topics:
            gone = self.random.choice(sorted(topics))
            del topics[gone]
            self.desk.log.broken = False
            self.desk.shard.forget_topics([gone])
            for key in [one for one in self.commits if one[0] == gone]:
                self._forget(key)
            for client in self.clients:
                client.topic_is_gone(gone)
        self.say(f"topics are {topics}")
        self.desk.set_topics(topics)

    def _forget(self, key: tuple[str, int]) -> None:
        self.commits[key] = [*self.commits[key], None] if self.desk.log.slow else [None]

    def _crash(self) -> None:
        self.say("the coordinator crashes")
        self.desk.log.crash()
        if self.chance(0.5):
            self.desk.log.compact()
        self.desk.answers.clear()
        self.desk.restart()
        self._mirror = self._fresh_mirror()
        self._mirrored = 0
        for topic, partition in self.commits:
            found = self.desk.committed(topic=topic, partition=partition)
            assert found in self.commits[topic, partition], f"{topic}-{partition} was {self.commits}, is {found}"
            self.commits[topic, partition] = [found]
        for client in self.clients:
            client.on_coordinator_restart()

    def _disk_fails(self) -> None:
        self.desk.log.broken = not self.desk.log.broken
        self.say("the disk fails" if self.desk.log.broken else "the disk works")

    def _disk_is_slow(self) -> None:
        log = self.desk.log
        if log.slow:
            log.slow = False
            log.flush()
            for key, allowed in self.commits.items():
                self.commits[key] = allowed[-1:]
        else:
            log.slow = True
        self.say("the disk is slow" if log.slow else "the disk is quick")

    def _delete_group(self) -> None:
        log = self.desk.log
        if log.slow or log.broken or self.chance(0.7):
            return
        if self.desk.shard.delete_group(GROUP).reply is ErrorCode.NONE:
            self.say("the group is deleted")
            self._group_is_gone()

    def _group_is_gone(self) -> None:
        self.desk.log.numbers.pop(GROUP, None)
        for key in self.commits:
            self._forget(key)

    def _expire(self) -> None:
        log = self.desk.log
        if log.slow or log.broken:
            return
        before = GROUP in self.desk.state.groups
        self.desk.shard.expire(GROUP, self.desk.clock.now_ms())
        if before and GROUP not in self.desk.state.groups:
            self.say("the group has expired")
            self._group_is_gone()

    # --- replay beside the live state

    def _fresh_mirror(self) -> GroupState:
        return GroupState(self.desk.config, lambda: "", image_of(self.desk.topics))

    def mirror(self) -> GroupState:
        entries = self.desk.log.entries
        for offset in range(self._mirrored, len(entries)):
            key, value, producer_id = entries[offset]
            record = records.deserialize(key, value)
            assert record is not None
            self._mirror.replay(record, offset, producer_id)
        self._mirrored = len(entries)
        return self._mirror

    # --- the end

    def _calm_down(self) -> None:
        """When nothing changes any more, everybody is answered and every partition has its reader."""
        self.say("--- calm")
        log = self.desk.log
        log.broken = False
        if log.slow:
            self._disk_is_slow()
        self.loss = 0.0
        for client in self.clients:
            if client.is_paused:
                client.is_paused = False
        for _ in range(150):
            self.desk.wait(1_000)
            for client in self.clients:
                if client.is_alive:
                    client.tick()
            invariants.check(self)
            if self._problem() is None:
                return
        raise AssertionError(self._problem())

    def _problem(self) -> str | None:
        """What keeps us from saying that the group has come to rest as it should."""
        living = [one for one in self.clients if one.is_alive]
        group = self.desk.state.groups.get(GROUP)
        if not living:
            return None if group is None or group.is_empty else "nobody is there and the group is not empty"
        for one in living:
            if not one.is_settled:
                return f"{one.name} has not come to rest"
        if group is None or group.state_name != "Stable":
            return f"the group is {None if group is None else group.state_name}"
        if sorted(group.members) != sorted(one.member_id for one in living):
            return f"members are {sorted(group.members)}"
        read = {topic for one in living for topic in self._topics_of(one)}
        every = sorted((topic, number) for topic in read for number in range(self.desk.topics[topic]))
        owned = sorted((topic, one) for client in living for topic, parts in client.owned.items() for one in parts)
        return None if owned == every else f"{owned} is read, not {every}"

    def _topics_of(self, client: SimClient) -> list[str]:
        if isinstance(client, ConsumerClient) and client.regex is not None:
            return [name for name in self.desk.topics if name[0] in "ac"]
        return [name for name in client.topics if name in self.desk.topics]


def run_seed(seed: int, steps: int = 40, say: Callable[[str], None] | None = None) -> None:
    try:
        World(seed, say).run(steps)
    except (AssertionError, ApiError, LookupError) as error:
        raise AssertionError(
            f"seed {seed}: {error!r}; replay with: python -m tests.groups.sim {seed} {steps}"
        ) from error
