"""Ratios say who is ahead: more than 1 is good for the subject, whichever way the metric counts."""

from __future__ import annotations

import pytest

from bench import report
from bench.measure import Arm, Comparison, InTurns, Result, cost, run, throughput


def compare(baseline: list[float], subject: list[float]) -> Result:
    series = {"kafka": iter(baseline), "ottla": iter(subject)}
    order: list[str] = []

    def measure(label: str) -> dict[str, float]:
        order.append(label)
        value = next(series[label])
        return {"speed": value, "latency": value}

    arms = [Arm(label, lambda label=label: measure(label)) for label in series]  # type: ignore[misc]
    metrics = [throughput("speed", "requests/s"), cost("latency", "ms", goal=1.0)]
    result = run(Comparison("line", "a line", metrics, arms), len(baseline), lambda _: None)
    assert order[:4] == ["kafka", "ottla", "ottla", "kafka"]
    return result


def test_throughput_is_subject_over_baseline_and_latency_the_other_way_round() -> None:
    speed, latency = compare([100.0, 200.0, 120.0], [300.0, 100.0, 180.0]).summaries
    assert speed.best_ratio == pytest.approx(1.5)
    assert speed.median_ratio == pytest.approx(1.5)
    assert speed.ratio_range == pytest.approx((0.5, 3.0))
    assert speed.reached is True
    assert latency.best_ratio == pytest.approx(1.0)
    assert latency.median_ratio == pytest.approx(120 / 180)


def test_a_goal_that_is_missed_is_marked_in_the_table() -> None:
    result = compare([100.0, 100.0], [50.0, 50.0])
    assert "1.00 BELOW" in report.text([result])
    assert "| a line | speed, requests/s | 100.0 (100.0) kafka | 50.0 (50.0) ottla | 0.50 |" in report.markdown(
        [result]
    )


def test_a_line_that_failed_is_in_the_table() -> None:
    failed = Result("line", "a line", [], failure="the broker answered error 6")
    assert "FAILED: the broker answered error 6" in report.text([compare([1.0, 1.0], [1.0, 1.0]), failed])


def test_one_broker_alone_has_figures_and_no_ratios() -> None:
    alone = run(
        Comparison("l", "l", [throughput("speed", "x")], [Arm("ottla", lambda: {"speed": 5.0})]), 2, lambda _: None
    )
    assert alone.summaries[0].best_ratio is None
    assert "5.0 (5.0) ottla" in report.text([alone])


def test_short_turns_of_both_arms_make_a_round_and_their_medians_count() -> None:
    series = {"open": iter([9.0, 50.0, 52.0, 51.0, 90.0]), "guarded": iter([49.0, 48.0, 5.0, 47.0, 46.0])}
    order: list[str] = []

    def measure(name: str) -> dict[str, float]:
        order.append(name)
        return {"speed": next(series[name])}

    in_turns = InTurns(["open", "guarded"], measure)
    arms = [Arm(name, lambda name=name: in_turns.measure(name)) for name in series]  # type: ignore[misc]
    result = run(Comparison("line", "a line", [throughput("speed", "requests/s")], arms), 1, lambda _: None)
    assert result.summaries[0].values == {"open": [51.0], "guarded": [47.0]}
    assert order[:6] == ["open", "guarded", "guarded", "open", "open", "guarded"]
    assert result.others_cores == 0.0  # the second arm took no time, and says nothing about others
