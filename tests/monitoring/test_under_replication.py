"""The two patterns of under-replicated partitions: a table of how their number goes, and whom that points to."""

from __future__ import annotations

import pytest

from ottla.monitoring.under_replication import Pattern, ReplicationLook, judge_replication

ALL = frozenset((1, 2, 3))
Missing = dict[tuple[int, int], int]  # (leader, who has the replica) -> how many

# How it went, who is there at the end, the pattern, and who is behind it.
TABLE: dict[str, tuple[list[Missing], frozenset[int], Pattern, tuple[int, ...]]] = {
    "all is well": ([{}, {}, {}], ALL, Pattern.NONE, ()),
    "too short to tell": ([{}, {(1, 3): 5}], ALL, Pattern.UNCLEAR, ()),
    "a broker is gone": ([{}, {(1, 3): 5, (2, 3): 4}, {(1, 3): 5, (2, 3): 4}], ALL - {3}, Pattern.CONSTANT, (3,)),
    "a broker is gone, and partitions come since": (
        [{(1, 3): 5}, {(1, 3): 6}, {(1, 3): 7}],
        ALL - {3},
        Pattern.CONSTANT,
        (3,),
    ),
    "a broker is there and its disk is not": ([{(1, 2): 5}, {(1, 2): 5}, {(1, 2): 5}], ALL, Pattern.CONSTANT, (2,)),
    "a follower cannot keep up": ([{(1, 2): 3}, {}, {(1, 2): 5, (3, 2): 2}, {}], ALL, Pattern.FLUCTUATING, (2,)),
    "a leader cannot serve": (
        [{(1, 2): 3, (1, 3): 3}, {(1, 2): 1}, {(1, 3): 4, (1, 2): 2}],
        ALL,
        Pattern.FLUCTUATING,
        (1,),
    ),
    "nobody stands out": (
        [{(1, 2): 3, (2, 3): 3, (3, 1): 3}, {}, {(1, 2): 2, (2, 3): 2, (3, 1): 2}],
        ALL,
        Pattern.FLUCTUATING,
        (),
    ),
    "it was bad, and is over": ([{(1, 2): 3}, {(1, 2): 1}, {}, {}], ALL, Pattern.FLUCTUATING, (2,)),
}


@pytest.mark.parametrize(("history", "brokers", "pattern", "blamed"), TABLE.values(), ids=TABLE.keys())
def test_pattern(history: list[Missing], brokers: frozenset[int], pattern: Pattern, blamed: tuple[int, ...]) -> None:
    looks = [ReplicationLook(at, missing, sum(missing.values()), brokers) for at, missing in enumerate(history)]
    verdict = judge_replication(looks)
    assert (verdict.pattern, verdict.brokers) == (pattern, blamed)
    for broker in blamed:
        assert f"broker {broker}" in verdict.advice
