"""The checker itself: it accepts what is allowed, and finds each kind of broken promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.testing.checker import Checker, Stamp, read_stamp, stamped


def value(number: int, producer: str = "p", partition: int = 0) -> bytes:
    return stamped(producer, partition, number)


def history(
    sent: int,
    log: dict[int, bytes | None] | list[int],
    *,
    acknowledged: dict[int, int | None] | None = None,
    consumed: list[tuple[int, bytes | None]] | None = None,
    given_up: list[int] | None = None,
) -> list[str]:
    """Kinds of violations of a history of one producer and one partition. `log` may name the numbers in order."""
    checker = Checker()
    for number in range(sent):
        checker.sent(Stamp("p", 0, number))
    for number, offset in (acknowledged or {}).items():
        checker.acknowledged(Stamp("p", 0, number), offset)
    for number in given_up or []:
        checker.given_up(Stamp("p", 0, number))
    records = log if isinstance(log, dict) else {offset: value(number) for offset, number in enumerate(log)}
    for offset, one in records.items():
        checker.log_record(0, offset, one)
    for offset, one in consumed or []:
        checker.consumed("c", 0, offset, one)
    return [one.kind for one in checker.violations()]


def test_stamps_notice_damage() -> None:
    whole = stamped("me", 3, 42, size=200)
    assert len(whole) == 200
    assert read_stamp(whole) == Stamp("me", 3, 42)
    for cut in range(len(whole)):
        assert read_stamp(whole[:cut]) is None
        assert read_stamp(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :]) is None
    assert read_stamp(None) is None


def test_a_good_history() -> None:
    assert history(5, [0, 1, 2, 3, 4], acknowledged={n: n for n in range(5)}) == []


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    assert history(5, [0, 1, 2], acknowledged={0: 0, 1: 1}) == []
    assert history(5, [0, 1, 2, 3, 4]) == []
    assert history(5, []) == []


def test_a_client_that_tells_no_offset() -> None:
    assert history(2, [0, 1], acknowledged={0: None, 1: -1}) == []


def test_lost() -> None:
    assert history(3, [0, 1], acknowledged={0: 0, 1: 1, 2: 2}) == ["lost"]
    assert history(3, [], acknowledged={0: 0}) == ["lost"]


def test_a_gap_is_a_loss_though_nobody_was_told() -> None:
    assert history(3, [0, 2]) == ["lost"]
    assert history(3, [0, 2], given_up=[1]) == []


def test_moved() -> None:
    assert history(2, [0, 1], acknowledged={1: 0}) == ["moved"]


def test_duplicated() -> None:
    assert history(3, [0, 1, 1, 2]) == ["duplicated"]
    assert history(3, [0, 1, 2, 2], acknowledged={2: 3}) == ["duplicated"]


def test_reordered() -> None:
    assert history(3, [1, 0, 2]) == ["reordered"]


def test_order_is_each_producers_own() -> None:
    checker = Checker()
    for producer in "ab":
        for number in range(3):
            checker.sent(Stamp(producer, 0, number))
    for offset, (producer, number) in enumerate([("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2)]):
        checker.log_record(0, offset, value(number, producer))
    assert checker.violations() == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda: value(1)[:-1],
        lambda: value(1).replace(b"1", b"2", 1),
        lambda: None,
        lambda: b"",
        lambda: value(99),  # never sent
        lambda: value(1, producer="somebody else"),
        lambda: value(1, partition=7),
    ],
)
def test_torn(broken: Callable[[], bytes | None]) -> None:
    assert "torn" in history(2, {0: value(0), 1: broken()})


def test_a_consumer_may_see_things_again_but_not_miss_any() -> None:
    seen = [(0, value(0)), (1, value(1)), (0, value(0)), (1, value(1)), (2, value(2))]
    assert history(3, [0, 1, 2], consumed=seen) == []
    assert history(3, [0, 1, 2], consumed=[(0, value(0)), (2, value(2))]) == ["skipped"]
    assert history(3, [0, 1, 2], consumed=[(1, value(1))]) == ["skipped"]


def test_a_log_that_does_not_start_at_zero() -> None:
    log: dict[int, bytes | None] = {5: value(0), 6: value(1), 9: value(2)}
    assert history(3, log, consumed=[(5, value(0)), (6, value(1)), (9, value(2))]) == []


def test_what_a_consumer_saw_stays_as_it_was() -> None:
    assert history(3, [0, 1, 2], consumed=[(0, value(0)), (1, value(2))]) == ["rewritten"]
    assert history(3, [0], consumed=[(0, value(0)), (1, value(1))]) == ["rewritten"]


def test_a_snapshot_is_judged_by_what_was_known_then() -> None:
    checker = Checker()
    checker.sent(Stamp("p", 0, 0))
    checker.acknowledged(Stamp("p", 0, 0), 0)
    then = checker.snapshot()
    checker.sent(Stamp("p", 0, 1))
    checker.acknowledged(Stamp("p", 0, 1), 1)
    then.log_record(0, 0, value(0))
    assert then.violations() == []
    checker.log_record(0, 0, value(0))
    assert [one.kind for one in checker.violations()] == ["lost"]


def test_violations_say_what_and_where() -> None:
    checker = Checker()
    checker.sent(Stamp("p", 3, 7))
    checker.acknowledged(Stamp("p", 3, 7), 12)
    (found,) = checker.violations()
    assert str(found) == "lost: p's number 7 of partition 3 (acknowledged at offset 12)"
