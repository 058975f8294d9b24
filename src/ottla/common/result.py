"""What an operation of a coordinator asks of the world: records to append, answers to give, timers to set.

Operations never act themselves. They fill a `Result`; the shard appends its records as one batch, replays them, and
gives the answers when they are committed. What has to happen after the append (or after its failure) is a follow-up
that fills a Result of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.common.errors import ApiError, ErrorCode

# Whoever waits for an answer; the machines only hold it. The broker uses a future, the simulator a number.
Ticket = Any
# (kind, group or transactional id, member id or "")
TimerKey = tuple[str, str, str]
# Called with NONE when the records are committed, else with why they cannot be.
FollowUp = Callable[[ErrorCode, "Result"], None]


class TimerOrder(NamedTuple):
    """Set (or with `delay_ms` None, cancel) the timer `key`. `keep` leaves one that is already running alone."""

    key: TimerKey
    delay_ms: int | None
    payload: Any = None
    keep: bool = False


class Result:
    __slots__ = (
        "answers",
        "error",
        "follow_ups",
        "message",
        "next_steps",
        "now_ms",
        "producer",
        "records",
        "reply",
        "timers",
    )

    def __init__(self, now_ms: int) -> None:
        # Wall-clock time of the operation: what its records are stamped with.
        self.now_ms = now_ms
        self.records: list[Any] = []
        # The answer to the request itself, for requests that never wait.
        self.reply: Any = None
        self.answers: list[tuple[Ticket, Any]] = []
        self.timers: list[TimerOrder] = []
        self.next_steps: list[Callable[[Result], None]] = []
        self.follow_ups: list[FollowUp] = []
        # (producer id, epoch) when the records belong to a transaction.
        self.producer: tuple[int, int] | None = None
        # How it ended: None while the records are on their way to the disk.
        self.error: ErrorCode | None = None
        self.message: str | None = None

    def answer(self, ticket: Ticket, message: Any) -> None:
        self.answers.append((ticket, message))

    def schedule(self, key: TimerKey, delay_ms: int, payload: Any = None, *, keep: bool = False) -> None:
        self.timers.append(TimerOrder(key, delay_ms, payload, keep))

    def cancel(self, key: TimerKey) -> None:
        self.timers.append(TimerOrder(key, None))

    def take_back(self) -> None:
        """The operation was refused half way."""
        for wish in (self.records, self.answers, self.timers, self.next_steps, self.follow_ups):
            wish.clear()

    def after_replay(self, step: Callable[[Result], None]) -> None:
        """What the group does next, as soon as it is what the records say. For timers and transitions: by the time the
        records are committed, others may have changed the group."""
        self.next_steps.append(step)

    def after_commit(self, follow_up: FollowUp) -> None:
        """What waits until the records are committed, or have failed to be: answers, above all."""
        self.follow_ups.append(follow_up)

    def check(self) -> None:
        """Raises what it ended with. While it has not ended, that is nothing."""
        if self.error:
            raise ApiError(self.error, self.message)
