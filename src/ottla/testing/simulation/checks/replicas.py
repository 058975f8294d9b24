"""After every event: what the broker that acted has in its logs, and what it believes to lead.

- Below its watermark a replica has what is committed, byte for byte. A leader's watermark commits, others follow.
- Who is in sync, or eligible to lead (KIP-966), has everything that is committed: as the store has it, which is the
  truth. Unless its machine went down since.
- Nothing is deleted but what somebody wanted deleted.
- A leader epoch has one leader: one process.
- Who begins to lead has everything that is committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.common.ids import TopicPartition
from ottla.metadata.image import ClusterImage, PartitionImage, Registration
from ottla.storage.log import Log
from ottla.testing.simulation.checks.committed import CommittedLog
from ottla.testing.simulation.checks.lives import as_brokers_call_it, life_of
from ottla.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.testing.simulation.node import Node


class _Seen(NamedTuple):
    """Of one log, at the last event of its broker."""

    log: Log
    end: int
    watermark: int
    # Up to this byte it is what is committed.
    same: int


class Replicas:
    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedLog] = {}
        # As the store has them.
        self.partitions: dict[TopicPartition, PartitionImage] = {}
        self._seen: dict[tuple[int, TopicPartition], _Seen] = {}
        # What each broker had at its last event: itself, its image, and of its logs, in their order, end and watermark.
        self._last: dict[int, tuple[Broker, ClusterImage, list[tuple[Log, int, int]]]] = {}
        # Of each partition and leader epoch: which start of which broker.
        self._leaders: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        # Below these offsets records may be deleted: somebody has asked for it.
        self._deletable: dict[TopicPartition, int] = {}
        # Brokers whose machine went down, with the registration they had: by that one they need not have anything.
        self._lost: dict[int, int] = {}

    def of(self, partition: TopicPartition) -> CommittedLog:
        if partition not in self.committed:
            self.committed[partition] = CommittedLog(str(partition))
        return self.committed[partition]

    # --- brokers

    def look_at(self, node: Node) -> None:
        # Of most events nothing comes that could be wrong, and this is asked after every one of them: what is the same
        # as before is passed over at once. Who leads changes with the image alone.
        broker, last = node.broker, self._last.get(node.id)
        if last is not None and last[0] is broker and last[1] is broker.topics.image:
            logs, then = broker.logs.logs, last[2]
            if len(logs) == len(then):
                for log, (known, end, watermark) in zip(logs.values(), then, strict=True):
                    if log is not known or log.log_end_offset != end or log.high_watermark != watermark:
                        break
                else:
                    return
        if broker is not None and broker.has_services and node.id not in self._lost:
            # (What a lost one has counts when the controller has taken it in, knowing what happened.)
            self._look_closer(node, broker)

    def _look_closer(self, node: Node, broker: Broker) -> None:
        leading = set()
        for led in broker.partitions:
            partition = life_of(TopicPartition(led.topic, led.index), led.log.topic_id)
            if partition is None:
                continue
            leading.add(partition)
            self._note_leader(node, partition, led.leader_epoch, led.log)
        logs = broker.logs.logs
        for name, log in logs.items():
            partition = life_of(name, log.topic_id)
            if partition is None:
                continue
            if log.log_start_offset > self._deletable.get(partition, 0):
                raise Violation(
                    "records deleted that nobody wanted deleted",
                    f"{node.name}: {partition} begins at {log.log_start_offset}",
                )
            seen = self._seen.get((node.id, partition))
            if seen is None or seen.log is not log:
                seen = _Seen(log, log.log_end_offset, -1, 0)
            if seen.end != log.log_end_offset or seen.watermark != log.high_watermark:
                self._compare(node, partition, log, seen, is_leader=partition in leading)
        has = [(log, log.log_end_offset, log.high_watermark) for log in logs.values()]
        self._last[node.id] = broker, broker.image, has

    def _compare(self, node: Node, partition: TopicPartition, log: Log, seen: _Seen, *, is_leader: bool) -> None:
        committed, end, watermark = self.of(partition), log.log_end_offset, log.high_watermark
        if watermark > end:
            raise Violation("watermark above the log", f"{node.name}: {partition} has {watermark}, its end is {end}")
        same = min(seen.same, committed.byte_end(end)) if end < seen.end else seen.same
        if watermark > committed.end_offset:
            if not is_leader:
                raise Violation(
                    "follower's watermark ahead",
                    f"{node.name}: {partition} at {watermark}, {committed.end_offset} is committed",
                )
            same = committed.compare(log, same, committed.end_offset, node.name)
            committed.extend(log, watermark, node.name)
            same = len(committed.data)
            self._seen[node.id, partition] = _Seen(log, end, watermark, same)
            self._check_members(partition, node.world.nodes.values())
            return
        same = committed.compare(log, same, watermark, node.name)
        self._seen[node.id, partition] = _Seen(log, end, watermark, same)
        if end < seen.end:
            self._check_members(partition, [node])

    def _note_leader(self, node: Node, partition: TopicPartition, epoch: int, log: Log) -> None:
        start = (node.id, node.starts)
        known = self._leaders.get((partition, epoch))
        if known == start:
            return
        if known is not None:
            raise Violation(
                "one leader per epoch",
                f"{partition}: epoch {epoch} is led by b{known[0]} (start {known[1]}) and {node.name}",
            )
        self._leaders[partition, epoch] = start
        node.say(f"leads {partition} in epoch {epoch} from {log.log_end_offset} on, watermark {log.high_watermark}")
        current = self.partitions.get(partition)
        # One that was deposed before it began has nothing to say, and will not be followed.
        if current is not None and current.leader_epoch == epoch:
            self._has_all(node, partition, log, "leads")

    def _has_all(self, node: Node, partition: TopicPartition, log: Log, what: str) -> None:
        committed = self.of(partition)
        if log.log_end_offset < committed.end_offset:
            raise Violation(
                "committed records lost",
                f"{node.name} {what} {partition} and ends at {log.log_end_offset}, {committed.end_offset} is committed",
            )
        committed.compare(log, 0, committed.end_offset, node.name)

    def may_delete(self, partition: TopicPartition, offset: int) -> None:
        """Somebody is about to ask that records below this are deleted."""
        self._deletable[partition] = max(offset, self._deletable.get(partition, 0))

    # --- the store

    def power_cut(self, node: Node, epoch: int) -> None:
        """`epoch` is that of its registration."""
        self._lost[node.id] = epoch
        self._last.pop(node.id, None)

    def is_lossy(self, node_id: int) -> bool:
        return node_id in self._lost

    def forget_topic(self, topic: str) -> None:
        """It was deleted."""
        for partition in [one for one in self.partitions if as_brokers_call_it(one).topic == topic]:
            del self.partitions[partition]

    def note_store(
        self,
        partitions: dict[TopicPartition, PartitionImage],
        registrations: dict[int, Registration],
        nodes: Iterable[Node],
    ) -> None:
        """These have changed, all at once."""
        self.partitions.update(partitions)
        for broker, registration in registrations.items():
            if registration.is_active and registration.epoch > self._lost.get(broker, registration.epoch):
                # What it has lost was dealt with: it counts where it is in sync from now on.
                del self._lost[broker]
        for partition in self.partitions if registrations else partitions:
            self._check_members(partition, nodes)

    def _check_members(self, partition: TopicPartition, nodes: Iterable[Node]) -> None:
        image = self.partitions.get(partition)
        if image is None:
            return
        end = self.of(partition).end_offset
        for node in nodes:
            if node.id not in image.isr and node.id not in image.elr:
                continue
            if node.id in self._lost or node.broker is None or not node.broker.has_logs:
                continue
            log = node.broker.logs.logs.get(as_brokers_call_it(partition))
            if log is None or life_of(log.topic_partition, log.topic_id) != partition:
                continue
            where = "in sync" if node.id in image.isr else "eligible"
            if log.log_end_offset < end:
                raise Violation(
                    "in sync without all that is committed",
                    f"{node.name} is {where} for {partition} with {log.log_end_offset}, {end} is committed",
                )
            self._compare_all(node, partition, log, f"{node.name}, which is {where}")

    def _compare_all(self, node: Node, partition: TopicPartition, log: Log, whose: str) -> None:
        """With what it was not compared with before. A log that is as long may have gone another way."""
        committed, seen = self.of(partition), self._seen.get((node.id, partition))
        if seen is None or seen.log is not log:
            seen = _Seen(log, log.log_end_offset, -1, 0)
        if seen.same < len(committed.data):
            same = committed.compare(log, seen.same, committed.end_offset, whose)
            self._seen[node.id, partition] = seen._replace(same=same)
