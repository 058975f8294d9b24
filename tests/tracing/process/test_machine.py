"""Random histories of a process: the machine says what a plain reading of the rules says, in whatever order the
records come, and says it again after restarts at any moment."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import pytest

from ottla.tracing.model import Position
from ottla.tracing.process import Machine, Process, parse_process
from ottla.tracing.process.report import ProcessReport

HOUR = 3_600_000
START = 1_700_000_000_000
DATA = {
    "name": "orders",
    "within": "3h",
    "tolerance": "1s",
    "step": [
        {"name": "order", "topic": "orders", "id": "key"},
        {"name": "payment", "topic": "payments", "id": "key", "within": "10m"},
        {"name": "packing", "topic": "packing", "id": "key", "within": "1h", "optional": True},
        {"name": "label", "topic": "labels", "id": "key", "within": "1h", "repeats": True},
        {"name": "shipping", "topic": "shipping", "id": "key", "within": "1h"},
    ],
}
PROCESS = parse_process(DATA)


class Event(NamedTuple):
    step: int
    name: bytes
    at_ms: int
    position: Position


def _history(chance: random.Random, instances: int, began_ms: int = START) -> list[Event]:
    """Orders that go well and badly."""
    events: list[Event] = []
    for number in range(instances):
        at_ms = began_ms + number * 60_000 + chance.randrange(1000)
        for step in range(len(PROCESS.steps)):
            if step:
                at_ms += chance.choice([1, 1000, 5 * 60_000, 10 * 60_000, 50 * 60_000, 70 * 60_000, -500, -5000])
            if chance.random() < 0.15:
                continue
            if chance.random() < 0.1 and step:
                break
            for _ in range(2 if chance.random() < 0.1 else 1):
                events.append(Event(step, f"o-{number}".encode(), at_ms, Position("t", 0, len(events))))
    return events


def _plain(events: list[Event], now_ms: int, is_final: bool) -> set[str]:
    """The rules, word for word, for one instance."""
    steps = {number: sorted(event.at_ms for event in events if event.step == number) for number in range(5)}
    first_ms = min(event.at_ms for event in events)
    last = max(event.step for event in events)
    found: set[str] = set()
    due: list[int] = []
    for number, step in enumerate(PROCESS.steps):
        if number == 0:
            due.append(first_ms + 1000)
            continue
        base = first_ms
        for earlier in reversed(range(number)):
            if steps[earlier]:
                base = steps[earlier][0]
                break
            if not PROCESS.steps[earlier].is_optional:
                base = due[earlier]
                break
        due.append(min(base + (step.within_ms or 0), first_ms + 3 * HOUR))
    for number, step in enumerate(PROCESS.steps):
        if steps[number]:
            if number and steps[number][0] > due[number]:
                found.add("late")
            if any(steps[earlier] and steps[number][0] + 1000 < steps[earlier][0] for earlier in range(number)):
                found.add("out of order")
            if len(steps[number]) > 1 and not step.may_repeat:
                found.add("duplicate")
        elif not step.is_optional and number < last and (is_final or now_ms > due[number]):
            found.add("missing")
    behind = [number for number in range(last + 1, 5) if not PROCESS.steps[number].is_optional]
    if behind and (is_final or now_ms > due[behind[0]]):
        found.add("stuck")
    required = all(steps[number] or PROCESS.steps[number].is_optional for number in range(5))
    return found or ({"complete"} if required else {"running"})


def _expected(events: list[Event], now_ms: int, *, is_final: bool = False) -> Counter[str]:
    by_name: dict[bytes, list[Event]] = {}
    for event in events:
        by_name.setdefault(event.name, []).append(event)
    counts: Counter[str] = Counter({"instances": len(by_name)})
    for own in by_name.values():
        counts.update(_plain(own, now_ms, is_final))
    return counts


def _counts(report: ProcessReport) -> Counter[str]:
    return Counter({name: count for name, count in report.counts.items() if count})


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_do_not_depend_on_the_order_in_which_topics_are_read(seed: int) -> None:
    chance = random.Random(seed)
    events = _history(chance, 30)
    now_ms = START + chance.randrange(4 * HOUR)
    known = [event for event in events if event.at_ms <= now_ms]
    chance.shuffle(known)
    machine = Machine(PROCESS)
    for event in known:
        machine.observe(*event)
    machine.advance(now_ms)
    assert _counts(machine.report()) == +_expected(known, now_ms)


@pytest.mark.parametrize("seed", range(40))
def test_counts_are_the_same_however_often_the_watch_is_restarted(seed: int) -> None:
    """Read by time, with restarts at any moment, until all is forgotten: nothing is lost or counted twice."""
    chance = random.Random(1000 + seed)
    events = sorted(_history(chance, 60), key=lambda event: event.at_ms)
    machine, read_to_ms = Machine(PROCESS), 0
    now_ms = START
    while now_ms < START + 20 * HOUR:
        now_ms += chance.randrange(2 * HOUR)
        for event in events:
            if read_to_ms <= event.at_ms < now_ms:
                machine.observe(*event)
        machine.advance(now_ms)
        read_to_ms = now_ms
        if chance.random() < 0.3:
            cut = machine.cut()
            machine, read_to_ms = Machine(PROCESS, cut), cut.before_ms - PROCESS.horizon_ms
    machine.advance(now_ms)
    assert len(machine) == 0
    assert _counts(machine.report()) == _expected(events, now_ms, is_final=True)


def test_an_instance_that_was_stuck_is_late_once_its_step_comes() -> None:
    machine = Machine(PROCESS)
    machine.observe(0, b"o", START, Position("orders", 0, 0))
    machine.advance(START + 10 * 60_000)
    assert machine.report().counts["running"] == 1
    machine.advance(START + 10 * 60_000 + 1)
    (case,) = machine.report().cases
    assert (case.problems, case.waiting_for, case.overdue_ms) == (("stuck",), "payment", 1)
    machine.observe(1, b"o", START + 11 * 60_000, Position("payments", 0, 0))
    assert machine.report().cases[0].problems == ("late",)


def test_state_is_bounded_and_what_is_given_up_is_counted() -> None:
    process: Process = parse_process({**DATA, "instances_max": 10, "cases_max": 5})
    machine = Machine(process)
    for number in range(100):
        machine.observe(0, f"o-{number}".encode(), START + number, Position("orders", 0, number))
    assert len(machine) == 10
    report = machine.report()
    assert (report.counts["instances"], report.counts["given up"], report.counts["running"]) == (100, 90, 10)
    machine.observe(1, b"o-0", START + 5, Position("payments", 0, 0))
    assert machine.report().counts["too late"] == 1
    machine.advance(START + 100 * HOUR)
    report = machine.report()
    assert (report.counts["stuck"], len(report.cases), len(machine)) == (10, 5, 0)


def test_an_instance_whose_records_grow_older_and_older_takes_no_more_room() -> None:
    machine = Machine(PROCESS)
    for number in range(3_000):
        machine.observe(0, b"x" * 10_000, START - number, Position("orders", 0, number))
    assert len(machine) == 1 and len(machine._by_age) <= 1002
    assert len(machine.report().cases[0].id) < 400
