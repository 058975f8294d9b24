"""What a program that decodes or encodes Avro is made of; both forms of the kernel carry it out.

A program is a list of steps, each a tuple of five numbers: what is done, the column that it concerns (-1: none, the
bytes are passed over), and three more whose meaning depends on the first. Steps name other steps by their index, so a
schema that contains itself is a program with a loop. Where a step needs a list, it is a part of `edges`, from `a` on;
texts and defaults are parts of `constants`.

Columns are a list too: the kind of each, and the columns within it. Column 0 is a struct, one row for each record.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What a column is in memory. Which type of Arrow's it has is said when it is finished."""

    NULL = 0
    BOOLEAN = 1
    INT32 = 2
    INT64 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6  # text too
    DECIMAL = 7  # 16 bytes
    LIST = 8  # of its one child
    MAP = 9  # its children are the keys, which are text, and the values
    STRUCT = 10


class Step(IntEnum):
    NULL = 0  # reads nothing, the column gets a null
    BOOLEAN = 1
    INT = 2
    LONG = 3  # times a, divided by b
    LONG_TO_FLOAT = 4
    LONG_TO_DOUBLE = 5
    FLOAT = 6
    FLOAT_TO_DOUBLE = 7
    DOUBLE = 8
    BYTES = 9
    STRING = 10  # bytes that have to be UTF-8
    FIXED = 11  # a bytes
    DECIMAL = 12  # bytes, of which the number has at most a digits
    DECIMAL_FIXED = 13  # of b bytes
    ENUM = 14  # b symbols; edges from a: where each begins in the constants and how long it is; -1: not known
    ARRAY = 15  # items by step a
    MAP = 16  # values by step a
    RECORD = 17  # b steps, edges from a
    UNION = 18  # one of b steps, edges from a, by the number that is read
    MEMBER = 19  # step a into child b of the column, the other children get a null
    DEFAULT = 20  # step a, on c bytes of the constants from b
    REFUSE = 21  # what the writer has written here, the reader does not take; a: which sentence
    SKIP_VARINT = 22
    SKIP_BYTES = 23
    SKIP_FIXED = 24  # a bytes
    SKIP_ARRAY = 25  # items by step a
    SKIP_MAP = 26


class Fault(IntEnum):
    """Why a value is bad."""

    NOT_FRAMED = 1
    TOO_SHORT = 2
    LEFT_OVER = 3
    BAD_NUMBER = 4
    BAD_BRANCH = 5
    BAD_SYMBOL = 6
    BAD_TEXT = 7
    TOO_DEEP = 8
    TOO_MANY = 9
    REFUSED = 10
    NO_PROGRAM = 11
    TOO_LARGE = 12
    OTHER_MESSAGE = 13
    BAD_FORM = 14


SENTENCES = {
    Fault.NOT_FRAMED: "the value has no id of a schema before it: it was not written with a registry",
    Fault.TOO_SHORT: "the value ends too early",
    Fault.LEFT_OVER: "the value goes on after its end",
    Fault.BAD_NUMBER: "a number does not fit its type",
    Fault.BAD_BRANCH: "the value has a branch that its union does not have",
    Fault.BAD_SYMBOL: "the value has a symbol of an enum that the reader does not know",
    Fault.BAD_TEXT: "a text is not UTF-8",
    Fault.TOO_DEEP: "the value is nested too deeply",
    Fault.TOO_MANY: "an array or a map has more items than the value has bytes",
    Fault.TOO_LARGE: "a column is too large for Arrow",
    Fault.OTHER_MESSAGE: "the value is another message of its file",
    Fault.BAD_FORM: "the value is not in the form of its format",
}

# Of steps within steps, which only a schema that contains itself has many of.
DEPTH_MAX = 200
# Of items that take no bytes, as nulls do, a value has few, or it is a trap.
EMPTY_ITEMS_MAX = 1_000
HEAD_BYTES = 5


class ColumnShape(NamedTuple):
    kind: int
    children: tuple[int, ...] = ()


class Bad(NamedTuple):
    """A row that could not be decoded. `which`: of Fault.REFUSED, the sentence; of Fault.NO_PROGRAM, the id."""

    row: int
    fault: int
    which: int = 0


# --- the other way


class Write(IntEnum):
    """How a column becomes bytes. Children are further steps, each with its place among the parts of the column."""

    CONSTANT = 0  # b bytes of the constants from a; no column
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4  # times a, divided by b
    FLOAT = 5
    DOUBLE = 6
    BYTES = 7
    FIXED = 8  # of a bytes
    DECIMAL = 9
    DECIMAL_FIXED = 10  # of a bytes
    ENUM = 11  # b symbols; edges from a: where each begins in the constants and how long it is
    ARRAY = 12
    MAP = 13
    RECORD = 14
    MEMBERS = 15  # a struct, of whose parts one is written


class WriteStep(NamedTuple):
    """`null_branch`, `branch`: the numbers of null and of this type in their union; -1: there is none."""

    kind: int
    null_branch: int = -1
    branch: int = -1
    a: int = 0
    b: int = 0
    # (step, place among the parts of the struct; of a constant it does not matter)
    children: tuple[tuple[int, int], ...] = ()


class Unwritable(Exception):
    """A row that its schema does not take: `step` is where."""

    def __init__(self, row: int, step: int, fault: int) -> None:
        super().__init__(row, step, fault)
        self.row, self.step, self.fault = row, step, fault


WRITE_SENTENCES = {
    Fault.BAD_BRANCH: "is null, and the schema does not allow that",
    Fault.BAD_NUMBER: "has a number that does not fit",
    Fault.BAD_SYMBOL: "is no symbol of its enum",
    Fault.TOO_SHORT: "has another length than its fixed type",
    Fault.TOO_LARGE: "makes the values of a batch larger than Arrow takes",
}
