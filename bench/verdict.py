"""Whether two builds differ, by a rule that is stated: rounds, not decimals, decide.

Each round measures both builds, one right after the other, and gives one ratio. A figure is `better` or `WORSE` when
the rounds agree, and the median ratio is more than 3 % away from 1; else the builds are `within noise`. Rounds agree
when all of them point the same way; from eight rounds on, the lowest and the highest may disagree. Fewer than five say
nothing. Of two equal builds one figure in fourteen would differ by chance (eight rounds), so a line with a `WORSE` is
measured a second time, and counts as worse when the second series says so too.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.measure import Result, Summary
from bench.report import disturbances, table

NOISE = 0.03
ROUNDS_LEAST, ROUNDS_FOR_OUTLIERS = 5, 8
BETTER, WORSE, EQUAL, UNKNOWN = "better", "WORSE", "within noise", "too few rounds"
HEADINGS = ("line", "metric", "baseline", "subject", "ratio", "rounds", "verdict")


def verdict(ratios: Sequence[float]) -> str:
    """`ratios`: one for each round, above 1 where the subject was ahead."""
    if len(ratios) < ROUNDS_LEAST:
        return UNKNOWN
    middle, ordered = statistics.median(ratios), sorted(ratios)
    agreeing = ordered[1:-1] if len(ordered) >= ROUNDS_FOR_OUTLIERS else ordered
    if agreeing[0] > 1 and middle > 1 + NOISE:
        return BETTER
    if agreeing[-1] < 1 and middle < 1 - NOISE:
        return WORSE
    return EQUAL


def is_worse(result: Result) -> bool:
    return any(verdict(summary.ratios) == WORSE for summary in result.summaries)


def confirmed(first: Summary, second: Summary | None) -> str:
    said = verdict(first.ratios)
    return EQUAL if said == WORSE and second is not None and verdict(second.ratios) != WORSE else said


def text(results: Sequence[Result], again: dict[str, Result]) -> str:
    """The table of both series, and a count of each verdict. `again` has the second series by the line's name."""
    rows: list[tuple[str, ...]] = []
    verdicts: list[str] = []
    for result in results:
        if result.failure is not None:
            rows.append((result.title, f"FAILED: {result.failure}", *[""] * 5))
        for index, summary in enumerate(result.summaries):
            repeated = again.get(result.name)
            second = repeated.summaries[index] if repeated is not None and repeated.failure is None else None
            verdicts.append(confirmed(summary, second))
            ratios = [*summary.ratios, *(second.ratios if second is not None else [])]
            rows.append((result.title, *_cells(result, summary), *_ratios(ratios), verdicts[-1]))
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in (BETTER, EQUAL, WORSE, UNKNOWN) if one in verdicts)
    lines = [*table(HEADINGS, rows), "", f"Of {len(verdicts)} figures: {counts}.", _rule()]
    if disturbed := disturbances([*results, *again.values()]):
        lines += ["", disturbed]
    return "\n".join(lines)


def _cells(result: Result, summary: Summary) -> tuple[str, str, str]:
    def median(arm: str) -> str:
        return f"{statistics.median(summary.values[arm]):,.{summary.metric.digits}f} {arm}"

    return f"{summary.metric.name}, {summary.metric.unit}", median(result.arms[0]), median(result.arms[-1])


def _ratios(ratios: Sequence[float]) -> tuple[str, str]:
    return f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}-{max(ratios):.2f}"


def _rule() -> str:
    return (
        "Ratios above 1 are good for the subject: the median of the rounds, and the lowest and highest of them.\n"
        f"Within noise: rounds disagree (from {ROUNDS_FOR_OUTLIERS} on, one each way may), or the median is within "
        f"{NOISE:.0%} of 1.\nA line with a WORSE was measured twice and is worse both times."
    )
