"""Burrow's rules, told once more in the plainest Python, judge as `burrow.py` does whatever the history is.

The model knows one list of what happened, with times that are as irregular as those of real consumers, and asks each
rule's question anew by looking at all pairs; it has none of the shortcuts of the code.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from ottla.monitoring.burrow import Commit, LogEnd, Rules, Status, judge


class Look(NamedTuple):
    """So long after the look before it the log had grown so far, and the group had committed this, if anything."""

    pause_ms: int
    grown: int
    committed: int | None


class Moment(NamedTuple):
    at_ms: int
    end: int
    committed: int | None


def moments(looks: list[Look]) -> list[Moment]:
    found, at_ms, end = [], 0, 0
    for look in looks:
        at_ms, end = at_ms + look.pause_ms, end + look.grown
        found.append(Moment(at_ms, end, look.committed))
    return found


def model(history: list[Moment], rules: Rules) -> Status:
    commits = [moment for moment in history if moment.committed is not None]
    now = history[-1]
    if not commits:
        return Status.OK
    first, last = commits[0], commits[-1]
    at, unread = last.committed, now.end - (last.committed or 0)
    assert at is not None
    offsets = [moment.committed or 0 for moment in commits]
    lags = [max(0, moment.end - offset) for moment, offset in zip(commits, offsets, strict=True)]

    if unread <= rules.lag_allowed or len(commits) < rules.commits_min:
        return Status.OK
    had_nothing_to_read = [moment for moment in history if moment.at_ms >= last.at_ms and moment.end <= at]
    if now.at_ms - last.at_ms > last.at_ms - first.at_ms and not had_nothing_to_read:
        return Status.STOP
    for place in range(1, len(offsets)):
        went_back = offsets[place] < offsets[place - 1]
        if went_back and not any(later >= offsets[place - 1] for later in offsets[place:]):
            return Status.REWIND
    if 0 in lags:
        return Status.OK
    if len(set(offsets)) == 1:
        return Status.STALL
    fell = [1 for place in range(1, len(lags)) if lags[place] < lags[place - 1]]
    return Status.OK if fell else Status.WARN


def judged(history: list[Moment], rules: Rules) -> Status:
    commits = [Commit(one.at_ms, one.committed, one.end) for one in history if one.committed is not None]
    ends = [LogEnd(one.at_ms, one.end) for one in history]
    return judge(commits, ends, history[-1].at_ms, rules).status


# Small numbers, so that what is rare in the field is often here: the same offset again, the end of the log, a rewind.
LOOKS = st.lists(
    st.builds(
        Look,
        pause_ms=st.sampled_from((1, 10, 10, 10, 11, 40, 1_000)),
        grown=st.sampled_from((0, 0, 1, 2, 3, 9)),
        committed=st.one_of(st.none(), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=9,
)
RULES = st.builds(Rules, lag_allowed=st.sampled_from((0, 0, 1, 4)), commits_min=st.sampled_from((1, 2, 3, 3)))
MANY = settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(LOOKS, RULES)
def test_random_histories_are_judged_as_the_model_judges_them(looks: list[Look], rules: Rules) -> None:
    history = moments(looks)
    assert judged(history, rules) is model(history, rules)


def test_the_histories_reach_every_verdict() -> None:
    """Else the model would have been compared on nothing but the first rule."""
    seen: Counter[Status] = Counter()

    @seed(1)
    @MANY
    @given(LOOKS, RULES)
    def look(looks: list[Look], rules: Rules) -> None:
        seen[judged(moments(looks), rules)] += 1

    look()
    assert all(seen[status] >= 20 for status in Status), seen
