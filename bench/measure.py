"""What is compared: two arms, a baseline and a subject, measured in turn over several rounds.

A line of the benchmark is a `Comparison`. Each round measures both arms, in swapping order, so that
a slow minute of the machine hits both. Ratios are stated so that more than 1 is good for the subject: throughput is
subject/baseline, and time, memory and CPU are baseline/subject.

One round's ratio is noisy (Kafka against Kafka differs by up to 1.8x on bulk lines), hence three figures: the ratio
of the best of each arm, which is the steadiest, the ratio of the medians, and the lowest and highest ratio of a
single round.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from tests.support.process import CLOCK_TICKS, family_cpu_seconds

Values = Mapping[str, float]
C = TypeVar("C")
TURNS = 5
SAYS_NOTHING_BELOW_S = 0.2  # the kernel counts CPU time in hundredths of a second


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    higher_is_better: bool
    goal: float | None = None  # the ratio that the subject should reach; None: for information
    digits: int = 1

    def best(self, values: Sequence[float]) -> float:
        return max(values) if self.higher_is_better else min(values)

    def ratio(self, subject: float, baseline: float) -> float:
        above, below = (subject, baseline) if self.higher_is_better else (baseline, subject)
        return above / below if below else float("inf")


def throughput(name: str, unit: str, goal: float | None = 1.0, digits: int = 1) -> Metric:
    return Metric(name, unit, higher_is_better=True, goal=goal, digits=digits)


def cost(name: str, unit: str, goal: float | None = None, digits: int = 2) -> Metric:
    return Metric(name, unit, higher_is_better=False, goal=goal, digits=digits)


@dataclass
class Arm:
    """One side of a comparison. `measure` does one round and returns a value for each metric."""

    label: str
    measure: Callable[[], Values]
    warm_up: Callable[[], object] | None = None


class InTurns(Generic[C]):
    """A round of both arms as several short turns, one after the other, of which the median counts.

    The same broker differs by a third from one second to the next, which is more than the tenth that a line may have to
    tell: one long measurement of each arm in a round said 0.57 to 1.32 for the same two brokers."""

    def __init__(self, contenders: Sequence[C], measure: Callable[[C], Values]) -> None:
        self._contenders = contenders
        self._measure = measure
        self._waiting: dict[int, Values] = {}  # what the other arm of this round has yet to be told

    def measure(self, wanted: C) -> Values:
        if id(wanted) not in self._waiting:
            self._round()
        return self._waiting.pop(id(wanted))

    def _round(self) -> None:
        turns: dict[int, list[Values]] = {id(each): [] for each in self._contenders}
        for number in range(TURNS):
            for each in self._contenders if number % 2 == 0 else reversed(self._contenders):
                turns[id(each)].append(self._measure(each))
        for contender, values in turns.items():
            self._waiting[contender] = {name: statistics.median(one[name] for one in values) for name in values[0]}


@dataclass
class Comparison:
    name: str
    title: str
    metrics: Sequence[Metric]
    arms: Sequence[Arm]  # baseline first; one arm alone is only measured
    notes: str = ""


@dataclass
class Summary:
    """One metric of one comparison, over all rounds."""

    metric: Metric
    values: dict[str, list[float]]  # by arm
    best_ratio: float | None = None
    median_ratio: float | None = None
    ratios: list[float] = field(default_factory=list)  # of each round

    @property
    def ratio_range(self) -> tuple[float, float] | None:
        return (min(self.ratios), max(self.ratios)) if self.ratios else None

    @property
    def reached(self) -> bool | None:
        if self.metric.goal is None or self.best_ratio is None:
            return None
        return self.best_ratio >= self.metric.goal


class OtherWork:
    """How many cores the rest of the machine used meanwhile: with more than a trace, a measurement says little."""

    def __init__(self) -> None:
        self._at, self._all, self._ours = time.monotonic(), _busy_seconds(), family_cpu_seconds(os.getpid())

    def cores(self) -> float:
        elapsed = time.monotonic() - self._at
        ours = family_cpu_seconds(os.getpid()) - self._ours
        if elapsed < SAYS_NOTHING_BELOW_S:
            return 0.0
        return max(0.0, (_busy_seconds() - self._all - ours) / elapsed)


def _busy_seconds() -> float:
    """CPU time spent by all processes since the machine started: neither idle nor waiting for a disk."""
    user, nice, system, _idle, _waiting, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / CLOCK_TICKS


@dataclass
class Result:
    name: str
    title: str
    arms: list[str]
    others_cores: float = 0.0  # used by processes that are no part of the benchmark, in the busiest round
    summaries: list[Summary] = field(default_factory=list)
    failure: str | None = None
    notes: str = ""


def run(comparison: Comparison, rounds: int, tell: Callable[[str], None]) -> Result:
    result = Result(comparison.name, comparison.title, [arm.label for arm in comparison.arms], notes=comparison.notes)
    samples: dict[str, list[Values]] = {arm.label: [] for arm in comparison.arms}
    for arm in comparison.arms:
        if arm.warm_up is not None:
            arm.warm_up()
    for number in range(rounds):
        order = comparison.arms if number % 2 == 0 else list(reversed(comparison.arms))
        for arm in order:
            others = OtherWork()
            values = arm.measure()
            result.others_cores = max(result.others_cores, others.cores())
            samples[arm.label].append(values)
            told = ", ".join(
                f"{metric.name} {values[metric.name]:,.{metric.digits}f} {metric.unit}" for metric in comparison.metrics
            )
            tell(f"  round {number + 1} {arm.label}: {told}")
    result.summaries = [_summarize(metric, samples) for metric in comparison.metrics]
    return result


def _summarize(metric: Metric, samples: Mapping[str, Sequence[Values]]) -> Summary:
    values = {label: [one[metric.name] for one in rounds] for label, rounds in samples.items()}
    summary = Summary(metric, values)
    if len(values) == 2:
        baseline, subject = values.values()
        summary.ratios = [metric.ratio(s, b) for s, b in zip(subject, baseline, strict=True)]
        summary.best_ratio = metric.ratio(metric.best(subject), metric.best(baseline))
        summary.median_ratio = metric.ratio(statistics.median(subject), statistics.median(baseline))
    return summary
