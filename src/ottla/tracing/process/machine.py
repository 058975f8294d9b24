"""The judge of a business process: records of steps go in, in any order, and verdicts on instances come out. PURE.

A verdict depends on nothing but the records of an instance, by their own timestamps, and on the time up to which all
topics were read. So it does not matter which topic is read first, and the same records give the same verdict again.

Of an instance (`due` of a step: its `within` after the step before it, or after the moment that one was due):

    late          a step came after it was due
    stuck         a step has not come though it is due, and neither has any after it
    missing       a step has not come though it is due, but one after it has
    out of order  a step is older than one before it, by more than the tolerance
    duplicate     a step that may not repeat came more than once

Without any of these it is `complete` once every step is there that is not optional, and `running` until then. One that
was stuck and whose step comes after all is late from then on.

What is kept is bounded. An instance is judged for good and forgotten when its first record is older than the horizon of
the process: all limits and `keep`. What is forgotten stays counted. Should there be more than `instances_max` at a time
the oldest are given up: counted as such, and no longer judged. A record that is older than all that are remembered,
and belongs to none of them, is too late to be judged, and counted.

So two things are all that has to be noted for a restart: the cut, before which everything was forgotten, and the
counts. Whoever reads on from the cut less one horizon gets every instance whole.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.tracing.model import Position
from ottla.tracing.process.definition import Process
from ottla.tracing.process.report import (
    COMPLETE,
    DUPLICATE,
    GIVEN_UP,
    INSTANCES,
    LATE,
    MISSING,
    OUT_OF_ORDER,
    RUNNING,
    STUCK,
    TOO_LATE,
    Case,
    ProcessReport,
    StepSeen,
)

_ID_BYTES_MAX = 256
_STALE_MAX = 1000


class Seen(NamedTuple):
    """A step of an instance: its first record by time, and how many there were."""

    timestamp_ms: int
    position: Position
    times: int = 1


class Cut(NamedTuple):
    """All that a restart needs: instances that began before `before_ms` are in `counts`, and forgotten."""

    before_ms: int
    counts: dict[str, int]


@dataclass
class _Instance:
    first_ms: int
    steps: dict[int, Seen] = field(default_factory=dict)


class Machine:
    def __init__(self, process: Process, resumed: Cut | None = None) -> None:
        self.process = process
        self._instances: dict[bytes, _Instance] = {}
        # (first record, id); what an instance had before an older record came is still there, and skipped.
        self._by_age: list[tuple[int, bytes]] = []
        self._counts: Counter[str] = Counter(resumed.counts if resumed is not None else {})
        self._cut_ms = resumed.before_ms if resumed is not None else 0
        # Those that begin before it were counted by an earlier run.
        self._counted_before_ms = self._cut_ms
        # Until all of an earlier run is read again, what is older than the cut is let in.
        self._is_resuming = resumed is not None
        # Cases of instances that are forgotten; the oldest go first.
        self._closed: deque[Case] = deque(maxlen=process.cases_max)
        self._without_id: Counter[str] = Counter()
        self._now_ms = 0

    def __len__(self) -> int:
        return len(self._instances)

    # --- what comes in

    def observe(self, step: int, instance_id: bytes | None, timestamp_ms: int, position: Position) -> None:
        """A record of a step, whenever it is read. The same record must not come twice."""
        if instance_id is None:
            self._without_id[self.process.steps[step].name] += 1
            return
        name = _bounded(instance_id)
        instance = self._instances.get(name)
        if instance is None:
            if timestamp_ms < self._cut_ms and not self._is_resuming:
                self._counts[TOO_LATE] += 1
                return
            instance = self._instances[name] = _Instance(timestamp_ms)
            heapq.heappush(self._by_age, (timestamp_ms, name))
        elif timestamp_ms < instance.first_ms:
            instance.first_ms = timestamp_ms
            heapq.heappush(self._by_age, (timestamp_ms, name))
        seen = instance.steps.get(step)
        if seen is None:
            instance.steps[step] = Seen(timestamp_ms, position)
        else:
            first = min((seen.timestamp_ms, seen.position), (timestamp_ms, position))
            instance.steps[step] = Seen(*first, seen.times + 1)
        while len(self._instances) > self.process.instances_max:
            self._give_up_oldest()
        if len(self._by_age) > 2 * len(self._instances) + _STALE_MAX:
            self._by_age = sorted((instance.first_ms, name) for name, instance in self._instances.items())

    def advance(self, now_ms: int) -> None:
        """Everything that was written before this moment was observed. Time does not go back."""
        self._now_ms = max(self._now_ms, now_ms)
        self._is_resuming = False
        self._cut_ms = max(self._cut_ms, self._now_ms - self.process.horizon_ms)
        while (oldest := self._oldest()) is not None and self._instances[oldest].first_ms < self._cut_ms:
            instance = self._forget(oldest)
            if instance.first_ms >= self._counted_before_ms:
                case = self._judged(oldest, instance, is_final=True)
                self._counts.update(_countable(case))
                if case.problems:
                    self._closed.append(case)

    def _oldest(self) -> bytes | None:
        while self._by_age:
            first_ms, name = self._by_age[0]
            instance = self._instances.get(name)
            if instance is not None and instance.first_ms == first_ms:
                return name
            heapq.heappop(self._by_age)
        return None

    def _forget(self, name: bytes) -> _Instance:
        return self._instances.pop(name)

    def _give_up_oldest(self) -> None:
        name = self._oldest()
        assert name is not None
        instance = self._forget(name)
        self._cut_ms = max(self._cut_ms, instance.first_ms + 1)
        if instance.first_ms >= self._counted_before_ms:
            self._counts.update((INSTANCES, GIVEN_UP))

    # --- what comes out

    def cut(self) -> Cut:
        return Cut(self._cut_ms, dict(self._counts))

    def report(self) -> ProcessReport:
        counts = Counter(self._counts)
        cases: list[Case] = []
        for name, instance in self._instances.items():
            if instance.first_ms < self._counted_before_ms:
                continue
            case = self._judged(name, instance)
            counts.update(_countable(case))
            if case.problems:
                cases.append(case)
        listed = sorted([*self._closed, *cases], key=lambda case: (case.first_ms, case.id))
        return ProcessReport(
            self.process.name,
            self._now_ms,
            {name: counts[name] for name in ProcessReport.NAMES},
            tuple(listed[-self.process.cases_max :]),
            len(self._instances),
            dict(self._without_id),
        )

    def _judged(self, name: bytes, instance: _Instance, *, is_final: bool = False) -> Case:
        """`is_final`: what is not there now does not come any more."""
        process, seen = self.process, instance.steps
        problems: set[str] = set()
        rows: list[StepSeen] = []
        last = max(seen)
        end_ms = None if process.within_ms is None else instance.first_ms + process.within_ms
        # When the step before came, or should have come.
        before_ms = instance.first_ms
        newest_ms: int | None = None
        waiting_for: str | None = None
        stuck_on: str | None = None
        overdue_ms = 0
        for number, step in enumerate(process.steps):
            due_ms = before_ms + process.tolerance_ms if number == 0 else _due(before_ms, step.within_ms, end_ms)
            found = seen.get(number)
            rows.append(
                StepSeen(
                    step.name,
                    found and found.timestamp_ms,
                    due_ms,
                    found.times if found else 0,
                    found and found.position,
                )
            )
            if found is not None:
                if number and found.timestamp_ms > due_ms:
                    problems.add(LATE)
                if newest_ms is not None and found.timestamp_ms + process.tolerance_ms < newest_ms:
                    problems.add(OUT_OF_ORDER)
                if found.times > 1 and not step.may_repeat:
                    problems.add(DUPLICATE)
                newest_ms = max(found.timestamp_ms, newest_ms or found.timestamp_ms)
                before_ms = found.timestamp_ms
            elif not step.is_optional:
                # Behind one that is stuck nothing is expected yet.
                if number < last or stuck_on is None:
                    if is_final or self._now_ms > due_ms:
                        problems.add(MISSING if number < last else STUCK)
                        overdue_ms = max(overdue_ms, self._now_ms - due_ms)
                    waiting_for = waiting_for or step.name
                    stuck_on = step.name if number > last else None
                before_ms = due_ms
        is_whole = all(number in seen or step.is_optional for number, step in enumerate(process.steps))
        state = COMPLETE if is_whole and not problems else RUNNING if not problems else ""
        return Case(name, instance.first_ms, tuple(sorted(problems)), state, tuple(rows), waiting_for, overdue_ms)


def _due(before_ms: int, within_ms: int | None, end_ms: int | None) -> int:
    limits = [limit for limit in (None if within_ms is None else before_ms + within_ms, end_ms) if limit is not None]
    return min(limits)


def _countable(case: Case) -> Iterable[str]:
    return (INSTANCES, *case.problems, *((case.state,) if case.state else ()))


def _bounded(instance_id: bytes) -> bytes:
    if len(instance_id) <= _ID_BYTES_MAX:
        return instance_id
    return instance_id[:_ID_BYTES_MAX] + b"..." + hashlib.sha256(instance_id).hexdigest().encode()
