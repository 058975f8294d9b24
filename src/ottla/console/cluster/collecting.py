"""A thread that looks at the cluster again and again, and keeps what it saw last.

Pages show the last snapshot. It is made every few seconds; on a cluster so large that a look takes long, the pauses
grow with it, so that the console is never more than a quarter of the time at it. When the cluster does not answer, the
last snapshot stays, and `problem` says since when and why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.client.retrying import as_sentence
from ottla.common.errors import OttlaError
from ottla.console.cluster.asking import Asking
from ottla.console.cluster.history import History
from ottla.console.cluster.judging import look_of
from ottla.console.cluster.link import Link
from ottla.console.cluster.snapshot import Group, Snapshot, Topic
from ottla.monitoring.monitor import GroupReport, Monitor, MonitorSettings

_log = logging.getLogger("ottla.console")
# Sizes and settings change slowly, and cost more.
_SLOW_EVERY = 4
_PAUSE_OF_LOOK = 3.0
_RETRY_S = 1.0
# After a change it looks at once: of a moment no rate can be told, a dozen records would be thousands a second.
_RATED_S_MIN = 0.25
# Looks by which a group is judged.
_WINDOW = 24


@dataclass(frozen=True)
class Problem:
    since_s: float
    sentence: str


class Collector:
    def __init__(self, link: Link, interval_s: float) -> None:
        self._link = link
        self._interval_s = interval_s
        self.snapshot: Snapshot | None = None
        self.problem: Problem | None = None
        # What rates are counted from: the last snapshot that had some of its own.
        self._rated: Snapshot | None = None
        self.history = History()
        self._monitor = Monitor(MonitorSettings(interval_s=interval_s, window=_WINDOW))
        self._looked = threading.Condition()
        self._looks = 0
        self._wake = threading.Event()
        self._is_slow_wanted = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="console-collector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()
        self._thread.join(20)

    def look_now(self, timeout_s: float = 5.0) -> None:
        """After a change: returns when a look that began after this call is done, or the time is over."""
        with self._looked:
            # One may be under way now, which has perhaps seen the old state.
            wanted = self._looks + (2 if not self._wake.is_set() else 1)
            self._is_slow_wanted = True
            deadline = time.monotonic() + timeout_s
            while self._looks < wanted and (left := deadline - time.monotonic()) > 0 and not self._is_stopping:
                self._wake.set()
                self._looked.wait(min(left, 0.2))

    @property
    def reports(self) -> Mapping[str, GroupReport]:
        return self._monitor.report.groups

    def judged(self, group: str) -> GroupReport | None:
        """By Burrow's rules, over the looks that are remembered."""
        return self.reports.get(group)

    def wait_first(self, timeout_s: float) -> None:
        with self._looked:
            self._looked.wait_for(lambda: self._looks > 0, timeout_s)

    def _run(self) -> None:
        number = 0
        while not self._is_stopping:
            with self._looked:
                with_slow = number % _SLOW_EVERY == 0 or self._is_slow_wanted
                self._is_slow_wanted = False
            pause_s = self._look(with_slow)
            number += 1
            with self._looked:
                self._looks += 1
                self._looked.notify_all()
            self._wake.wait(pause_s)
            self._wake.clear()

    def _look(self, with_slow: bool) -> float:
        try:
            with self._link.borrowed() as reader:
                seen = Asking(reader).everything(self.snapshot, with_slow=with_slow)
        except (OttlaError, OSError) as error:
            sentence = str(as_sentence(error))
            if self.problem is None:
                _log.warning("the cluster does not answer: %s", sentence)
            since_s = time.time() if self.problem is None else self.problem.since_s
            self.problem = Problem(since_s, sentence)
            return _RETRY_S
        except Exception as error:  # whatever an answer that nobody expected does to us: the page says so
            _log.exception("a look at the cluster failed")
            self.problem = Problem(time.time(), f"the cluster's answer was not understood: {error}.")
            return self._interval_s
        self.snapshot, self._rated = with_rates(self._rated, self.snapshot, seen)
        self.problem = None
        judged = self._monitor.take(look_of(seen)).groups
        self.history.add(seen.at_s, _values(self.snapshot, judged))
        return max(self._interval_s, _PAUSE_OF_LOOK * seen.took_s)


