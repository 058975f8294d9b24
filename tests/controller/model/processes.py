"""Brokers as processes that know less than the store: each has the image that it saw last, and logs that outlive it.

They do what `replication` does, in its simplest form: leaders append, followers cut off what differs and copy, a leader
commits what everybody in sync has, by the ISR it knows of and the one it has asked for. What they get wrong by an old
image, the controller must make harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.metadata.image import ClusterImage, PartitionImage
from tests.controller.model.ghost import Ghost, Record, common


class Key(NamedTuple):
    topic: str
    index: int


class Ack(NamedTuple):
    broker_epoch: int
    offset: int


@dataclass
class Leadership:
    leader_epoch: int
    # Its log's end when it began to lead: who joins the ISR must have all before it.
    start: int
    acks: dict[int, Ack] = field(default_factory=dict)
    # Of the proposal that is under way, one at a time: they count as in sync too, until its end is known.
    pending: set[int] = field(default_factory=set)
    # The partition epoch that it names; None while there is none.
    proposed_at: int | None = None
    high_watermark: int = 0

    def end_proposal(self) -> None:
        self.pending, self.proposed_at = set(), None


class Process:
    def __init__(self, broker: int) -> None:
        self.id = broker
        self.logs: dict[Key, list[Record]] = {}
        # That of its registration; None while it does not run.
        self.epoch: int | None = None
        self.view = ClusterImage("cluster")
        self.leading: dict[Key, Leadership] = {}
        # Directories that failed: nothing is served from there until the next start.
        self.failed: set[Key] = set()
        # What the next registration must say.
        self.may_have_lost_records = False
        # Its log directory: the number of it, and replicas that were made anew in it and were not in sync since.
        self.disk = 0
        self.emptied: set[Key] = set()

    @property
    def is_taken_in(self) -> bool:
        """As far as it knows."""
        known = self.view.brokers.get(self.id)
        return self.epoch is not None and known is not None and known.epoch == self.epoch

    def log(self, key: Key) -> list[Record]:
        return self.logs.setdefault(key, [])

    def die(self) -> None:
        self.epoch, self.leading = None, {}
        self.may_have_lost_records |= bool(self.failed)
        self.failed = set()

    def see(self, image: ClusterImage) -> None:
        self.view = image
        for key in list(self.logs):
            if self.id not in self.partition(key).replicas:
                del self.logs[key]
        if self.is_taken_in:
            self.emptied = {key for key in self.emptied if self.id not in self.partition(key).isr}
        leading = {}
        for name, topic in image.topics.items():
            for index, partition in enumerate(topic.partitions):
                key = Key(name, index)
                if not self.is_taken_in or partition.leader != self.id or key in self.failed:
                    continue
                known = self.leading.get(key)
                if known is None or known.leader_epoch != partition.leader_epoch:
                    known = Leadership(partition.leader_epoch, len(self.log(key)))
                elif known.proposed_at is not None and partition.partition_epoch > known.proposed_at:
                    known.end_proposal()  # it is refused from now on, or was carried out
                leading[key] = known
        self.leading = leading

    def partition(self, key: Key) -> PartitionImage:
        return self.view.topics[key.topic].partitions[key.index]

    def follow(self, key: Key, leader: Process, most: int) -> None:
        """One fetch: what the follower had when it asked is acknowledged; what it gets is not yet."""
        leadership = leader.leading.get(key)
        if not self.is_taken_in or leadership is None or key in self.failed or self.epoch is None:
            return
        if key.topic not in self.view.topics:
            return
        mine, theirs = self.partition(key), leader.view.brokers.get(self.id)
        if self.id not in mine.replicas or mine.leader_epoch != leadership.leader_epoch or mine.leader != leader.id:
            return
        if self.id not in leader.partition(key).replicas:
            return
        log, source = self.log(key), leader.log(key)
        del log[common(log, source) :]
        if theirs is not None and theirs.epoch == self.epoch:
            leadership.acks[self.id] = Ack(self.epoch, len(log))
        log += source[len(log) : len(log) + most]

    def commit(self, key: Key, ghost: Ghost, min_insync: int) -> None:
        leadership, partition, log = self.leading[key], self.partition(key), self.log(key)
        if len(partition.isr) < min(min_insync, len(partition.replicas)):
            return
        nothing = Ack(-1, 0)
        others = (set(partition.isr) | leadership.pending) - {self.id}
        end = min([len(log), *(leadership.acks.get(member, nothing).offset for member in others)])
        if end > leadership.high_watermark:
            leadership.high_watermark = end
            ghost.commit(log, leadership.high_watermark, leadership.leader_epoch)

    def caught_up(self, key: Key) -> dict[int, int]:
        """Who may be in sync, by broker epoch."""
        leadership = self.leading[key]
        enough = max(leadership.high_watermark, leadership.start)
        return {broker: ack.broker_epoch for broker, ack in leadership.acks.items() if ack.offset >= enough}
