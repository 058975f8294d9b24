"""Ranges of offsets as fetched bytes, in bounded memory, whatever the cluster does meanwhile.

All ranges that one broker leads are fetched together, in requests of at most `fetch_bytes_max`. The next request goes
out before the caller gets what the last one brought, so the broker reads while the caller decodes: at most two answers
are in memory. When a leader moves or a broker restarts, reading goes on after the last batch that arrived.

An answer without records says little: a broker that throttles gives one, and one whose records are in remote storage
and take too long. Nothing is left of a range, because it was cleaned away, only if its partition was asked for alone,
the log goes on past the range, and the leader has that part of it on its own disk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.cluster import Absent
from ottla.client.connection import BrokerConnection, Sent
from ottla.client.lookup import EARLIEST, EARLIEST_LOCAL, LATEST, MISSING_TOPIC_TIMEOUT_S, ClusterReader
from ottla.client.retrying import Deadline, as_sentence
from ottla.client.settings import ClientSettings
from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import ClientFailure, Failure, Retriable, check
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition, by_topic
from ottla.kernel.decode import fetched_until
from ottla.protocol.messages import FetchRequest

# The last version that names topics: from the next one on they have ids.
NAMES_UNTIL = 12
_WAIT_MS_MAX = 500
_ANOTHER_TOPIC = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
_EARLIEST_LOCAL_SINCE = 8


class OffsetRange(NamedTuple):
    """Offsets `start` <= x < `end` of one partition.

    With an id it is this topic that is read and no other of its name, wherever the broker knows ids."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: TopicId | None = None

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.end - self.start


class Fetched(NamedTuple):
    """What one answer brought of one range: decode from `start`, which the first batch may lie before."""

    range: OffsetRange
    start: int
    records: Any
    aborted: list[tuple[int, int]]


class DataLoss(ClientFailure):
    """Offsets that were to be read are not there any more."""

    failure = Failure.DATA


class UnreadableRecords(ClientFailure):
    """Records are there, but their bytes are not what they should be, or more than can be read."""

    failure = Failure.DATA


OnLoss = Callable[[str], None]


