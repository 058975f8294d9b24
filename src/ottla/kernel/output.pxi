# cython: language_level=3
"""Bytes that encoders of values fill, included by each of them, and a look into Arrow's own."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

import pyarrow as pa

from ottla.kernel.avro_steps import Unwritable

# The numbers of `avro_steps.py`; a test compares them.
cdef enum:
    TOO_SHORT = 2
    BAD_NUMBER = 4
    BAD_BRANCH = 5
    BAD_SYMBOL = 6
    TOO_DEEP = 8
    REFUSED = 10
    TOO_LARGE = 12
    NO_MEMORY = 100

cdef enum:
    DECIMAL_BYTES = 16
    VARINT_BYTES_MAX = 10


cdef class Output:
    """Bytes that grow. Once Arrow has it, nobody writes to it any more."""

    cdef uint8_t* data
    cdef int64_t size
    cdef int64_t capacity

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)

    cdef int reserve(self, int64_t more) noexcept nogil:
        cdef int64_t wanted = self.size + more
        cdef void* moved
        if wanted <= self.capacity:
            return 0
        wanted = max(wanted, self.capacity * 2, 4096)
        moved = realloc(self.data, wanted)
        if moved == NULL:
            return NO_MEMORY
        self.data = <uint8_t*>moved
        self.capacity = wanted
        return 0

    cdef inline int append(self, const void* data, int64_t size) noexcept nogil:
        if self.size + size > self.capacity and self.reserve(size) != 0:
            return NO_MEMORY
        memcpy(self.data + self.size, data, size)
        self.size += size
        return 0

    cdef inline int number(self, int64_t value) noexcept nogil:
        """Zigzag, as Avro has them."""
        return self.raw((<uint64_t>value << 1) ^ <uint64_t>(value >> 63))

    cdef inline int raw(self, uint64_t raw) noexcept nogil:
        if self.size + VARINT_BYTES_MAX > self.capacity and self.reserve(VARINT_BYTES_MAX) != 0:
            return NO_MEMORY
        while raw > 0x7F:
            self.data[self.size] = <uint8_t>(raw & 0x7F | 0x80)
            self.size += 1
            raw >>= 7
        self.data[self.size] = <uint8_t>raw
        self.size += 1
        return 0


cdef const uint8_t* address(object buffer) except? NULL:
    return NULL if buffer is None else <const uint8_t*><uintptr_t>buffer.address
