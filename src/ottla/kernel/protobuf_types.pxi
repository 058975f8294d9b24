# cython: language_level=3
"""The types, labels and wire types of Protobuf, included by what reads messages and by what writes them."""

# The numbers of `protobuf_steps.py`; a test compares them.
cdef enum:
    TYPE_DOUBLE = 1
    TYPE_FLOAT = 2
    TYPE_INT64 = 3
    TYPE_UINT64 = 4
    TYPE_INT32 = 5
    TYPE_FIXED64 = 6
    TYPE_FIXED32 = 7
    TYPE_BOOL = 8
    TYPE_STRING = 9
    TYPE_GROUP = 10
    TYPE_MESSAGE = 11
    TYPE_BYTES = 12
    TYPE_UINT32 = 13
    TYPE_ENUM = 14
    TYPE_SFIXED32 = 15
    TYPE_SFIXED64 = 16
    TYPE_SINT32 = 17
    TYPE_SINT64 = 18
    TYPE_TIMESTAMP = 21
    TYPE_WRAPPER = 22

cdef enum:
    LABEL_IMPLICIT = 0
    LABEL_PRESENT = 1
    LABEL_REPEATED = 2
    LABEL_MAP = 3

cdef enum:
    WIRE_VARINT = 0
    WIRE_64 = 1
    WIRE_BYTES = 2
    WIRE_GROUP = 3
    WIRE_END = 4
    WIRE_32 = 5


cdef inline int64_t wire_of(int64_t kind) noexcept nogil:
    if kind == TYPE_DOUBLE or kind == TYPE_FIXED64 or kind == TYPE_SFIXED64:
        return WIRE_64
    if kind == TYPE_FLOAT or kind == TYPE_FIXED32 or kind == TYPE_SFIXED32:
        return WIRE_32
    if kind == TYPE_GROUP:
        return WIRE_GROUP
    if kind == TYPE_STRING or kind == TYPE_BYTES or kind >= TYPE_TIMESTAMP or kind == TYPE_MESSAGE:
        return WIRE_BYTES
    return WIRE_VARINT
