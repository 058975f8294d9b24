"""What a program that decodes or encodes Protobuf is made of; both forms of the kernel carry it out.

A program is a list of messages, the first of which is the one that values are; a message is a list of fields in the
order of their columns. Fields name messages by their place in the list, and columns by theirs, as in `avro_steps.py`.
The names of enums are parts of `constants`; where they are is in `edges`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

# Of messages and groups within one another: what protobuf's own runtimes allow.
NESTED_MAX = 100


class Type(IntEnum):
    """The numbers of protobuf's own descriptors, and two more."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18
    TIMESTAMP = 21  # the message of that name, whose first two fields are seconds and nanoseconds
    WRAPPER = 22  # a message of one field, which is all that is of interest


class Label(IntEnum):
    IMPLICIT = 0  # its default where it is not there
    PRESENT = 1  # null where it is not there
    REPEATED = 2
    MAP = 3


class FieldStep(NamedTuple):
    number: int
    kind: int
    label: int
    # Which of the message's oneofs it belongs to; -1: none.
    oneof: int
    # Where a single value goes.
    column: int
    # The list or the map that the column is within; -1: none.
    outer: int
    # Of messages, which one; of an enum, the edge with its first number: a number, where its name begins, how long it
    # is; by numbers, smallest first.
    a: int = 0
    # Of an enum: how many numbers it has.
    b: int = 0
    # Of an enum: whether numbers that it does not have are as if they were not there (proto2), or are text (proto3).
    is_closed: int = 0
    # Of an enum: the number that is its default.
    default: int = 0


class MessageStep(NamedTuple):
    """`column`: its struct; -1: none."""

    column: int
    oneof_count: int
    fields: tuple[FieldStep, ...]


# --- the other way


class FieldWrite(NamedTuple):
    number: int
    kind: int
    label: int
    oneof: int
    # Among the parts of the struct.
    place: int
    # Repeated numbers: one length for all of them.
    is_packed: int = 0
    # It has to be there (proto2).
    is_required: int = 0
    a: int = 0
    b: int = 0
    is_closed: int = 0
    default: int = 0


class MessageWrite(NamedTuple):
    oneof_count: int
    fields: tuple[FieldWrite, ...]
