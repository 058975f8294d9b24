"""What under-replicated partitions tell, by how their number goes. PURE.

Two patterns of the field:
- **constant**: the number jumps and stays. A broker is gone, or a disk of it: the one that the missing replicas are of.
- **fluctuating**: it comes and goes. All brokers are there, and one cannot keep up: its load, its disk, or the network.
  If the replicas that fall out are mostly of one broker, it is that one as a follower; if they are of many and their
  leader is one, it is that leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

# Which part of all that is missing has to be one broker's to blame it.
_MOST = 0.6
_LOOKS_MIN = 3


class Pattern(StrEnum):
    NONE = "none"
    # Too short to tell.
    UNCLEAR = "unclear"
    CONSTANT = "constant"
    FLUCTUATING = "fluctuating"


class ReplicationLook(NamedTuple):
    at_ms: int
    # How many replicas are not in sync, by (leader, the broker that has them).
    missing: Mapping[tuple[int, int], int]
    # How many partitions that is.
    partitions: int
    brokers: frozenset[int]


class ReplicationVerdict(NamedTuple):
    pattern: Pattern
    partitions: int
    # Those that are behind it, the first most of all; empty when none stands out.
    brokers: tuple[int, ...]
    # What to do, in a sentence.
    advice: str


def judge_replication(looks: Sequence[ReplicationLook]) -> ReplicationVerdict:
    """`looks` are those of the window, the oldest first."""
    if not looks or not any(look.partitions for look in looks):
        return ReplicationVerdict(Pattern.NONE, 0, (), "all replicas are in sync")
    now = looks[-1]
    counts = [look.partitions for look in looks]
    if len(looks) < _LOOKS_MIN:
        return ReplicationVerdict(Pattern.UNCLEAR, now.partitions, _gone(now), "look again in a moment")
    # A jump at the beginning, then the same until now.
    since = next(place for place, count in enumerate(counts) if count)
    if now.partitions and len(set(counts[since:])) == 1:
        return _constant(now)
    if now.partitions and _gone(now) and all(look.partitions for look in looks[since:]):
        return _constant(now)
    return _fluctuating(looks)


def _gone(look: ReplicationLook) -> tuple[int, ...]:
    """Brokers that have replicas, and are not there; the one with most of them first."""
    missing = _by(look, 1)
    return tuple(broker for broker, _ in missing.most_common() if broker not in look.brokers)


def _by(look: ReplicationLook, place: int) -> Counter[int]:
    """Missing replicas by their leaders (0) or by who has them (1)."""
    counted: Counter[int] = Counter()
    for key, count in look.missing.items():
        counted[key[place]] += count
    return counted


def _constant(now: ReplicationLook) -> ReplicationVerdict:
    gone = _gone(now)
    if gone:
        names = " and ".join(map(str, gone))
        advice = f"broker {names} is gone: start it again, or move its replicas with `ottla partition move`"
        return ReplicationVerdict(Pattern.CONSTANT, now.partitions, gone, advice)
    blamed = _most(_by(now, 1))
    if blamed:
        advice = (
            f"broker {blamed[0]} is there, and its replicas do not come along: look at its log directories with "
            "`ottla cluster health`, and at its log"
        )
    else:
        advice = "replicas of several brokers do not come along: look at their logs"
    return ReplicationVerdict(Pattern.CONSTANT, now.partitions, blamed, advice)


def _fluctuating(looks: Sequence[ReplicationLook]) -> ReplicationVerdict:
    followers: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    for look in looks:
        followers += _by(look, 1)
        leaders += _by(look, 0)
    blamed, part = _most(followers), "falls behind as a follower"
    if not blamed:
        blamed, part = _most(leaders), "leads where others fall behind"
    if blamed:
        advice = f"broker {blamed[0]} {part}: look at its load, its disk and its network"
    else:
        advice = "no single broker stands out: look at the load of the cluster and at the network between brokers"
    return ReplicationVerdict(Pattern.FLUCTUATING, looks[-1].partitions, blamed, advice)


def _most(counted: Counter[int]) -> tuple[int, ...]:
    """The broker that has most of it, if one has."""
    if not counted:
        return ()
    broker, count = counted.most_common(1)[0]
    return (broker,) if count >= _MOST * counted.total() else ()
