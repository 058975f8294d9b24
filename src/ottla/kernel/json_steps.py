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


class JsonWrite(IntEnum):
    """Steps of a program that writes columns as JSON."""

    LEFT = 0  # whatever is not null is left to others
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT = 5
    DOUBLE = 6
    BOOLEAN = 7
    STRING = 8  # one of b symbols, edges from a: where it begins in the constants, its length; 0: any
    BASE64 = 9
    DATE = 10
    MOMENT = 11  # microseconds; a: with a Z after it
    LIST = 12
    MAP = 13
    # Edges from a: where the name as it is written begins in the constants, its length, whether required. b: nulls are
    # written, and no blanks.
    STRUCT = 14
    NOTHING = 15  # all of it is null


class JsonWriteStep(NamedTuple):
    kind: int
    # Of an item: whether it may be null. A part of a struct that is null is left out.
    null_fits: int = 0
    a: int = 0
    b: int = 0
    children: tuple[int, ...] = ()