def with_rates(rated: Snapshot | None, last: Snapshot | None, now: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Records and commits a second, since `rated`: what to show, and what to count from next time."""
    if rated is None or now.at_s < rated.at_s:
        return now, now
    if now.at_s - rated.at_s < _RATED_S_MIN:
        return (now if last is None else _as_before(last, now)), rated
    shown = _since(rated, now)
    return shown, shown


def _as_before(last: Snapshot, now: Snapshot) -> Snapshot:
    topics = {
        name: replace(topic, records_per_s=known.records_per_s, bytes_per_s=known.bytes_per_s)
        if (known := last.topics.get(name)) is not None
        else topic
        for name, topic in now.topics.items()
    }
    groups = {
        name: replace(group, commits_per_s=before.commits_per_s)
        if (before := last.groups.get(name)) is not None
        else group
        for name, group in now.groups.items()
    }
    return replace(now, topics=topics, groups=groups)


def _since(before: Snapshot, now: Snapshot) -> Snapshot:
    elapsed_s = now.at_s - before.at_s
    topics = {name: _rated(before.topics.get(name), topic, elapsed_s) for name, topic in now.topics.items()}
    groups = {name: _committing(before.groups.get(name), group, elapsed_s) for name, group in now.groups.items()}
    return replace(now, topics=topics, groups=groups)


def _rated(before: Topic | None, now: Topic, elapsed_s: float) -> Topic:
    if before is None or len(before.partitions) != len(now.partitions):
        return now
    records = sum(
        max(0, one.end - other.end)
        for one, other in zip(now.partitions, before.partitions, strict=True)
        if one.end is not None and other.end is not None
    )
    per_s = records / elapsed_s
    # Sizes are asked for seldom, so bytes are those that a record takes on average.
    kept, size = now.records, now.log_bytes
    return replace(now, records_per_s=per_s, bytes_per_s=per_s * size / kept if kept and size is not None else None)


def _committing(before: Group | None, now: Group, elapsed_s: float) -> Group:
    if before is None:
        return now
    moved = sum(max(0, offset - before.offsets.get(where, offset)) for where, offset in now.offsets.items())
    return replace(now, commits_per_s=moved / elapsed_s)


def _values(snapshot: Snapshot, judged: Mapping[str, GroupReport]) -> dict[str, float | None]:
    rates = [topic.records_per_s for topic in snapshot.topics.values() if topic.records_per_s is not None]
    byte_rates = [topic.bytes_per_s for topic in snapshot.topics.values() if topic.bytes_per_s is not None]
    values: dict[str, float | None] = {
        "records": sum(rates) if rates else None,
        "bytes": sum(byte_rates) if byte_rates else None,
        "lag": sum(group.lag or 0 for group in snapshot.groups.values()),
        "under": sum(topic.under_replicated for topic in snapshot.topics.values()),
        "disk": snapshot.log_bytes,
        "behind": max((one.seconds_behind for one in judged.values() if one.seconds_behind is not None), default=None),
    }
    behind = snapshot.lag_by_topic
    for topic in snapshot.topics.values():
        values[f"topic:{topic.name}"] = topic.records_per_s
        if topic.name in behind:
            values[f"behind in:{topic.name}"] = behind[topic.name]
    for group in snapshot.groups.values():
        values[f"group:{group.name}"] = group.lag
        values[f"commits:{group.name}"] = group.commits_per_s
        report = judged.get(group.name)
        values[f"behind:{group.name}"] = report.seconds_behind if report is not None else None
    for broker in snapshot.brokers.values():
        values[f"disk:{broker.id}"] = broker.log_bytes
    return values
