"""What several transactions wrote and how each of them ended, as their clients were told."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from ottla.testing.checker import Violation


class Written(Protocol):
    """A record of a transaction."""

    @property
    def transaction(self) -> tuple[str, int]:
        """Its producer, and which of the producer's transactions it is part of, from 1."""


W = TypeVar("W", bound=Written)


class Ledger(Generic[W]):
    """Safe to feed from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.written: dict[tuple[str, int], list[W]] = {}
        self.outcomes: dict[tuple[str, int], bool] = {}

    def begun(self, records: Sequence[W]) -> None:
        with self.lock:
            self.written[records[0].transaction] = list(records)

    def ended(self, producer: str, number: int, *, committed: bool) -> None:
        with self.lock:
            self.outcomes[producer, number] = committed

    @property
    def committed_count(self) -> int:
        with self.lock:
            return sum(self.outcomes.values())

    def last_number(self, producer: str) -> int:
        with self.lock:
            return max((number for name, number in self.written if name == producer), default=0)

    def is_written(self, record: W) -> bool:
        return record in self.written.get(record.transaction, ())

    def faults(self, present: Container[W]) -> Iterable[Violation]:
        """Commits that lost something, aborts that left something, and what ended in the dark and is not whole."""
        for transaction, records in sorted(self.written.items()):
            there = sum(record in present for record in records)
            missing = len(records) - there
            outcome, title = self.outcomes.get(transaction), title_of(transaction)
            if outcome is True and missing:
                yield Violation("lost", f"{title} was committed, {missing} of its records are missing")
            elif outcome is False and there:
                yield Violation("aborted", f"{title} was aborted, {there} of its records are there")
            elif outcome is None and there and missing:
                yield Violation("torn", f"{title}: {there} records are there, {missing} are not")


def title_of(transaction: tuple[str, int]) -> str:
    return f"{transaction[0]}'s transaction {transaction[1]}"
