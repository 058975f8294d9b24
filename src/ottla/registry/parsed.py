"""What every format offers: a schema that was parsed, its texts, and whether it reads what another one wrote."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod

from ottla.common.schemas import Difference, Sides


class Resolved:
    """A reference with the text that it refers to, and with what that refers to itself.

    Compared by a digest: the same schema may be reached on more ways than anybody can walk."""

    __slots__ = ("_digest", "name", "references", "text")
    _digest: bytes

    def __init__(self, name: str, text: str, references: tuple[Resolved, ...] = ()) -> None:
        self.name, self.text, self.references = name, text, references
        digest = hashlib.sha256()
        for part in (name.encode(), text.encode(), *(reference._digest for reference in references)):
            digest.update(len(part).to_bytes(8, "big") + part)
        self._digest = digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resolved) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


class Parsed(ABC):
    @abstractmethod
    def canonical(self) -> str:
        """The text that is stored."""

    @abstractmethod
    def normalised(self) -> str:
        """The same for all texts that mean the same."""

    @abstractmethod
    def reads(self, writer: Parsed, sides: Sides) -> list[Difference]:
        """Nothing, if records of `writer`, a schema of the same format, can be read with this one."""
