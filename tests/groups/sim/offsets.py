"""Committed offsets under random schedules: plain and transactional commits, deletions of topics, crashes, loads.

    python -m tests.groups.sim.offsets SEED      replays one schedule and prints what happens

The model is the log as a list of events beside what the metadata store knows: how often each topic was made. An offset
counts if its topic is the one of today, and its transaction, if it has one, has been committed. Whoever asks is
answered with what the model says, and only when all of it is durable.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.common.result import Result
from ottla.groups import records
from ottla.groups.config import GroupConfig
from ottla.groups.offset_requests import CommitTopic, FetchTopic, fetch_offset
from ottla.groups.offsets import CommittedOffset
from ottla.groups.records import Record
from ottla.groups.state import GroupState
from ottla.protocol.messages import OffsetCommitKey, OffsetCommitRequest, TxnOffsetCommitRequest
from tests.groups.desk import Desk, MemoryLog

TOPICS, GROUPS, PRODUCERS = ("a", "b"), ("g", "h"), (1, 2, 3)
Key = tuple[str, str]  # group and topic; each topic has one partition


class Event(NamedTuple):
    """What stands at one offset of the log. A marker has no key; a tombstone no offset."""

    key: Key | None
    offset: int | None
    incarnation: int
    producer: int = -1
    commit: bool | None = None


class OffsetLog(MemoryLog):
    """Knows markers too: an entry without a key."""

    def __init__(self, incarnations: dict[str, int]) -> None:
        super().__init__()
        self._incarnations = incarnations
        self.events: list[Event] = []

    def append(self, batch: Sequence[Record], producer: tuple[int, int] | None) -> int:
        offset = super().append(batch, producer)
        for key, value, _ in batch:
            if isinstance(key, OffsetCommitKey):
                number = None if value is None else value.offset  # type: ignore[attr-defined]
                producer_id = -1 if producer is None else producer[0]
                event = Event((key.group, key.topic), number, self._incarnations[key.topic], producer_id)
                self.events.append(event)
            else:
                self.events.append(Event(None, None, 0))
        return offset

    def append_marker(self, producer: int, commit: bool) -> None:
        self.entries.append((b"", b"c" if commit else b"a", producer))
        self.events.append(Event(None, None, 0, producer, commit))
        if not self.slow:
            self.durable = len(self.entries)

    def replay_into(self, state: GroupState) -> None:
        for offset, (key, value, producer_id) in enumerate(self.entries):
            if not key:
                state.end_transaction(producer_id, committed=value == b"c")
                continue
            record = records.deserialize(key, value)
            assert record is not None
            state.replay(record, offset, producer_id)

    def crash(self) -> None:
        del self.entries[self.durable :], self.events[self.durable :]
        self.waiting.clear()
        self.slow = self.broken = False


class OffsetWorld:
    def __init__(self, seed: int, say: Callable[[str], None] = lambda text: None) -> None:
        self.random = random.Random(seed)
        self.say = say
        self.incarnations = dict.fromkeys(TOPICS, 0)
        self.desk = Desk(GroupConfig(), dict.fromkeys(TOPICS, 1))
        self.log = OffsetLog(self.incarnations)
        self.desk.log = self.log
        self.desk.restart()
        self.numbers = 0
        # Questions that wait for the disk, with what the model said when they were asked.
        self.asked: list[tuple[Result, int | None]] = []
        self.asked_ever = 0
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (8, self.commit),
            (8, self.commit_in_transaction),
            (6, self.end_transaction),
            (6, self.delete_or_make_topic),
            (12, self.fetch),
            (3, self.crash),
            (2, self.disk_is_slow),
            (2, self.disk_fails),
            (4, self.pass_time),
        ]

    def run(self, steps: int) -> None:
        weights = [weight for weight, _ in self.steps]
        for step in self.random.choices([action for _, action in self.steps], weights, k=steps):
            step()
            self.check()
        self.log.broken = self.log.slow = False
        self.log.flush()
        self.desk.wait(1_000)
        self.check()
        assert not self.desk.state.forgetting

    # --- the model

    def expected(self, key: Key) -> int | None:
        """The last commit in the log that counts today."""
        open_: dict[int, list[tuple[int, Event]]] = {}
        found: tuple[int, int | None] = (-1, None)
        for place, event in enumerate(self.log.events):
            if event.commit is not None:
                for at, one in open_.pop(event.producer, []):
                    if event.commit and at > found[0]:
                        found = (at, one.offset)
            elif event.key == key and event.incarnation == self.incarnations[key[1]] and event.offset is not None:
                if event.producer < 0:
                    found = (place, event.offset)
                else:
                    open_.setdefault(event.producer, []).append((place, event))
        return found[1] if key[1] in self.desk.topics else None

    def check(self) -> None:
        for group in GROUPS:
            for topic in TOPICS:
                found, expected = self._look(self.desk.state, group, topic), self.expected((group, topic))
                assert found == expected, f"{group}/{topic} is {found}, not {expected}"
        for out, expected in list(self.asked):
            if out.error is not None:
                self.asked.remove((out, expected))
                assert out.error is ErrorCode.NONE and out.reply == expected

    # --- the schedule

    def _look(self, state: GroupState, group: str, topic: str) -> int | None:
        found = fetch_offset(state, group, FetchTopic(topic, ZERO_TOPIC_ID, [0]), 0, require_stable=False)
        return found.offset if isinstance(found, CommittedOffset) else None

    def _some(self) -> Key | None:
        if not self.desk.topics:
            return None
        return self.random.choice(GROUPS), self.random.choice(sorted(self.desk.topics))

    def commit(self) -> None:
        if (key := self._some()) is not None:
            self.numbers += 1
            code = self.desk.commit(self.numbers, group=key[0], topic=key[1])
            self.say(f"commit {key} {self.numbers}: {code.name}")

    def commit_in_transaction(self) -> None:
        if (key := self._some()) is None:
            return
        self.numbers += 1
        producer = self.random.choice(PRODUCERS)
        one = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=self.numbers)
        request = TxnOffsetCommitRequest(group_id=key[0], producer_id=producer, producer_epoch=0, generation_id=-1)
        with suppress(ApiError):
            self.desk.shard.commit_transactional(request, [CommitTopic(key[1], ZERO_TOPIC_ID, [one])])
        self.say(f"commit {key} {self.numbers} in a transaction of {producer}")

    def end_transaction(self) -> None:
        if self.log.broken:
            return
        producer, commit = self.random.choice(PRODUCERS), self.random.random() < 0.7
        self.say(f"{'commit' if commit else 'abort'} of {producer}")
        self.log.append_marker(producer, commit)
        self.desk.state.end_transaction(producer, committed=commit)

    def delete_or_make_topic(self) -> None:
        """The metadata store decides. Sometimes the broker dies before the coordinator has heard of it."""
        topic, topics = self.random.choice(TOPICS), dict(self.desk.topics)
        if topic not in topics:
            if self.log.slow:
                return  # the store takes as long to write the new topic as the disk for the tombstones
            topics[topic] = 1
            self.incarnations[topic] += 1
            self.say(f"topic {topic} is made")
            self.desk.set_topics(topics)
            return
        del topics[topic]
        self.say(f"topic {topic} is deleted")
        if self.random.random() < 0.2 and not self.desk.state.forgetting:
            self.desk.topics = topics
            self.crash()
        else:
            self.desk.set_topics(topics)
            self.desk.shard.forget_topics([topic])

    def fetch(self) -> None:
        if (key := self._some()) is None:
            return
        expected = self.expected(key)
        durable = self.log.durable == len(self.log.entries)
        out = self.desk.shard.read(lambda state: self._look(state, *key))
        assert (out.error is not None) == durable, "answered before it was on disk"
        self.asked.append((out, expected))
        self.asked_ever += 1

    def crash(self) -> None:
        """And a load, in the middle of which a topic may be deleted, and perhaps made again."""
        if any(topic in self.desk.topics for topic in self.desk.state.forgetting):
            return  # made again before its tombstones could be written: offsets do not say which topic they are of
        self.say("crash")
        self.log.crash()
        self.asked.clear()
        self.desk.shard = self.desk._make_shard()
        self.log.replay_into(self.desk.state)
        if self.desk.topics and self.random.random() < 0.4:
            topic, topics = self.random.choice(sorted(self.desk.topics)), dict(self.desk.topics)
            del topics[topic]
            self.say(f"topic {topic} is deleted while the log is read")
            self.desk.set_topics(topics)
            self.desk.shard.forget_topics([topic])
            if self.random.random() < 0.5:
                self.say("and made again")
                self.incarnations[topic] += 1
                self.desk.set_topics({**topics, topic: 1})
        self.desk.shard.loaded()

    def disk_is_slow(self) -> None:
        self.log.slow = not self.log.slow
        self.say("the disk is slow" if self.log.slow else "the disk is quick")
        if not self.log.slow:
            self.log.flush()

    def disk_fails(self) -> None:
        self.log.broken = not self.log.broken
        self.say("the disk fails" if self.log.broken else "the disk works")

    def pass_time(self) -> None:
        self.desk.wait(self.random.choice((100, 1_000)))


def run_seed(seed: int, steps: int = 60, say: Callable[[str], None] = lambda text: None) -> OffsetWorld:
    world = OffsetWorld(seed, say)
    world.run(steps)
    return world


if __name__ == "__main__":
    run_seed(int(sys.argv[1]), say=print)
