"""What a leader's answer means for a follower, case by case."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode
from ottla.replication.follower import Step, Verdict, diverging, judge, truncation
from ottla.storage.leader_epochs import LeaderEpochs

Epochs = list[tuple[int, int]]


def epochs(folder: Path, entries: Epochs) -> LeaderEpochs:
    made = LeaderEpochs(folder / "none")
    for entry in entries:
        made.assign(*entry)
    return made


@pytest.mark.parametrize(
    ("code", "leader_start", "end", "verdict"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, 50, 10, Verdict(Step.RESTART, 50)),
        (ErrorCode.OFFSET_OUT_OF_RANGE, 10, 10, Verdict(Step.BACK_OFF)),
        (ErrorCode.OFFSET_OUT_OF_RANGE, -1, 10, Verdict(Step.BACK_OFF)),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 10, Verdict(Step.BACK_OFF)),
        (ErrorCode.KAFKA_STORAGE_ERROR, 50, 10, Verdict(Step.BACK_OFF)),
    ],
)
def test_errors(code: ErrorCode, leader_start: int, end: int, verdict: Verdict) -> None:
    assert judge(code, leader_start, end) == verdict


@pytest.mark.parametrize(
    ("leader", "leader_end", "follower", "follower_end", "ends"),
    [
        # Same history: nothing diverges.
        ([(0, 0)], 10, [(0, 0)], 10, [10]),
        ([(0, 0)], 10, [(0, 0)], 4, [4]),
        ([(0, 0), (2, 10)], 15, [(0, 0)], 10, [10]),
        ([(0, 0)], 10, [], 0, [0]),
        # A tail of an old leader that nobody else has.
        ([(0, 0), (2, 10)], 15, [(0, 0)], 12, [10]),
        ([(0, 0), (2, 10)], 15, [(0, 0), (1, 10)], 12, [10]),
        # An epoch without records: only the entry goes.
        ([(0, 0), (2, 10)], 15, [(0, 0), (1, 10)], 10, [10]),
        # Several elections apart (KIP-279): step by step.
        ([(0, 0), (3, 10), (6, 20)], 25, [(0, 0), (2, 8), (4, 12), (5, 18)], 22, [12, 8]),
        ([(0, 0), (3, 10), (6, 20)], 25, [(0, 0), (3, 10), (5, 18)], 22, [18]),
        # The leader's log begins later than the epoch that is asked for.
        ([(5, 100)], 120, [(4, 0)], 110, [100]),
        # Nothing in common.
        ([(3, 0), (6, 10)], 20, [(5, 0)], 8, [0]),
    ],
)
def test_a_log_that_went_another_way_is_cut_where_the_ways_part(
    tmp_path: Path, leader: Epochs, leader_end: int, follower: Epochs, follower_end: int, ends: list[int]
) -> None:
    """`ends`: where the follower's log ends after each lap."""
    theirs, ours = epochs(tmp_path, leader), epochs(tmp_path, follower)
    end, laps = follower_end, []
    while True:
        found = diverging(ours.latest, end, lambda epoch: theirs.end_offset_for(epoch, leader_end))
        if found is None:
            break
        before = (end, ours.entries)
        verdict = truncation(*found, lambda epoch: ours.end_offset_for(epoch, end), end)  # noqa: B023
        assert verdict.step is Step.TRUNCATE and verdict.offset <= end
        end = verdict.offset
        ours.truncate_from_end(end)
        assert (end, ours.entries) != before, "it would ask for ever"
        laps.append(end)
    assert (laps or [end]) == ends


def test_an_epoch_that_the_leader_never_heard_of(tmp_path: Path) -> None:
    theirs = epochs(tmp_path, [(3, 0)])
    assert diverging(5, 10, lambda epoch: theirs.end_offset_for(epoch, 20)) == (-1, -1)
    assert truncation(-1, -1, lambda epoch: (-1, -1), 10) == Verdict(Step.BACK_OFF)
