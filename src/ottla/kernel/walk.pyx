# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The walk over the records of a batch, compiled: the twin of `walk_pure.py`, with the same verdicts in the same words.

It runs without the interpreter lock, so a thread that is at it does not hold up the event loop. Every read is compared
with the end of the buffer first, so no bytes can make this read outside of it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from ottla.kernel import walk_pure
from ottla.kernel.errors import CorruptRecords
from ottla.kernel.walk_pure import Keyless

cdef extern from "text.h":
    bint ottla_is_utf8(const uint8_t* data, size_t size) nogil

cdef enum:
    NAMED_MAX = 100
    RECORD_BYTES_MIN = 7

assert NAMED_MAX == walk_pure.NAMED_MAX

cdef enum Fault:
    NONE
    ENDS_INSIDE
    LONG_VARINT
    WIDE_VARINT
    PAST_BATCH
    OTHER_DELTA
    BAD_LENGTH
    PAST_RECORD
    BAD_HEADERS
    NAMELESS_HEADER
    NOT_UTF8
    OTHER_LENGTH
    LEFT_OVER

_WORDS = {
    ENDS_INSIDE: "the batch ends inside a record",
    LONG_VARINT: "varint is longer than ten bytes",
    WIDE_VARINT: "varint has more than 64 bits",
    PAST_BATCH: "a record runs past its batch",
    OTHER_DELTA: "record {number} has offset delta {value}",
    BAD_LENGTH: "length {value}",
    PAST_RECORD: "a field runs past its record",
    BAD_HEADERS: "{value} headers",
    NAMELESS_HEADER: "a header without a key",
    NOT_UTF8: "a header key is not UTF-8",
    OTHER_LENGTH: "a record is not as long as it says",
    LEFT_OVER: "the batch has bytes left over",
}

cdef struct Walk:
    const uint8_t* data
    Py_ssize_t size
    Py_ssize_t at
    # The record that is looked at, and the number that was read last: a fault is told with them.
    int64_t number
    int64_t value
    int64_t missing
    int64_t first[NAMED_MAX]


def keyless_records(data, int64_t count):
    cdef Walk walk
    cdef Py_buffer view
    cdef Fault fault
    cdef int64_t index
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if count > view.len // RECORD_BYTES_MIN:
            raise CorruptRecords(f"{count} records cannot be in {view.len} bytes")
        walk.data, walk.size = <const uint8_t*>view.buf, view.len
        walk.at = walk.number = walk.value = walk.missing = 0
        with nogil:
            fault = walk_batch(&walk, count)
    finally:
        PyBuffer_Release(&view)
    if fault != NONE:
        raise CorruptRecords(_WORDS[fault].format(number=walk.number, value=walk.value))
    return Keyless(walk.missing, [walk.first[index] for index in range(min(walk.missing, NAMED_MAX))])


cdef Fault walk_batch(Walk* walk, int64_t count) noexcept nogil:
    cdef Fault fault
    while walk.number < count:
        fault = walk_record(walk)
        if fault != NONE:
            return fault
        walk.number += 1
    return NONE if walk.at == walk.size else LEFT_OVER


cdef Fault walk_record(Walk* walk) noexcept nogil:
    cdef Fault fault
    cdef Py_ssize_t end
    cdef bint has_key
    fault = read_varint(walk)
    if fault != NONE:
        return fault
    if walk.value < 0 or walk.value > walk.size - walk.at:
        return PAST_BATCH
    end = walk.at + walk.value
    walk.at += 1  # attributes, then time
    fault = read_varint(walk)
    if fault != NONE:
        return fault
    fault = read_varint(walk)
    if fault != NONE:
        return fault
    if walk.value != walk.number:
        return OTHER_DELTA
    fault = skip_field(walk, end)
    if fault != NONE:
        return fault
    has_key = walk.value >= 0
    fault = skip_field(walk, end)
    if fault != NONE:
        return fault
    fault = read_varint(walk)
    if fault != NONE:
        return fault
    if walk.value < 0 or walk.value > end - walk.at:
        return BAD_HEADERS
    if walk.value:
        fault = walk_headers(walk, end, walk.value)
        if fault != NONE:
            return fault
    if walk.at != end:
        return OTHER_LENGTH
    if not has_key:
        if walk.missing < NAMED_MAX:
            walk.first[walk.missing] = walk.number
        walk.missing += 1
    return NONE


cdef Fault walk_headers(Walk* walk, Py_ssize_t end, int64_t count) noexcept nogil:
    cdef Fault fault
    while count:
        count -= 1
        fault = read_varint(walk)
        if fault != NONE:
            return fault
        if walk.value < 0:
            return NAMELESS_HEADER
        if walk.value > end - walk.at:
            return PAST_RECORD
        if not ottla_is_utf8(walk.data + walk.at, walk.value):
            return NOT_UTF8
        walk.at += walk.value
        fault = skip_field(walk, end)
        if fault != NONE:
            return fault
    return NONE


cdef inline Fault skip_field(Walk* walk, Py_ssize_t end) noexcept nogil:
    """Past a key or a value, whose size stays behind in `value`."""
    cdef Fault fault = read_varint(walk)
    if fault != NONE:
        return fault
    if walk.value < -1:
        return BAD_LENGTH
    if max(walk.value, 0) > end - walk.at:
        return PAST_RECORD
    walk.at += max(walk.value, 0)
    return NONE


cdef inline Fault read_varint(Walk* walk) noexcept nogil:
    """Where `at` is, into `value`. Like `ottla_varint`, and says what is wrong."""
    cdef uint64_t raw = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if walk.at >= walk.size:
            return ENDS_INSIDE
        byte = walk.data[walk.at]
        walk.at += 1
        raw |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if shift == 63 and byte > 1:
                return WIDE_VARINT
            walk.value = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
            return NONE
        shift += 7
        if shift > 63:
            return LONG_VARINT
