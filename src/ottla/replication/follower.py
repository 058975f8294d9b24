"""What a leader's answer to a fetch means for a follower's log of one partition.

    error                                  what to do
    none                                   append, take over the watermark and the log start
    none, with a diverging epoch           TRUNCATE, take over nothing, ask again
    OFFSET_OUT_OF_RANGE, and the leader    RESTART where the leader's log begins: it has deleted what comes next
      begins behind our end
    OFFSET_OUT_OF_RANGE else               BACK_OFF: the two logs are at odds, which the epochs explain next time
    NOT_LEADER_OR_FOLLOWER, an epoch       BACK_OFF, a little: one of the two has not heard of an election yet; the next
      that one side does not know          image makes a new follower
    anything else                          BACK_OFF

A log is cut by leader epochs, never to the watermark (KIP-101, -279): what lies above the watermark may well be
committed, and what lies below it is on every in-sync replica anyway. The leader's half of that, `diverging`, is here
too: the two are read together.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ottla.common.errors import ErrorCode

NO_EPOCH = -1


class Step(Enum):
    TRUNCATE = "truncate"
    RESTART = "restart"
    BACK_OFF = "back off"


class Verdict(NamedTuple):
    step: Step
    offset: int = -1


# (the largest epoch <= the one asked for, where it ended), of our own log.
EndOffsetFor = Callable[[int], tuple[int, int]]


def judge(error: ErrorCode, leader_log_start: int, log_end: int) -> Verdict:
    """What to do about an error."""
    if error is ErrorCode.OFFSET_OUT_OF_RANGE and leader_log_start > log_end:
        return Verdict(Step.RESTART, leader_log_start)
    return Verdict(Step.BACK_OFF)


def truncation(epoch: int, end_offset: int, own_end_for: EndOffsetFor, log_end: int) -> Verdict:
    """The leader's log has this epoch as its largest that is not above our last one, and it ended there: up to where
    ours may be the same."""
    own_epoch, own_end = own_end_for(epoch)
    if own_epoch == NO_EPOCH or end_offset < 0:
        return Verdict(Step.BACK_OFF)  # no leader says so
    if own_epoch != epoch:
        # We have never seen it: go back to the end of the one before it, and ask again (KIP-279).
        return Verdict(Step.TRUNCATE, min(own_end, log_end))
    return Verdict(Step.TRUNCATE, min(end_offset, own_end, log_end))


def diverging(last_fetched_epoch: int, fetch_offset: int, leader_end_for: EndOffsetFor) -> tuple[int, int] | None:
    """The other side: where the leader's log left the follower's, or None if it has not. (-1, -1): the leader does not
    know that epoch at all."""
    if last_fetched_epoch == NO_EPOCH:
        return None
    epoch, end_offset = leader_end_for(last_fetched_epoch)
    if epoch == last_fetched_epoch and fetch_offset <= end_offset:
        return None
    return epoch, end_offset
