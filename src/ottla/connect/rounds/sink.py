"""Rounds of a sink: ranges of offsets that tasks write, and then the offsets of the consumer group `connect-NAME`.

A target that keeps positions knows only what it has taken. What came after that and was left out (dead letters, records
that a transform filters) is known by the group: the note beside its offset says how far the target was when that was
committed. If the target is still there, the group's offset counts; else the target was set back, and counts itself.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import partial

from ottla.client.admin.group_offsets import commit_offsets, committed_offsets
from ottla.client.admin.log_sizes import average_bytes
from ottla.client.cluster import ClusterClient
from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.producing import Committed
from ottla.common.ids import TopicId, TopicPartition
from ottla.connect.api import ConnectorFailure, Sink
from ottla.connect.conversion.java_regex import NotTranslated
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.rounds.context import ConnectorContext, Progress, sliced
from ottla.connect.rounds.dead_letters import dead_letter_plan
from ottla.connect.rounds.failing import RoundFailed
from ottla.connect.rounds.writing import Portion, WritePlan, WriteResult, write_task

_LOG = logging.getLogger("ottla.connect.sink")
_LOOK_S = 5.0
_SIZES_S = 30.0
# However much a sink asks for at once: a task holds it in memory, a few times over.
_BATCH_BYTES_MAX = 256 * 1024 * 1024
_RECORD_BYTES_GUESS = 1_000.0
_RESETS = {"earliest": EARLIEST, "latest": LATEST}


def group_of(connector: str) -> str:
    return f"connect-{connector}"


class SinkRounds:
    """Used by the connector's thread."""

    def __init__(self, connector: ConnectorContext, sink: type[Sink]) -> None:
        self._connector = connector
        config, client = connector.config, connector.worker.client
        self._sink = sink(config)
        self._batching = self._sink.batching()
        self._reader = ClusterReader(client)
        self._cluster = ClusterClient(client.address)
        self._group = config.get("consumer.override.group.id") or group_of(connector.name)
        self._reset = self._reset_word(config)
        self._dead_letters = dead_letter_plan(config, client.address, connector.name)
        self._plan = WritePlan(
            sink=sink,
            config=dict(config),
            client=client,
            dead_letters=self._dead_letters,
            is_tolerant=config.get("errors.tolerance", "none") == "all",
            bytes_max=max(connector.worker.rounds.bytes_max, _BATCH_BYTES_MAX),
            log_errors=config.get("errors.log.enable", "false") == "true",
            log_contents=config.get("errors.log.include.messages", "false") == "true",
            retry_timeout_s=_seconds(config, "errors.retry.timeout", "0"),
            retry_pause_s_max=_seconds(config, "errors.retry.delay.max.ms", "60000"),
        )
        self._pattern: TopicPattern | None = None
        self._partitions: list[TopicPartition] = []
        self._looked_s = 0.0
        self._positions: dict[TopicPartition, int] = {}
        # How far the target is, and which topics those are that it was written from.
        self._written: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, TopicId] = {}
        # Since when something waits, and what a record takes.
        self._since: dict[TopicPartition, float] = {}
        self._sizes: dict[TopicPartition, float] = {}
        self._sized_s = 0.0
        self.task_count = connector.tasks_max

    @staticmethod
    def _reset_word(config: Mapping[str, str]) -> int:
        word = config.get("consumer.override.auto.offset.reset", "earliest")
        if word not in _RESETS:
            raise ConnectorFailure(f"consumer.override.auto.offset.reset is '{word}', expected earliest or latest.")
        return _RESETS[word]

    def begin(self) -> None:
        if self._dead_letters is not None:
            self._dead_letters.prepare()
        worker = self._connector.worker
        worker.offsets_topic.read_to_end()
        self._topic_ids = worker.offsets.topic_ids(self._connector.name)
        self._look()
        self._sink.begin(self._topics())

    # --- what there is

    def _topics(self) -> list[str]:
        config = self._connector.config
        if names := [name.strip() for name in config.get("topics", "").split(",") if name.strip()]:
            return names
        if self._pattern is None:
            self._pattern = _pattern(config["topics.regex"])
        return self._pattern.matching(self._reader.topic_names())

    def _look(self) -> None:
        """Partitions of its topics; new ones are noticed within seconds. A topic that is not there yet may come."""
        topics = self._topics()
        found = self._reader.partitions(topics)
        self._partitions = [TopicPartition(topic, number) for topic in topics for number in found.get(topic, ())]
        self._looked_s = time.monotonic()
        self._identify()
        new = [place for place in self._partitions if place not in self._positions]
        if new:
            self._positions |= self._resolved(new)
            self._connector.on_topics(sorted({place.topic for place in new}))

    def _identify(self) -> None:
        """That topics are those which they were, also where another one of the name is as long already."""
        now = {topic: topic_id for topic, topic_id in self._reader.topic_ids.items() if topic in self._read_topics()}
        unknown = {topic: now[topic] for topic in now if self._topic_ids.get(topic) != now[topic]}
        for topic in sorted(unknown.keys() & self._topic_ids.keys()):
            self._begin_anew([place for place in self._partitions if place.topic == topic], topic)
        if unknown:
            offsets, name = self._connector.worker.offsets, self._connector.name
            records = [offsets.topic_id_record(name, topic, topic_id) for topic, topic_id in unknown.items()]
            self._connector.worker.write_offsets(records)
            self._topic_ids |= unknown

    def _read_topics(self) -> set[str]:
        return {place.topic for place in self._partitions}

    def _begin_anew(self, places: list[TopicPartition], topic: str) -> None:
        if self._sink.positions(places):
            raise ConnectorFailure(
                f"the topic '{topic}' was deleted and made anew, and the target holds records of the old one: stop the "
                "connector and reset its offsets to begin with the new one, or name another connector."
            )
        _LOG.warning("the topic '%s' was deleted and made anew: reading begins anew", topic)
        first = self._reader.offsets(dict.fromkeys(places, self._reset))
        commit_offsets(self._cluster, self._group, {place: Committed(offset) for place, offset in first.items()})
        self._positions |= first

    def _resolved(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        """By the target itself, else by the group, else where new readers begin; never before what is still there."""
        own = {place: offset for place, offset in self._sink.positions(places).items() if place in places}
        self._written |= own
        committed = committed_offsets(self._cluster, self._group)
        known = {place: committed[place].offset for place in places if place in committed}
        for place, offset in own.items():
            if place not in known or committed[place].metadata != _note(offset):
                known[place] = offset
        starts = self._reader.offsets(dict.fromkeys(places, EARLIEST))
        first = self._reader.offsets(dict.fromkeys([place for place in places if place not in known], self._reset))
        return {place: max(known.get(place, first.get(place, 0)), starts[place]) for place in places}

    # --- a round

    def run(self) -> bool:
        """Whether there may be more right now. Raises RoundFailed, OttlaError."""
        began_s = time.monotonic()
        if began_s > self._looked_s + _LOOK_S:
            self._look()
        ends = self._reader.offsets(dict.fromkeys(self._partitions, LATEST))
        self._check_ends(ends)
        self._connector.on_progress(Progress(0.0, (), self._lag_max(ends)))
        portions = self._portions(ends)
        if not portions:
            return False
        slices = sliced(portions, self._connector.tasks_max)
        results = self._connector.job(partial(write_task, self._plan), list(enumerate(slices)))
        self._take(results)
        has_letters = self._dead_letters is not None
        counts = [_counts(result, has_letters=has_letters) for result in results]
        self._connector.on_progress(Progress(time.monotonic() - began_s, counts, self._lag_max(ends)))
        return bool(self._portions(ends))

    def _lag_max(self, ends: Mapping[TopicPartition, int]) -> int:
        return max((end - self._positions[place] for place, end in ends.items()), default=0)

    def _check_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """A log that ends before what was read of it is another one: its topic was made anew."""
        for place in [place for place, end in ends.items() if end < self._positions[place]]:
            if self._sink.is_exactly_once:
                raise ConnectorFailure(
                    f"partition {place} ends at {ends[place]}, before the offset {self._positions[place]} that the "
                    "target is at: the topic was made anew; stop the connector and set its offsets, or name a new one."
                )
            _LOG.warning("partition %s ends before what was read of it: reading begins anew", place)
            self._positions |= self._reader.offsets({place: self._reset})

    def _take(self, results: list[WriteResult]) -> None:
        done = {place: offset for result in results for place, offset in result.done.items()}
        self._written |= {place: offset for result in results for place, offset in result.written.items()}
        commit_offsets(self._cluster, self._group, {place: self._committed(place, done[place]) for place in done})
        self._positions |= done
        for place in done:
            self._since.pop(place, None)
        problems = [result.problem for result in results if result.problem is not None]
        if problems:
            # A part of a range may be written: the target knows, or gets it again.
            self._positions.clear()
            self._looked_s = 0.0
            raise RoundFailed(problems[0])

    def _committed(self, place: TopicPartition, offset: int) -> Committed:
        has_own = self._sink.is_exactly_once and place in self._written
        return Committed(offset, _note(self._written[place]) if has_own else "")

    def _portions(self, ends: Mapping[TopicPartition, int]) -> list[Portion]:
        """What is due, as whole batches of the size that the sink asked for, unless the oldest has waited too long."""
        waiting = {place: end for place, end in ends.items() if end > self._positions[place]}
        self._measure(list(waiting))
        now_s = time.monotonic()
        budget = self._connector.worker.rounds.bytes_max / max(1, min(len(waiting), self._connector.tasks_max))
        portions = []
        for place, end in waiting.items():
            start, size = self._positions[place], self._sizes.get(place, _RECORD_BYTES_GUESS)
            since_s = self._since.setdefault(place, now_s)
            if not self._is_due(end - start, size, now_s - since_s):
                continue
            batch = self._batch_records(size)
            # A batch as a whole, if memory has room for it, even where a round would have less for each partition.
            most = max(budget, min((batch or 0) * size, _BATCH_BYTES_MAX))
            count = min(end - start, max(1, int(most / size)))
            if batch is not None and count > batch:
                count -= count % batch
            topic_id = self._topic_ids.get(place.topic)
            portions.append(Portion(OffsetRange(*place, start, start + count, topic_id), batch))
        return portions

    def _batch_records(self, size: float) -> int | None:
        wanted = [self._batching.records] if self._batching.records else []
        wanted += [max(1, int(self._batching.bytes / size))] if self._batching.bytes else []
        return min(wanted, default=None)

    def _is_due(self, records: int, size: float, waited_s: float) -> bool:
        wanted = self._batching
        if not (wanted.bytes or wanted.records or wanted.interval_ms):
            return True
        return (
            bool(wanted.records and records >= wanted.records)
            or bool(wanted.bytes and records * size >= wanted.bytes)
            or bool(wanted.interval_ms and waited_s * 1000 >= wanted.interval_ms)
        )

    def _measure(self, places: list[TopicPartition]) -> None:
        now_s = time.monotonic()
        if places and (now_s > self._sized_s + _SIZES_S or any(place not in self._sizes for place in places)):
            found = average_bytes(self._reader, places)
            self._sizes = {place: max(1.0, found.get(place, _RECORD_BYTES_GUESS)) for place in places}
            self._sized_s = now_s

    def close(self) -> None:
        self._reader.close()
        self._cluster.close()


def _counts(result: WriteResult, *, has_letters: bool) -> dict[str, int]:
    failed = result.failures
    found = {"read": result.read, "sent": result.records, "failed": failed, "skipped": failed}
    return {**found, "dead_letters": failed} if has_letters else found


def _note(written: int) -> str:
    """Beside an offset of the group: how far the target was."""
    return json.dumps({"ottla.written": written})


def _pattern(text: str) -> TopicPattern:
    """Of a configuration that another kind of worker has written, too."""
    try:
        return TopicPattern(text)
    except NotTranslated as error:
        raise ConnectorFailure(f"topics.regex is '{text}': {error}.") from None


def _seconds(config: Mapping[str, str], name: str, default: str) -> float:
    milliseconds = int(config.get(name, default))
    return float("inf") if milliseconds < 0 else milliseconds / 1000
