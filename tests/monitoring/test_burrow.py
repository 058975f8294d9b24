"""A table of histories with the verdict of each rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.monitoring.burrow import Commit, GroupStatus, LogEnd, Rules, Status, judge, judge_group, seconds_behind

# A look every ten seconds: what the group had committed (None: nobody committed) and where the log ended.
_EVERY_MS = 10_000
TABLE = {
    "one commit says nothing": ([(5, 50)], Status.OK),
    "two commits say nothing": ([(5, 50), (5, 60)], Status.OK),
    "always at the end": ([(10, 10), (20, 20), (30, 30)], Status.OK),
    "at the end now, whatever was before": ([(10, 90), (10, 90), (90, 90)], Status.OK),
    "at the end once, behind since": ([(10, 10), (20, 30), (30, 60), (40, 90)], Status.OK),
    "behind, and catching up at times": ([(10, 50), (20, 70), (60, 80), (65, 100)], Status.OK),
    "behind, and only falling further": ([(10, 20), (20, 40), (30, 80), (40, 99)], Status.WARN),
    "behind by the same all the time": ([(10, 20), (20, 30), (30, 40)], Status.WARN),
    "commits the same, and the log grows": ([(10, 20), (10, 30), (10, 40)], Status.STALL),
    "commits the same, and the log does not grow": ([(10, 20), (10, 20), (10, 20)], Status.STALL),
    "went back and stays behind": ([(50, 60), (10, 60), (20, 60)], Status.REWIND),
    "went back and came back": ([(50, 90), (10, 90), (60, 100)], Status.OK),
    "went back from the end, by a reset": ([(60, 60), (0, 60), (10, 60)], Status.REWIND),
    "commits no more for longer than the window": (
        [(10, 20), (20, 40), (30, 60), (None, 80), (None, 90), (None, 99)],
        Status.STOP,
    ),
    "commits no more, but not for long": ([(10, 20), (20, 40), (30, 60), (None, 61)], Status.WARN),
    "commits no more since it was at the end": (
        [(10, 10), (20, 20), (30, 30), (None, 30), (None, 30), (None, 31)],
        Status.OK,
    ),
    "stopped and rewound: stopped is told": (
        [(50, 60), (10, 60), (11, 60), (None, 60), (None, 60), (None, 60)],
        Status.STOP,
    ),
    "the log was cut below the commit": ([(50, 60), (50, 40), (50, 40)], Status.OK),
}


def _judged(looks: list[tuple[int | None, int]], rules: Rules | None = None) -> Status:
    commits = [
        Commit(number * _EVERY_MS, offset, end) for number, (offset, end) in enumerate(looks) if offset is not None
    ]
    ends = [LogEnd(number * _EVERY_MS, end) for number, (_, end) in enumerate(looks)]
    return judge(commits, ends, ends[-1].at_ms, rules).status


@pytest.mark.parametrize(("looks", "status"), TABLE.values(), ids=TABLE.keys())
def test_verdict(looks: list[tuple[int | None, int]], status: Status) -> None:
    assert _judged(looks) is status


def test_a_lag_that_is_allowed_is_ok_whatever_else_is_seen() -> None:
    stalled = [(10, 20), (10, 20), (10, 20)]
    assert _judged(stalled, Rules(lag_allowed=10)) is Status.OK
    assert _judged(stalled, Rules(lag_allowed=9)) is Status.STALL


def test_a_group_is_in_error_by_its_worst_partition() -> None:
    assert judge_group([]) is GroupStatus.OK
    assert judge_group([Status.OK, Status.OK]) is GroupStatus.OK
    assert judge_group([Status.OK, Status.WARN]) is GroupStatus.WARN
    for worst in (Status.STOP, Status.STALL, Status.REWIND):
        assert judge_group([Status.WARN, worst, Status.OK]) is GroupStatus.ERROR


def test_seconds_behind_are_since_the_log_ended_where_the_group_is() -> None:
    ends = [LogEnd(0, 0), LogEnd(10_000, 100), LogEnd(20_000, 300)]
    assert seconds_behind(300, ends, 20_000) == 0.0
    assert seconds_behind(100, ends, 20_000) == 10.0
    assert seconds_behind(50, ends, 20_000) == 15.0
    assert seconds_behind(200, ends, 25_000) == 10.0


def test_seconds_behind_are_reckoned_where_the_history_is_too_short() -> None:
    ends = [LogEnd(0, 1_000), LogEnd(10_000, 1_100)]  # ten a second
    assert seconds_behind(900, ends, 10_000) == pytest.approx(20.0)
    assert seconds_behind(900, [LogEnd(0, 1_000), LogEnd(10_000, 1_000)], 10_000) is None
    assert seconds_behind(900, [], 10_000) is None


_looks = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 50)), min_size=1, max_size=12)


@given(_looks)
def test_a_group_that_is_at_the_end_is_never_in_error(looks: list[tuple[int | None, int]]) -> None:
    assert _judged([*looks, (60, 60)]) is Status.OK


@given(_looks)
def test_a_moment_later_without_news_a_verdict_is_no_better_unless_it_is_ok(
    looks: list[tuple[int | None, int]],
) -> None:
    """Silence never mends anything."""
    before = _judged(looks)
    after = _judged([*looks, (None, looks[-1][1])])
    assert after is before or after is Status.STOP
