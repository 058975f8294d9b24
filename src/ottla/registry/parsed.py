"""What every format offers: a schema that was parsed, its texts, and whether it reads what another one wrote."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ottla.common.schemas import Difference, Sides


class Resolved(NamedTuple):
    """A reference with the text that it refers to, and with what that refers to itself."""

    name: str
    text: str
    references: tuple[Resolved, ...] = ()


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
