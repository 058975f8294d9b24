"""What becomes of those who wait when an operation fails in a way that nobody thought of: they are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.common.result import Result
from ottla.groups.records import Record
from ottla.protocol.messages import SyncGroupResponse
from tests.groups.desk import Desk

TIMER = ("session", "g", "m")


class Bug(Exception):
    """Nothing that an operation raises on purpose."""


def fail(*_: object) -> Any:
    raise Bug


def record() -> Record:
    """Something to write."""
    desk = Desk()
    kept: list[Record] = []
    desk.log.append = lambda batch, _: kept.extend(batch) or 0  # type: ignore[method-assign, func-returns-value]
    desk.send_join(version=3)
    return kept[0]


def two_wait(desk: Desk, out: Result, told: list[ErrorCode]) -> None:
    out.answer(1, SyncGroupResponse())
    out.answer(2, SyncGroupResponse())
    out.after_commit(lambda error, _: told.append(error))
    out.schedule(TIMER, 1_000)


def in_append(desk: Desk, out: Result) -> None:
    desk.log.append = fail  # type: ignore[method-assign]


def in_replay(desk: Desk, out: Result) -> None:
    desk.shard.replay = fail  # type: ignore[method-assign]


def after_the_replay(desk: Desk, out: Result) -> None:
    out.after_replay(fail)


@pytest.mark.parametrize("breaks", [in_append, in_replay, after_the_replay])
def test_whoever_waits_for_an_operation_that_breaks_is_answered(breaks: Callable[[Desk, Result], None]) -> None:
    desk, told = Desk(), list[ErrorCode]()
    out = desk.shard.begin()
    out.records = [record()]
    two_wait(desk, out, told)
    breaks(desk, out)
    with pytest.raises(Bug):
        desk.shard.settle(out)
    assert out.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert told == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert {ticket: answer.error_code for ticket, answer in desk.answers.items()} == {1: out.error, 2: out.error}
    assert TIMER in desk.shard.timers, "a member that is still there is still expected to be heard of"


def test_an_answer_that_cannot_be_given_keeps_nobody_else_from_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, told = Desk(), list[ErrorCode]()
    out, deliver = desk.shard.begin(), desk.shard.deliver

    def fail_once(ticket: int, *answer: Any) -> None:
        if ticket == 1:
            raise Bug
        deliver(ticket, *answer)

    monkeypatch.setattr(desk.shard, "deliver", fail_once)
    two_wait(desk, out, told)
    with pytest.raises(Bug):
        desk.shard.settle(out)
    assert list(desk.answers) == [2]


def test_a_log_that_is_read_again_serves_nobody_meanwhile() -> None:
    """Whatever failed at the end of the try before, when it was served already."""
    desk = Desk()
    desk.shard.begin_loading()
    assert desk.shard.is_loading
    assert desk.state.is_loading
