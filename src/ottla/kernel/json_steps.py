"""What a program that reads JSON into columns is made of. There is a step for each schema within the reader's."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class JsonStep(IntEnum):
    INTEGER = 0
    NUMBER = 1
    STRING = 2
    BOOLEAN = 3
    TEXT = 4  # a text as it is, anything else as JSON
    LIST = 5  # items by step a
    MAP = 6  # values by step a
    STRUCT = 7  # b properties, edges from a: where the name begins in the constants, its length, step, whether required
    SKIP = 8  # no column


class JsonNode(NamedTuple):
    kind: int
    column: int = -1
    a: int = 0
    b: int = 0
