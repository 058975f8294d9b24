"""Two builds differ when the rounds agree that they do; what came out worse must do so twice."""

from __future__ import annotations

import random

import pytest

from bench.measure import Result, Summary, throughput
from bench.verdict import BETTER, EQUAL, UNKNOWN, WORSE, text, verdict


def result(*ratios: float) -> Result:
    values = {"old": [100.0] * len(ratios), "here": [100.0 * ratio for ratio in ratios]}
    summary = Summary(throughput("speed", "requests/s"), values, ratios=list(ratios))
    return Result("line", "a line", ["old", "here"], summaries=[summary])


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([1.2, 1.1, 1.3, 1.2, 1.1, 1.2], BETTER),
        ([0.9, 0.8, 0.9, 0.7, 0.9, 0.9], WORSE),
        ([0.9, 0.8, 1.01, 0.7, 0.9, 0.9], EQUAL),  # one of six disagrees
        ([0.5, 0.8, 1.9, 0.7, 0.9, 0.9, 0.8, 0.9], WORSE),  # one of eight may
        ([0.5, 0.8, 1.9, 0.7, 1.1, 0.9, 0.8, 0.9], EQUAL),
        ([0.99, 0.98, 0.98, 0.98, 0.99, 0.97], EQUAL),  # all agree, about next to nothing
        ([0.5, 0.5, 0.5, 0.5], UNKNOWN),
    ],
)
def test_the_rounds_decide(ratios: list[float], said: str) -> None:
    assert verdict(ratios) == said


def test_equal_builds_seldom_look_different_and_hardly_ever_twice() -> None:
    chance = random.Random(1)
    said = [verdict([chance.lognormvariate(0, 0.2) for _ in range(8)]) for _ in range(4000)]
    assert 0.85 < said.count(EQUAL) / len(said) < 0.98


def test_what_came_out_worse_once_but_not_twice_is_noise() -> None:
    worse, equal = result(*[0.8] * 8), result(0.8, 1.2, *[1.0] * 6)
    assert "Of 1 figures: 1 WORSE." in text([worse], {})
    assert "Of 1 figures: 1 WORSE." in text([worse], {"line": worse})
    told = text([worse], {"line": equal})
    assert "Of 1 figures: 1 within noise." in told
    assert "0.80-1.20" in told  # both series are shown


def test_a_line_that_failed_stands_beside_the_others() -> None:
    failed = Result("other", "other", [], failure="the broker answered error 6")
    assert "FAILED: the broker answered error 6" in text([result(*[1.0] * 6), failed], {})
