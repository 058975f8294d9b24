"""The checker of lists itself: it accepts what is allowed, and finds each kind of broken promise."""

from __future__ import annotations

import pytest

from ottla.testing.list_checker import Element, ListChecker, element_value, read_element


class History:
    """Two lists; each transaction appends one element to both, and says that its writer had seen nothing yet."""

    def __init__(self) -> None:
        self.checker = ListChecker()
        self.lists: dict[int, list[bytes]] = {0: [], 1: []}

    def transaction(self, number: int, outcome: bool | None, *, there: tuple[int, ...] = (0, 1), seen: int = 0) -> None:
        elements = [Element("p", number, one, one, seen) for one in (0, 1)]
        self.checker.begun(elements)
        if outcome is not None:
            self.checker.ended("p", number, committed=outcome)
        for one in there:
            self.lists[one].append(element_value(elements[one]))

    @property
    def kinds(self) -> list[str]:
        for one, values in self.lists.items():
            self.checker.final(one, values)
        return [one.kind for one in self.checker.violations()]


@pytest.fixture
def history() -> History:
    made = History()
    made.transaction(1, True)
    made.transaction(2, False, there=())
    made.transaction(3, None)
    made.transaction(4, None, there=())
    made.transaction(5, True, seen=2)
    return made


def test_elements_notice_damage() -> None:
    element = Element("me", 9, 1, 3, 17)
    value = element_value(element)
    assert read_element(value) == element
    for position in range(len(value)):
        assert read_element(value[:position] + b"#" + value[position + 1 :]) is None
    assert read_element(None) is None


def test_a_good_history(history: History) -> None:
    history.checker.read("r", 0, history.lists[0][:1])
    history.checker.read("r", 0, history.lists[0][1:2], within=("p", 5))
    history.checker.read("r", 1, history.lists[1])
    assert history.kinds == []
    assert (history.checker.begun_count, history.checker.committed_count, history.checker.last_number("p")) == (5, 2, 5)
    assert history.checker.read_count == 5


def test_a_committed_element_that_is_missing(history: History) -> None:
    history.transaction(6, True, there=(0,))
    assert history.kinds == ["lost"]


def test_an_aborted_element_that_is_there(history: History) -> None:
    history.transaction(6, False, there=(1,))
    assert history.kinds == ["aborted"]


def test_a_transaction_that_ended_in_the_dark_is_whole(history: History) -> None:
    history.transaction(6, None, there=(1,))
    assert history.kinds == ["torn"]


def test_values_that_nobody_appended(history: History) -> None:
    history.lists[0] += [b"what?", element_value(Element("p", 77, 0, 0, 0))]
    assert history.kinds == ["torn", "torn"]


def test_an_element_that_is_there_twice(history: History) -> None:
    history.lists[0].append(history.lists[0][0])
    assert history.kinds == ["duplicated"]


def test_elements_out_of_order(history: History) -> None:
    history.lists[0][:2] = reversed(history.lists[0][:2])
    assert history.kinds == ["reordered"]


@pytest.mark.parametrize("seen", [[1], [0, 2], [0, 1, 2, 0]])
def test_a_reader_whose_list_is_not_the_beginning_of_it(history: History, seen: list[int]) -> None:
    history.checker.read("r", 1, [history.lists[1][one] for one in seen])
    assert history.kinds == ["incompatible"]


def test_a_reader_that_sees_its_own_open_transaction(history: History) -> None:
    history.checker.read("p", 0, history.lists[0], within=("p", 5))
    assert history.kinds == ["dirty"]


def test_an_element_before_what_its_writer_had_read(history: History) -> None:
    history.transaction(6, True, seen=4)
    assert history.kinds == ["backwards", "backwards"]
