"""The checker of transactions itself: it accepts what is allowed, and finds each kind of broken promise."""

from __future__ import annotations

import pytest

from ottla.testing.transaction_checker import Entry, TransactionChecker, entries, entry_value, read_entry


class History:
    """Two partitions; a transaction has one entry in each, at the next offsets."""

    def __init__(self) -> None:
        self.checker = TransactionChecker()
        self.next = {0: 0, 1: 0}
        self.places: dict[Entry, int] = {}

    def transaction(self, number: int, outcome: bool | None, *, there: tuple[int, ...] = (0, 1), **more: bool) -> None:
        written = entries("p", number, [0, 1])
        self.checker.begun(written, **more)
        if outcome is not None:
            self.checker.ended("p", number, committed=outcome)
        for entry in written:
            if entry.part in there:
                self.put(entry)

    def put(self, entry: Entry) -> None:
        offset = self.next[entry.partition]
        self.next[entry.partition] += 1
        self.places[entry] = offset
        self.checker.log_record(entry.partition, offset, entry_value(entry))

    def consumed(self, *seen: tuple[Entry, int]) -> None:
        for entry, offset in seen:
            self.checker.consumed("c", entry.partition, offset, entry_value(entry))

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.checker.violations()]


@pytest.fixture
def history() -> History:
    made = History()
    made.transaction(1, True)
    made.transaction(2, False, there=())
    made.transaction(3, None)
    made.transaction(4, None, there=())
    made.transaction(5, True, with_offset=True)
    return made


def entry(number: int, part: int) -> Entry:
    return entries("p", number, [0, 1])[part]


def test_entries_notice_damage_and_add_up_to_nothing() -> None:
    written = entries("me", 9, [3, 0, 1, 2])
    assert sum(one.amount for one in written) == 0
    for one in written:
        value = entry_value(one)
        assert read_entry(value) == one
        assert all(read_entry(value[:cut]) is None for cut in range(len(value)))
    assert read_entry(None) is None


def test_a_good_history(history: History) -> None:
    history.checker.group_offset("p", 5)
    history.consumed((entry(1, 0), 0), (entry(1, 1), 0), (entry(3, 0), 1), (entry(5, 0), 2))
    assert history.kinds == []


def test_a_committed_entry_that_is_missing(history: History) -> None:
    history.transaction(6, True, there=(1,))
    assert history.kinds == ["lost", "unbalanced"]
    history.transaction(7, True, there=())
    assert history.kinds == ["lost", "lost", "unbalanced"]


def test_an_aborted_entry_that_is_there(history: History) -> None:
    history.transaction(6, False, there=(0, 1))
    assert history.kinds == ["aborted"]


def test_a_transaction_that_ended_in_the_dark_is_whole(history: History) -> None:
    history.transaction(6, None, there=(0,))
    assert history.kinds == ["torn", "unbalanced"]


def test_values_that_nobody_wrote(history: History) -> None:
    history.checker.log_record(0, 77, b"nonsense")
    history.checker.log_record(1, 77, entry_value(entry(99, 1)))
    assert history.kinds == ["torn", "torn"]


def test_an_entry_that_is_there_twice(history: History) -> None:
    history.put(entry(5, 0))
    history.put(entry(5, 1))
    assert history.kinds == ["duplicated", "duplicated"]


def test_transactions_out_of_order(history: History) -> None:
    history.transaction(9, True)
    history.transaction(8, True)
    assert history.kinds == ["reordered", "reordered"]


def test_a_consumer_that_read_too_early(history: History) -> None:
    history.consumed((entry(1, 0), 0), (entry(3, 0), 1), (entry(5, 0), 2), (entry(4, 0), 3))
    assert history.kinds == ["dirty"]


def test_a_consumer_that_read_an_aborted_entry(history: History) -> None:
    history.consumed((entry(1, 0), 0), (entry(2, 0), 7))
    assert history.kinds == ["aborted", "skipped"]


def test_a_consumer_that_missed_an_entry(history: History) -> None:
    history.consumed((entry(1, 0), 0), (entry(5, 0), 2))
    assert history.kinds == ["skipped"]


@pytest.mark.parametrize("offset", [0, 3, 6])
def test_an_offset_that_does_not_fit(history: History, offset: int) -> None:
    history.checker.group_offset("p", offset)
    assert history.kinds == ["offset"]
