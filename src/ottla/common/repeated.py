"""For what is tried again several times a second and fails in the same way: said at first, then ever more rarely."""

from __future__ import annotations


class Repeated:
    """`is_news(why)` is true the first time, and the tenth, the hundredth, ... time in a row that the same is said."""

    def __init__(self) -> None:
        self._said: str | None = None
        self._count = 0
        self._next = 1

    def is_news(self, what: str) -> bool:
        if what != self._said:
            self._said, self._count, self._next = what, 0, 1
        self._count += 1
        if self._count < self._next:
            return False
        self._next *= 10
        return True

    def is_over(self) -> None:
        """It has succeeded: whatever fails next is news."""
        self._said = None
