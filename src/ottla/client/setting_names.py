"""Names of settings, told apart: those that we act on or pass over, those that we refuse, and those that nobody has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Set
from typing import NamedTuple

from ottla.common.errors import OttlaError


class KnownNames(NamedTuple):
    # What to call one of them, as in "the option ..."
    kind: str
    # What stands before a name where people write it.
    prefix: str
    accepted: Set[str]
    # Why not.
    refused: Mapping[str, str]

    def check(self, name: str) -> None:
        """Raises OttlaError for a name that is refused or unknown."""
        if name in self.refused:
            raise OttlaError(f"the {self.kind} {self.prefix}{name} is not supported: {self.refused[name]}.")
        if name not in self.accepted:
            close = difflib.get_close_matches(name, sorted(self.accepted), 1)
            hint = f": did you mean {self.prefix}{close[0]}?" if close else ": Kafka's clients know no such setting."
            raise OttlaError(f"there is no {self.kind} {self.prefix}{name}{hint}")
