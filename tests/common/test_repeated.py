"""What fails in the same way again and again is said ever more rarely."""

from __future__ import annotations

from ottla.common.repeated import Repeated


def test_the_same_is_said_at_first_and_then_ever_more_rarely() -> None:
    troubles = Repeated()
    said = [number for number in range(1, 2001) if troubles.is_news("no")]
    assert said == [1, 10, 100, 1000]


def test_something_else_is_news_and_so_is_the_same_after_a_success() -> None:
    troubles = Repeated()
    assert [troubles.is_news(why) for why in ("no", "no", "never", "no")] == [True, False, True, True]
    troubles.is_over()
    assert troubles.is_news("no")
