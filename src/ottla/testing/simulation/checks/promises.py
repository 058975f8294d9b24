"""What clients were told, held against what is committed: when they are told, and at the end.

- What was acknowledged with acks=all is committed, at that offset, with those values.
- Of each idempotent producer every record is there once, in order.
- The end of a partition, as clients are told it, never goes back.
- What a producer does after another one has got its transactional id is refused.
- Who reads committed records sees transactions whole or not at all, and none that was aborted.
- Offsets of a group that were acknowledged are there; those of a member whose generation is over are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ottla.common.ids import TopicPartition
from ottla.testing.simulation.checks.replicas import Replicas
from ottla.testing.simulation.checks.violation import Violation

# The type of a marker, in its key.
_COMMIT = b"\x00\x01"


class Promises:
    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        # By producer and partition: how many records were sent and how many acknowledged, in order.
        self._sent: dict[tuple[str, TopicPartition], list[bytes]] = defaultdict(list)
        self._acknowledged: dict[tuple[str, TopicPartition], int] = defaultdict(int)
        self._ends: dict[TopicPartition, tuple[int, int]] = {}
        self.acks = 0
        # Transactions by their number: the values in each partition, and how they ended; None: that is not known.
        self.transactions: dict[str, tuple[dict[TopicPartition, list[bytes]], bool | None]] = {}
        # What readers of committed records were given.
        self.read_committed: set[bytes] = set()
        # By transactional id: the producer ids, and epochs, that were given out.
        self._identities: dict[str, set[tuple[int, int]]] = defaultdict(set)
        # Acknowledged, by the epoch of their coordinator: the largest of those that it knows of.
        self._offsets: dict[tuple[str, TopicPartition], dict[int, int]] = defaultdict(dict)
        self._last_sent: dict[tuple[str, TopicPartition], int] = defaultdict(int)
        # The last generation of each group that anybody knows of.
        self._generations: dict[str, int] = {}
        # Sent, and never answered: they may be there, now or later.
        self._in_doubt: dict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
        self.commits = 0

    # --- producers

    def sent(self, producer: str, partition: TopicPartition, values: list[bytes]) -> None:
        self._sent[producer, partition] += values

    def acknowledged(self, producer: str, partition: TopicPartition, offset: int, values: list[bytes]) -> None:
        """`offset` is -1 where a duplicate was acknowledged."""
        self.acks += 1
        self._acknowledged[producer, partition] += len(values)
        if offset < 0:
            return
        committed = self._replicas.of(partition)
        if committed.end_offset < offset + len(values):
            raise Violation(
                "acknowledged before it was committed",
                f"{producer}: {partition} at {offset}, {committed.end_offset} is committed",
            )
        for at, value in enumerate(values, offset):
            if not committed.has(at, value):
                have = committed.value_at(at)
                raise Violation("acknowledged record lost", f"{producer}: {partition} at {at} is {have}, not {value!r}")

    # --- readers

    def told_end(self, partition: TopicPartition, epoch: int, offset: int, asked_after: tuple[int, int]) -> None:
        """`asked_after` is what was known, of `end_of`, when the question was asked."""
        if epoch >= asked_after[0] and offset < asked_after[1]:
            raise Violation(
                "watermark went back", f"{partition} ended at {asked_after[1]}, later at {offset} in epoch {epoch}"
            )
        known = self.end_of(partition)
        self._ends[partition] = (max(known[0], epoch), max(known[1], offset))

    def end_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The largest leader epoch, and the largest end, that anybody was told."""
        return self._ends.get(partition, (-1, 0))

    def read(self, partition: TopicPartition, offset: int, value: bytes | None, who: str) -> None:
        """A record that somebody was given."""
        committed = self._replicas.of(partition)
        if not committed.has(offset, value):
            have = committed.value_at(offset)
            raise Violation(
                "one value per offset", f"{who} read {value!r} at {offset} of {partition}; committed is {have}"
            )

    # --- transactions

    def identified(self, transactional_id: str, identity: tuple[int, int]) -> None:
        """Somebody was given this producer id and epoch."""
        given = self._identities[transactional_id]
        if identity in given:
            raise Violation("identity given out twice", f"{transactional_id}: producer and epoch {identity}")
        given.add(identity)

    def last_identity(self, transactional_id: str) -> tuple[int, int]:
        return max(self._identities[transactional_id], default=(-1, -1))

    def taken_from(self, who: str, identity: tuple[int, int], last: tuple[int, int], what: str) -> None:
        """`last` is the last identity that anybody was known to have when this was asked for."""
        if identity < last:
            raise Violation("zombie not fenced", f"{who}: {what} was taken of {identity}, {last} was given out")

    # --- groups

    def next_offset(self, group: str, partition: TopicPartition) -> int:
        """Larger than any before; it is sent now."""
        self._last_sent[group, partition] += 1
        offset = self._last_sent[group, partition]
        self._in_doubt[group, partition].add(offset)
        return offset

    def committed_offset(
        self, group: str, partition: TopicPartition, offset: int, generation: int, last: int, epoch: int
    ) -> None:
        """By a member of this generation, or -1; `last` was the last that was known when it was asked for. `epoch` is
        that of the coordinator, or a later one."""
        if 0 <= generation < last:
            raise Violation(
                "old generation not refused",
                f"{group}: {offset} of {partition} was taken of generation {generation}, {last} has begun",
            )
        self.commits += 1
        self._in_doubt[group, partition].discard(offset)
        of_epochs = self._offsets[group, partition]
        of_epochs[epoch] = max(of_epochs.get(epoch, -1), offset)

    def synced(self, group: str, generation: int) -> None:
        """A member was told what is its own in this generation."""
        self._generations[group] = max(self.generation(group), generation)

    def generation(self, group: str) -> int:
        return self._generations.get(group, -1)

    def acknowledged_offset(self, group: str, partition: TopicPartition, epoch: int | None) -> int:
        """Known to a coordinator of this epoch; None: it is not known of which it is."""
        if epoch is None:
            return -1
        return max((offset for at, offset in self._offsets[group, partition].items() if at <= epoch), default=-1)

    def found_offset(self, group: str, partition: TopicPartition, offset: int, at_least: int) -> None:
        if offset > self._last_sent[group, partition]:
            raise Violation("offset that nobody committed", f"{group}: {partition} is at {offset}")
        if offset < at_least and offset not in self._in_doubt[group, partition]:
            raise Violation(
                "committed offset lost", f"{group}: {partition} is at {offset}, {at_least} was acknowledged"
            )

    # --- at the end

    def check_all(self) -> None:
        by_producer = self._values_by_producer()
        for (producer, partition), sent in self._sent.items():
            found = by_producer.get((producer, partition), [])
            acknowledged = self._acknowledged[producer, partition]
            if found != sent[: len(found)]:
                raise Violation("order of a producer", f"{producer} in {partition}: {_difference(found, sent)}")
            if len(found) < acknowledged:
                raise Violation(
                    "acknowledged record lost", f"{producer} in {partition}: {len(found)} of {acknowledged} are there"
                )

    def check_transactions(self) -> None:
        visible = set(self._visible())
        for name, (values, is_committed) in self.transactions.items():
            parts = {value in visible for of_partition in values.values() for value in of_partition}
            if len(parts) > 1:
                raise Violation("transaction torn", f"{name}: only a part of it can be read")
            if is_committed is not None and parts != {is_committed}:
                was = "committed and cannot be read" if is_committed else "aborted and can be read"
                raise Violation("transaction not as it ended", f"{name} was {was}")
            if parts == {False}:
                for value in (value for of_partition in values.values() for value in of_partition):
                    if value in self.read_committed:
                        raise Violation("aborted record read", f"{name}: somebody has read {value.decode()}")

    def _visible(self) -> Iterator[bytes]:
        """What was committed by a marker, which is all that ends a transaction."""
        for partition, committed in self._replicas.committed.items():
            if partition.topic.startswith("__"):
                continue
            pending: dict[int, list[bytes]] = defaultdict(list)
            for header, records in committed.batches():
                if header.is_control:
                    values = pending.pop(header.producer_id, [])
                    if records[0].key is not None and records[0].key[2:4] == _COMMIT:
                        yield from values
                elif header.is_transactional:
                    pending[header.producer_id] += [record.value or b"" for record in records]

    def _values_by_producer(self) -> dict[tuple[str, TopicPartition], list[bytes]]:
        found: dict[tuple[str, TopicPartition], list[bytes]] = defaultdict(list)
        for partition, committed in self._replicas.committed.items():
            if partition.topic.startswith("__"):
                continue
            for header, records in committed.batches():
                if header.is_control:
                    continue
                for record in records:
                    value = record.value or b""
                    found[value.partition(b" ")[0].decode(), partition].append(value)
        return found


def _difference(found: list[bytes], sent: list[bytes]) -> str:
    for index, (have, want) in enumerate(zip(found, sent, strict=False)):
        if have != want:
            return f"record {index} is {have.decode()}, not {want.decode()}"
    return f"{len(found)} records, {len(sent)} were sent"
