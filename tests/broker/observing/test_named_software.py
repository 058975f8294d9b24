"""Which software of clients is told by its name."""

from __future__ import annotations

from collections import Counter

from ottla.broker.observing.named_software import COUNT_MAX, KEPT_MS, NamedSoftware, Software


def _versions(count: int, first: int = 0) -> Counter[Software]:
    """The later ones have more connections."""
    return Counter({("kafka", str(number)): number + 1 for number in range(first, first + count)})


def test_those_with_the_most_connections_are_named_and_stay_so() -> None:
    named, many = NamedSoftware(), _versions(COUNT_MAX + 5)
    named.look(many, 0)
    assert [one for one in many if one not in named] == [("kafka", str(number)) for number in range(5)]
    named.look(many + Counter({("kafka", "0"): 1_000}), 1)
    assert ("kafka", "0") not in named and ("kafka", "5") in named


def test_names_that_change_all_the_time_make_few_series() -> None:
    named, told = NamedSoftware(), set[Software]()
    for minute in range(2 * 24 * 60):
        connected = _versions(1, minute)
        named.look(connected, minute * 60_000)
        told |= {one for one in connected if one in named}
    assert len(told) <= 2 * COUNT_MAX


def test_one_that_was_not_there_for_a_day_makes_room() -> None:
    named = NamedSoftware()
    named.look(_versions(COUNT_MAX), 0)
    newcomer = Counter({("kafka", "new"): 1})
    named.look(_versions(1) + newcomer, KEPT_MS - 1)
    assert ("kafka", "new") not in named
    named.look(_versions(1) + newcomer, KEPT_MS)
    assert ("kafka", "new") in named and ("kafka", "0") in named and ("kafka", "1") not in named
