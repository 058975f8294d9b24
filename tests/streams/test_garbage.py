"""The collector does not look at the records of a batch; what functions of a program leave is collected as ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ottla.streams.engine.garbage import collect_all, not_collected, set_aside


class Circle:
    """Nobody but the collector can free it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_nothing_is_collected_while_records_are_read() -> None:
    with not_collected():
        before = collections()
        rows = [(number, None) for number in range(100_000)]
        assert collections() == before
    assert gc.isenabled() and len(rows) == 100_000


def test_the_collector_is_back_after_a_failure_and_stays_away_where_somebody_wants_it_so() -> None:
    with pytest.raises(ValueError), not_collected():
        raise ValueError
    assert gc.isenabled()
    gc.disable()
    with not_collected():
        pass
    assert not gc.isenabled()


def test_what_was_there_is_set_aside_and_what_comes_is_collected() -> None:
    gc.collect()
    old = Circle()
    seen_old = weakref.ref(old)
    with set_aside():
        assert gc.get_freeze_count() > 0
        del old
        new = Circle()
        seen_new = weakref.ref(new)
        del new
        gc.collect()
        assert seen_old() is not None
        assert seen_new() is None
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert seen_old() is None


def test_what_is_left_over_is_freed_before_anything_is_set_aside_again() -> None:
    old = Circle()
    seen_old = weakref.ref(old)
    with set_aside():
        del old
        new = Circle()
        seen_new = weakref.ref(new)
        del new
    assert seen_new() is None
    assert seen_old() is not None


def test_whoever_needs_room_gets_all_of_it() -> None:
    """The operators of tasks that have run hold one another."""
    old = Circle()
    seen = weakref.ref(old)
    with set_aside():
        del old
        collect_all()
        assert seen() is None


def test_nothing_stays_aside_after_a_failure() -> None:
    with pytest.raises(ValueError), set_aside():
        raise ValueError
    assert gc.get_freeze_count() == 0
