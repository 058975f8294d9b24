"""Do lists grow as transactions append to them? As in Elle's append-list workload, what readers saw tells the order.

A list is a partition. A transaction appends unique elements to several lists; its client also reads the lists as they
grow, and each element says how many elements of its list the client had read before it appended. In the end every
reader's list must be the beginning of the one list that is there, and no element may stand before something that its
writer had read already. `violations()` finds:

- lost, aborted, torn    as in `transaction_checker`: transactions are there whole or not at all
- duplicated             an element is in its list twice
- reordered              elements of one producer are not in the order of its transactions
- incompatible           what a reader saw is not the beginning of the list
- dirty                  a reader saw elements of the transaction that it had open itself
- backwards              an element stands before one that its writer had read
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.testing.checker import Violation
from ottla.testing.ledger import Ledger, title_of
from ottla.testing.sealed import seal, unseal


class Element(NamedTuple):
    """What an element of a list says about itself."""

    producer: str
    number: int  # of the transaction, from 1
    part: int  # which of its elements, from 0
    list: int  # the partition
    seen: int  # elements of the list that the producer had read before

    @property
    def transaction(self) -> tuple[str, int]:
        return self.producer, self.number


def element_value(element: Element) -> bytes:
    return seal(element)


def read_element(value: bytes | None) -> Element | None:
    """None if the value is not a whole element."""
    found = unseal(value)
    if found is None or len(found[1]) != len(Element._fields) - 1:
        return None
    return Element(found[0], *found[1])


class ListChecker:
    """Safe to feed from several threads."""

    def __init__(self) -> None:
        self._ledger: Ledger[Element] = Ledger()
        self._reads: dict[tuple[str, int], list[bytes]] = {}
        self._own: list[tuple[str, Element]] = []
        self._lists: dict[int, list[bytes]] = {}

    # --- what happened

    def begun(self, elements: Sequence[Element]) -> None:
        """Before anything is sent."""
        self._ledger.begun(elements)

    def ended(self, producer: str, number: int, *, committed: bool) -> None:
        """The broker has said so."""
        self._ledger.ended(producer, number, committed=committed)

    def read(self, reader: str, list_: int, values: Iterable[bytes], *, within: tuple[str, int] | None = None) -> None:
        """Elements that came next in a list, and the transaction that the reader had open itself."""
        with self._ledger.lock:
            seen = self._reads.setdefault((reader, list_), [])
            for value in values:
                seen.append(value)
                element = read_element(value)
                if within is not None and element is not None and element.transaction == within:
                    self._own.append((reader, element))

    def final(self, list_: int, values: Sequence[bytes]) -> None:
        """A list as readers of committed records find it in the end."""
        self._lists[list_] = list(values)

    @property
    def begun_count(self) -> int:
        return len(self._ledger.written)

    @property
    def committed_count(self) -> int:
        return self._ledger.committed_count

    @property
    def read_count(self) -> int:
        return sum(map(len, self._reads.values()))

    def last_number(self, producer: str) -> int:
        return self._ledger.last_number(producer)

    # --- the verdict

    def violations(self) -> list[Violation]:
        found: list[Violation] = []
        places: dict[Element, list[int]] = {}
        for list_, values in sorted(self._lists.items()):
            for position, value in enumerate(values):
                element = read_element(value)
                if element is None or element.list != list_ or not self._ledger.is_written(element):
                    found.append(Violation("torn", f"element {position} of list {list_} is {value!r}"))
                else:
                    places.setdefault(element, []).append(position)
        found += self._ledger.faults(places)
        found += self._order_faults(places)
        found += self._read_faults()
        found += [
            Violation("dirty", f"{reader} read {_named(element)} before it ended") for reader, element in self._own
        ]
        return found

    def _order_faults(self, places: dict[Element, list[int]]) -> Iterable[Violation]:
        latest: dict[tuple[str, int], tuple[int, Element]] = {}
        for element, positions in sorted(places.items()):  # by producer, number, part
            if len(positions) > 1:
                yield Violation("duplicated", f"{_named(element)} is at positions {positions}")
            if positions[0] < element.seen:
                told = f"{_named(element)} is at {positions[0]}, its writer had read {element.seen} before"
                yield Violation("backwards", told)
            stream = element.producer, element.list
            before = latest.get(stream)
            if before is not None and before[0] > positions[0]:
                yield Violation("reordered", f"{_named(element)} comes before {_named(before[1])}")
            else:
                latest[stream] = positions[0], element

    def _read_faults(self) -> Iterable[Violation]:
        for (reader, list_), seen in sorted(self._reads.items()):
            final = self._lists.get(list_, [])
            if seen == final[: len(seen)]:
                continue
            at = next(i for i, value in enumerate(seen) if i >= len(final) or value != final[i])
            there = final[at] if at < len(final) else b"nothing"
            yield Violation("incompatible", f"{reader} read {seen[at]!r} at {at} of list {list_}; there is {there!r}")


def _named(element: Element) -> str:
    return f"element {element.part} of {title_of(element.transaction)} in list {element.list}"
