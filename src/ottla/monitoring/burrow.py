"""What to think of a consumer's lag, by the rules of LinkedIn's Burrow. PURE: a history goes in, a verdict comes out.

A threshold says little: a lag of a million may be a second of work, and a lag of ten may be for ever. Burrow looks at
how commits and lag went over a window instead. For each partition, in this order:

1. too few commits are known, or the lag is not above what is allowed: OK;
2. the last commit is older than the window is long, and the group was not at the end of the log a moment ago: STOP;
3. a commit went back, and none since has come back to where it was: REWIND;
4. the lag was zero at any commit of the window: OK;
5. no commit moved: STALL (the consumer lives and commits, and gets nowhere);
6. the lag fell between no two commits: WARN (it works, and falls behind);
7. else OK.

A group is in ERROR if any partition is in STOP, STALL or REWIND; else in WARN if any is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple


class Status(IntEnum):
    """Of a partition of a group; the larger, the worse. The numbers are those of the metrics."""

    OK = 0
    WARN = 1
    REWIND = 2
    STALL = 3
    STOP = 4


class GroupStatus(IntEnum):
    OK = 0
    WARN = 1
    ERROR = 2


class Commit(NamedTuple):
    """The group was at `offset`, and the log ended at `end`."""

    at_ms: int
    offset: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.offset)


class LogEnd(NamedTuple):
    at_ms: int
    offset: int


class Rules(NamedTuple):
    # A lag up to this is nothing to speak of.
    lag_allowed: int = 0
    # How many commits have to be known before anything is said.
    commits_min: int = 3


class Verdict(NamedTuple):
    status: Status
    lag: int
    # How old the first record is that the group has not read; None where the history does not reach back so far and
    # nothing was written from which it could be reckoned.
    seconds_behind: float | None
    # One clause for people.
    why: str


def judge(commits: Sequence[Commit], ends: Sequence[LogEnd], now_ms: int, rules: Rules | None = None) -> Verdict:
    """Of one partition of one group. `commits` and `ends` are those of the window, the oldest first; the last of `ends`
    is where the log ends now. Commits may be older than that, where none came since."""
    rules = rules or Rules()
    if not commits or not ends:
        return Verdict(Status.OK, 0, None, "nothing is committed")
    last = commits[-1]
    lag = max(0, ends[-1].offset - last.offset)
    behind_s = seconds_behind(last.offset, ends, now_ms)
    status, why = _status(commits, ends, lag, now_ms, rules)
    return Verdict(status, lag, behind_s, why)


def _status(
    commits: Sequence[Commit], ends: Sequence[LogEnd], lag: int, now_ms: int, rules: Rules
) -> tuple[Status, str]:
    if lag <= rules.lag_allowed:
        return Status.OK, "at the end of the log" if not lag else f"a lag of {lag} is allowed"
    if len(commits) < rules.commits_min:
        return Status.OK, f"{len(commits)} of {rules.commits_min} commits are known that a judgement needs"
    last, silent_ms = commits[-1], now_ms - commits[-1].at_ms
    if silent_ms > last.at_ms - commits[0].at_ms and not _was_at_end(last, ends):
        return Status.STOP, f"no commit for {silent_ms / 1000:.0f} s while there is something to read"
    if (before := _unrecovered_rewind(commits)) is not None:
        return Status.REWIND, f"went back from offset {before} to {last.offset}"
    if any(commit.lag == 0 for commit in commits):
        return Status.OK, "was at the end of the log within the window"
    if all(commit.offset == last.offset for commit in commits):
        return Status.STALL, f"is at offset {last.offset} all the time, with {lag} to read"
    if all(later.lag >= earlier.lag for earlier, later in pairwise(commits)):
        return Status.WARN, f"moves, but the lag has only grown: from {commits[0].lag} to {lag}"
    return Status.OK, "the lag falls at times"


def _was_at_end(last: Commit, ends: Sequence[LogEnd]) -> bool:
    """With its last commit the group was at the end, and is within the window: what there is to read is new."""
    return any(end.offset <= last.offset for end in ends if end.at_ms >= last.at_ms)


def _unrecovered_rewind(commits: Sequence[Commit]) -> int | None:
    """From where the group went back without having come there again."""
    furthest = commits[0].offset
    for commit in commits[1:]:
        furthest = max(furthest, commit.offset)
    return furthest if commits[-1].offset < furthest else None


def seconds_behind(offset: int, ends: Sequence[LogEnd], now_ms: int) -> float | None:
    """How long ago the log ended at `offset`: about then the first record that is not read was written."""
    if not ends:
        return None
    if offset >= ends[-1].offset:
        return 0.0
    earlier = ends[-1]
    for end in reversed(ends):
        if end.offset <= offset:
            return max(0.0, (now_ms - _reached_ms(end, earlier, offset)) / 1000)
        earlier = end
    # Longer ago than we remember: as if the log had always grown as it did since.
    oldest, newest = ends[0], ends[-1]
    if newest.offset <= oldest.offset or newest.at_ms <= oldest.at_ms:
        return None
    per_ms = (newest.offset - oldest.offset) / (newest.at_ms - oldest.at_ms)
    return (now_ms - oldest.at_ms + (oldest.offset - offset) / per_ms) / 1000


def _reached_ms(before: LogEnd, after: LogEnd, offset: int) -> float:
    """When the log went past `offset`, between two looks at it."""
    grown = after.offset - before.offset
    if grown <= 0:
        return after.at_ms
    return before.at_ms + (after.at_ms - before.at_ms) * (offset - before.offset) / grown


def judge_group(statuses: Iterable[Status]) -> GroupStatus:
    worst = max(statuses, default=Status.OK)
    if worst is Status.OK:
        return GroupStatus.OK
    return GroupStatus.WARN if worst is Status.WARN else GroupStatus.ERROR
