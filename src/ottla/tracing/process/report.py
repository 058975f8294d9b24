"""What is known of a business process at a moment: how many of what, and which ones are in trouble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ottla.tracing.model import Position, Preview

INSTANCES, COMPLETE, RUNNING = "instances", "complete", "running"
STUCK, MISSING, LATE, OUT_OF_ORDER, DUPLICATE = "stuck", "missing", "late", "out of order", "duplicate"
GIVEN_UP, TOO_LATE = "given up", "too late"
PROBLEMS = (STUCK, MISSING, LATE, OUT_OF_ORDER, DUPLICATE)


@dataclass(frozen=True)
class StepSeen:
    """One step of an instance, whether it came or not."""

    name: str
    timestamp_ms: int | None
    # When it had to be there; of the first step when the others began.
    due_ms: int
    count: int
    # Of the first record by time.
    position: Position | None

    def as_json(self) -> dict[str, Any]:
        return {
            "step": self.name,
            "timestamp_ms": self.timestamp_ms,
            "due_ms": self.due_ms,
            "count": self.count,
            "position": None if self.position is None else self.position._asdict(),
        }


@dataclass(frozen=True)
class Case:
    """An instance of the process."""

    id: bytes
    first_ms: int
    problems: tuple[str, ...]
    # Without problems: "complete" or "running".
    state: str
    steps: tuple[StepSeen, ...]
    # The step that should come next, and since when it is overdue.
    waiting_for: str | None
    overdue_ms: int

    def as_json(self) -> dict[str, Any]:
        return {
            "id": Preview(self.id, len(self.id)).as_json(),
            "first_ms": self.first_ms,
            "problems": list(self.problems),
            "waiting_for": self.waiting_for,
            "overdue_ms": self.overdue_ms,
            "steps": [step.as_json() for step in self.steps],
        }


@dataclass(frozen=True)
class ProcessReport:
    """`counts`: of all instances since the watch began, forgotten ones among them; one with two problems counts under
    both. `cases`: those with problems, by their first record; of more than `cases_max` the newest."""

    NAMES: ClassVar[tuple[str, ...]] = (INSTANCES, COMPLETE, RUNNING, *PROBLEMS, GIVEN_UP, TOO_LATE)

    name: str
    # Up to when all topics were read.
    as_of_ms: int
    counts: dict[str, int]
    cases: tuple[Case, ...]
    # Instances that are remembered now.
    remembered: int
    # Records of a step in which its `id` finds nothing, since this run began.
    without_id: dict[str, int]

    @property
    def is_well(self) -> bool:
        return not any(self.counts[problem] for problem in PROBLEMS)

    def as_json(self) -> dict[str, Any]:
        return {
            "process": self.name,
            "as_of_ms": self.as_of_ms,
            "counts": {name.replace(" ", "_"): count for name, count in self.counts.items()},
            "remembered": self.remembered,
            "without_id": self.without_id,
            "cases": [case.as_json() for case in self.cases],
        }