class Unidentified(Retriable):
    """The broker has no topic of this id: it does not know it yet, or the topic is gone."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"the cluster does not know topic {topic} by its id.")
        self.topic = topic


class _Progress:
    """One range on its way."""

    def __init__(self, wanted: OffsetRange) -> None:
        self.range = wanted
        self.position = wanted.start

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end


def fetch_ranges(reader: ClusterReader, ranges: Sequence[OffsetRange], on_loss: OnLoss) -> Generator[Fetched]:
    """All of these ranges, each of another partition. `on_loss` hears one sentence about what is gone: it raises, or
    what is left is read. Raises OttlaError."""
    waiting = {wanted.where: _Progress(wanted) for wanted in ranges if wanted.size > 0}
    # Whoever named the ranges has met the cluster: a task that begins while a broker restarts waits for it.
    deadline = reader.deadline(has_met=True)
    while waiting:
        try:
            leader, led = next(iter(reader.by_leader(waiting).items()))
            yield from _LeaderFetch(reader, leader, [waiting[where] for where in led], deadline, on_loss).run()
        except (OSError, Retriable) as error:
            reader.close()
            if isinstance(error, Absent) and deadline.waited_s > MISSING_TOPIC_TIMEOUT_S:
                on_loss(f"partition {error.partition} does not exist any more.")
                del waiting[error.partition]
            elif isinstance(error, Unidentified) and _is_replaced(reader, error.topic, waiting):
                on_loss(f"topic {error.topic} was deleted and made anew before it was read.")
                waiting = {where: progress for where, progress in waiting.items() if where.topic != error.topic}
            elif not deadline.pause():
                raise as_sentence(error) from None
        waiting = {where: progress for where, progress in waiting.items() if not progress.is_done}


def _is_replaced(reader: ClusterReader, topic: str, waiting: Mapping[TopicPartition, _Progress]) -> bool:
    """Whether there is another topic of this name now."""
    planned = {progress.range.topic_id for where, progress in waiting.items() if where.topic == topic}
    try:
        reader.by_leader([where for where in waiting if where.topic == topic])
    except (OSError, Retriable):
        return False
    return reader.topic_ids.get(topic, ZERO_TOPIC_ID) not in {*planned, ZERO_TOPIC_ID}


def fetch_request(
    settings: ClientSettings,
    positions: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, TopicId] | None = None,
    *,
    partition_bytes_max: int,
) -> FetchRequest:
    """Outside of a session: a client that reads a range here and there has nothing to be remembered for."""
    schema, ids = FetchRequest.FetchPartition, topic_ids or {}
    rows = by_topic(
        (where, schema(partition=where.partition, fetch_offset=position, partition_max_bytes=partition_bytes_max))
        for where, position in positions.items()
    )
    return FetchRequest(
        max_wait_ms=_WAIT_MS_MAX,
        min_bytes=1,
        max_bytes=settings.fetch_bytes_max,
        isolation_level=int(settings.is_committed_only),
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(topic=name, topic_id=ids.get(name, ZERO_TOPIC_ID), partitions=its)
            for name, its in rows.items()
        ],
    )


class _LeaderFetch:
    def __init__(
        self,
        reader: ClusterReader,
        leader: int,
        wanted: list[_Progress],
        deadline: Deadline,
        on_loss: OnLoss,
    ) -> None:
        self._reader = reader
        self._connection: BrokerConnection = reader.broker(leader)
        self._wanted = {progress.range.where: progress for progress in wanted}
        self._deadline = deadline
        self._on_loss = on_loss
        # The next request asks for this one only.
        self._alone: _Progress | None = None
        self._topic_ids = {progress.range.topic: progress.range.topic_id or ZERO_TOPIC_ID for progress in wanted}
        self._names: dict[bytes, str] = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        self._version_max = None if ZERO_TOPIC_ID not in self._names else NAMES_UNTIL

    def run(self) -> Iterator[Fetched]:
        sent = self._ask()
        try:
            while sent is not None:
                answer, sent = self._connection.receive(sent), None
                fetched = self._take(answer)
                broken: OSError | None = None
                try:
                    sent = self._ask()
                except OSError as error:
                    broken = error  # what arrived before still counts: its positions have moved
                yield from fetched
                if broken is not None:
                    raise broken
        finally:
            # The caller stopped in the middle, or something broke: an answer nobody reads would meet the next question.
            if sent is not None:
                self._reader.close()

    def _ask(self) -> Sent | None:
        alone, self._alone = self._alone, None
        positions = {
            where: progress.position
            for where, progress in self._wanted.items()
            if not progress.is_done and alone in (None, progress)
        }
        if not positions:
            return None
        settings = self._reader.settings
        request = fetch_request(
            settings, positions, self._topic_ids, partition_bytes_max=settings.partition_fetch_bytes_max
        )
        return self._connection.send(request, self._version_max)

    def _take(self, answer: Any) -> list[Fetched]:
        """Moves the positions on. Raises Retriable when the answer brought nothing but errors that pass."""
        check(answer.error_code, "a fetch")
        fetched: list[Fetched] = []
        failure: OttlaError | None = None
        rows = [
            (self._wanted[TopicPartition(topic.topic or self._names[bytes(topic.topic_id)], row.partition_index)], row)
            for topic in answer.responses
            for row in topic.partitions
        ]
        for progress, row in rows:
            try:
                if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._skip_lost(progress)
                    continue
                if row.error_code in _ANOTHER_TOPIC:
                    raise Unidentified(progress.range.topic)
                check(row.error_code, f"partition {progress.range.where}")
            except Retriable as error:
                failure = error
                continue
            if row.records is not None and len(row.records):
                fetched += self._move(progress, row)
        if fetched:
            self._deadline.moved()
        elif failure is not None:
            raise failure
        elif rows:  # a broker that throttles answers for no partition at all
            self._look_closer(rows)
        return fetched

    def _move(self, progress: _Progress, row: Any) -> list[Fetched]:
        start, progress.position = progress.position, fetched_until(row.records, progress.position)
        if progress.position == start:
            return []  # only the first partition of an answer is promised a whole batch
        aborted = [(entry.producer_id, entry.first_offset) for entry in row.aborted_transactions or ()]
        return [Fetched(progress.range, start, row.records, aborted)]

    def _look_closer(self, rows: Sequence[tuple[_Progress, Any]]) -> None:
        """Nothing came at all. One partition alone is promised a whole batch, and a remote read of its own."""
        left = [(progress, row) for progress, row in rows if not progress.is_done and not row.error_code]
        if not left:
            return
        progress, row = left[0]
        if len(rows) > 1:
            self._alone = progress
            return
        readable = row.last_stable_offset if self._reader.settings.is_committed_only else row.high_watermark
        if readable >= progress.range.end and self._is_on_disk(progress):
            progress.position = progress.range.end
            return
        where = progress.range.where
        self._wanted[where] = self._wanted.pop(where)  # next time it is another one's turn
        if not self._deadline.pause():
            raise Retriable(
                f"partition {where} has no record at {progress.position} yet, up to {progress.range.end} was asked."
            )

    def _is_on_disk(self, progress: _Progress) -> bool:
        """Whether the leader reads this position from its own disk, where what it does not find is not there."""
        if self._connection.version_of("ListOffsetsRequest") < _EARLIEST_LOCAL_SINCE:
            return True  # it is older than tiered storage
        where = progress.range.where
        return 0 <= self._reader.offsets_now({where: EARLIEST_LOCAL})[where] <= progress.position

    def _skip_lost(self, progress: _Progress) -> None:
        where = progress.range.where
        reader = self._reader
        try:
            bounds = reader.offsets_now({where: EARLIEST})[where], reader.offsets_now({where: LATEST})[where]
        except OSError as error:
            raise Retriable(f"partition {where} cannot be asked for its offsets now: {error}") from None
        if bounds[0] <= progress.position <= bounds[1]:
            raise Retriable(f"partition {where} is not where its leader says.")
        self._on_loss(
            f"offsets {progress.position} to {progress.range.end - 1} of partition {where} were asked for, "
            f"but it has only {bounds[0]} to {bounds[1] - 1} now."
        )
        progress.position = progress.range.end if progress.position > bounds[1] else min(bounds[0], progress.range.end)
