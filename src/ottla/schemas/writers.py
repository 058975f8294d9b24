"""Schemas of writers, asked for when the first of their records comes.

That a registry does not know an id is believed for a while; that nobody answers there is raised: it is no fault of a
value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable

from ottla.client.schema_registry import Refused
from ottla.schemas.registered import Registered, by_id
from ottla.schemas.registry import SchemaRegistry

# An instance of a registry may hear of a schema a moment after its first record is there.
_ATTEMPTS, _PAUSE_S = 4, 0.25
# After so long an id that was not there is asked for again.
_FORGET_S = 30.0


class Writers:
    def __init__(self, registry: SchemaRegistry, known: Container[int], learn: Callable[[Registered], str | None]):
        """`learn` is given each schema once, and answers with a sentence if it cannot be read."""
        self._registry = registry
        self._known = known
        self._learn = learn
        # Ids that cannot be read, and until when that is believed.
        self._unreadable: dict[int, tuple[str, float]] = {}

    def why_not(self, number: int) -> str:
        return self._unreadable[number][0]

    def learn(self, writer: Registered) -> None:
        sentence = self._learn(writer)
        if sentence is not None:
            self._unreadable[writer.id] = (sentence, float("inf"))

    def meet(self, ids: Iterable[int]) -> None:
        now_s = time.monotonic()
        unknown = [
            number
            for number in ids
            if number not in self._known and self._unreadable.get(number, ("", 0.0))[1] <= now_s
        ]
        for attempt in range(_ATTEMPTS if unknown else 0):
            unknown = [number for number in unknown if not self._ask(number)]
            if not unknown:
                return
            if attempt < _ATTEMPTS - 1:
                time.sleep(_PAUSE_S)
        for number in unknown:
            self._unreadable[number] = (f"the registry has no schema {number}", time.monotonic() + _FORGET_S)

    def _ask(self, number: int) -> bool:
        """False if the registry does not know it."""
        try:
            self.learn(by_id(self._registry.client(), number, self._registry.subject))
        except Refused as error:
            if error.code not in (404, 40403):
                raise
            return False
        return True
