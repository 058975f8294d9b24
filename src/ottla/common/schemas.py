"""What all formats of schemas share: a text that is none, and what a comparison of two schemas finds."""

from __future__ import annotations

from typing import Any, NamedTuple


class InvalidSchema(Exception):
    """A schema that cannot be parsed; the sentence says why."""


class Effort:
    """How much may be done for one question. Schemas of a few lines can ask for more than anybody can wait for."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, steps: int = 1) -> None:
        """Raises InvalidSchema when all is spent."""
        self._left -= steps
        if self._left < 0:
            raise InvalidSchema(f"the schema takes more than {self._most:,} steps to be judged: make it simpler")


class Sides(NamedTuple):
    """What people call the two schemas: a check for records of the past reads with the new one, and the other way."""

    reader: str
    writer: str


NEW_READS_OLD = Sides("new", "old")
OLD_READS_NEW = Sides("old", "new")


class Difference(NamedTuple):
    """`rule` is Confluent's name of it, `path` is where in the reader's schema, `text` is for people."""

    rule: str
    path: str
    text: str
    detail: str = ""

    def message(self) -> str:
        more = f", additionalInfo:'{self.detail}'" if self.detail else ""
        return f"{{errorType:'{self.rule}', description:'{self.text}'{more}}}"


def no_constant(name: str) -> Any:
    """For `json.loads(..., parse_constant=...)`: Python reads NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is no number of JSON")
