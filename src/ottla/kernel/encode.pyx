# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows to record batches, compiled: the twin of `encode_pure.py`, whose opening text is valid here too.

Each slot has a bytes object of its own that grows as records come, with room for the header of the batch before them.
A record is measured first and then written once: where nothing is compressed, that object is the batch.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport _PyBytes_Resize, PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from array import array

import pyarrow as pa

from ottla.kernel.compressing import Compressor
from ottla.kernel.encode_pure import TRANSACTIONAL_BIT, Encoded

cdef extern from "bytes.h":
    void ottla_crc_prepare()
    uint32_t ottla_crc32c(const uint8_t* data, size_t size) nogil

ottla_crc_prepare()
_BINARY = pa.binary()
_STRING = pa.string()

cdef enum:
    HEADER_SIZE = 61
    FIRST_BYTES = 4096


# --- Arrow columns ---------------------------------------------------------------------------------------------------

cdef struct Column:
    const uint8_t* validity
    const int32_t* offsets
    const uint8_t* data
    int64_t start


cdef const uint8_t* _address(object buffer) except? NULL:
    if buffer is None:
        return NULL
    return <const uint8_t*><uintptr_t>buffer.address


cdef object _open_column(object column, Column* out):
    """Fills `out` and gives the array that must stay alive as long as it is used."""
    if column.type != _BINARY and column.type != _STRING:
        column = column.cast(_BINARY)
    validity, offsets, data = column.buffers()
    out.validity = _address(validity) if column.null_count else NULL
    out.offsets = <const int32_t*>_address(offsets)
    out.data = _address(data)
    out.start = column.offset
    return column


cdef inline bint _is_null(const uint8_t* validity, int64_t at) noexcept nogil:
    return validity != NULL and not (validity[at >> 3] >> (at & 7)) & 1


cdef inline int32_t _size(const Column* column, int64_t row) noexcept nogil:
    """-1 for null."""
    cdef int64_t at = column.start + row
    if _is_null(column.validity, at):
        return -1
    return column.offsets[at + 1] - column.offsets[at]


cdef inline const uint8_t* _bytes(const Column* column, int64_t row) noexcept nogil:
    return column.data + column.offsets[column.start + row]


# --- where rows go ---------------------------------------------------------------------------------------------------

cdef uint32_t _murmur2(const uint8_t* data, int32_t length) noexcept nogil:
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>length
    cdef uint32_t k
    cdef int32_t at = 0
    while length - at >= 4:
        k = data[at] | <uint32_t>data[at + 1] << 8 | <uint32_t>data[at + 2] << 16 | <uint32_t>data[at + 3] << 24
        k *= <uint32_t>0x5BD1E995
        k ^= k >> 24
        h = (h * <uint32_t>0x5BD1E995) ^ (k * <uint32_t>0x5BD1E995)
        at += 4
    if length - at >= 3:
        h ^= <uint32_t>data[at + 2] << 16
    if length - at >= 2:
        h ^= <uint32_t>data[at + 1] << 8
    if length - at >= 1:
        h ^= data[at]
        h *= <uint32_t>0x5BD1E995
    h ^= h >> 13
    h *= <uint32_t>0x5BD1E995
    return h ^ (h >> 15)


def partition_for_key(bytes key, int partitions):
    return (_murmur2(<const uint8_t*>PyBytes_AS_STRING(key), len(key)) & 0x7FFFFFFF) % <uint32_t>partitions


def route(keys, partitions, topics, bases, counts, sticky):
    cdef Column key
    cdef int64_t rows = len(keys), row, start = 0
    cdef int32_t topic = 0, partition, size
    cdef const uint8_t* validity = NULL
    cdef const int32_t* named = NULL
    cdef const int32_t* indexes = NULL
    cdef int[::1] base = array("i", bases), count = array("i", counts), stays = array("i", sticky)
    slots = array("i", bytes(4 * rows))
    cdef int[::1] out = slots if rows else array("i", [0])
    keys = _open_column(keys, &key)
    if partitions is not None:
        bits, numbers = partitions.buffers()
        validity = _address(bits) if partitions.null_count else NULL
        named = <const int32_t*>_address(numbers)
        start = partitions.offset
    if topics is not None:
        indexes = <const int32_t*>_address(topics.buffers()[1]) + <int64_t>topics.offset
    for row in range(rows):
        if indexes != NULL:
            topic = indexes[row]
        if named != NULL and not _is_null(validity, start + row):
            partition = named[start + row]
            if not 0 <= partition < count[topic]:
                raise ValueError(f"partition {partition} is not one of the {count[topic]} of its topic")
        else:
            size = _size(&key, row)
            if size < 0:
                partition = stays[topic]
            else:
                partition = (_murmur2(_bytes(&key, row), size) & 0x7FFFFFFF) % <uint32_t>count[topic]
        out[row] = base[topic] + partition
    return slots


# --- records ---------------------------------------------------------------------------------------------------------

cdef inline int _varint_size(int64_t value) noexcept nogil:
    cdef uint64_t z = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while z > 0x7F:
        z >>= 7
        size += 1
    return size


cdef inline uint8_t* _put_varint(uint8_t* at, int64_t value) noexcept nogil:
    cdef uint64_t z = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while z > 0x7F:
        at[0] = <uint8_t>(z & 0x7F | 0x80)
        z >>= 7
        at += 1
    at[0] = <uint8_t>z
    return at + 1


cdef inline int64_t _field_size(int32_t size) noexcept nogil:
    return 1 if size < 0 else _varint_size(size) + size


cdef inline uint8_t* _put_field(uint8_t* at, const Column* column, int64_t row, int32_t size) noexcept nogil:
    at = _put_varint(at, size)
    if size > 0:
        memcpy(at, _bytes(column, row), size)
        at += size
    return at


cdef inline void _put_big(uint8_t* at, uint64_t value, int size) noexcept nogil:
    cdef int index
    for index in range(size):
        at[size - 1 - index] = <uint8_t>(value >> (8 * index))


cdef struct Row:
    int64_t number
    int64_t timestamp
    int32_t key_size
    int32_t value_size
    # Where the headers of this row begin and how many there are.
    int64_t headers_at
    int32_t headers
    int64_t headers_size


cdef struct Slot:
    # A bytes object that nobody else has; NULL before the first record of a batch.
    PyObject* batch
    # Of the records, and how many there is room for.
    size_t size
    size_t capacity
    int64_t base_timestamp
    int64_t max_timestamp
    int32_t count


cdef inline uint8_t* _of(PyObject* batch) noexcept:
    return <uint8_t*>PyBytes_AS_STRING(<object>batch)


cdef PyObject* _new_bytes(size_t size) except NULL:
    """One reference, which is the caller's."""
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size)
    Py_INCREF(made)
    return <PyObject*>made


cdef int _resize(Slot* slot, size_t records_size) except -1:
    """Where there is no memory for it, nothing is left of the batch."""
    try:
        return _PyBytes_Resize(&slot.batch, HEADER_SIZE + records_size)
    except MemoryError:
        slot.size = slot.capacity = 0
        slot.count = 0
        raise


cdef class BatchEncoder:
    cdef Slot* _slots
    cdef int32_t _slot_count
    cdef size_t _open_bytes, _open_bytes_max, _batch_bytes
    cdef int _codec, _attributes
    cdef object _compressor
    cdef Column _keys, _values, _header_keys, _header_values

    def __init__(self, *, int codec=0, level=None, size_t batch_bytes=524288, size_t open_bytes=67108864,
                 bint transactional=True):
        self._codec = codec
        self._compressor = Compressor(codec, level)
        self._batch_bytes = batch_bytes
        self._open_bytes_max = open_bytes
        self._attributes = TRANSACTIONAL_BIT if transactional else 0

    def __dealloc__(self):
        cdef int32_t slot
        for slot in range(self._slot_count):
            Py_XDECREF(self._slots[slot].batch)
        free(self._slots)

    def append(self, slots, keys, values, headers, timestamps):
        cdef int64_t rows = len(keys), row
        cdef const int64_t* times = <const int64_t*>_address(timestamps.buffers()[1]) + <int64_t>timestamps.offset
        cdef const int32_t* list_offsets = NULL
        cdef const uint8_t* list_validity = NULL
        cdef int64_t list_start = 0
        cdef Row one
        cdef list done = []
        if not rows:
            return done
        cdef int[::1] targets = slots
        held = [_open_column(keys, &self._keys), _open_column(values, &self._values)]
        if headers is not None:
            entries = headers.values
            held.append(_open_column(entries.field("key"), &self._header_keys))
            held.append(_open_column(entries.field("value"), &self._header_values))
            bits, offsets = headers.buffers()[:2]
            list_validity = _address(bits) if headers.null_count else NULL
            list_offsets = <const int32_t*>_address(offsets)
            list_start = headers.offset
        self._make_room(max(slots) + 1)
        for row in range(rows):
            one.number = row
            one.timestamp = times[row]
            one.key_size = _size(&self._keys, row)
            one.value_size = _size(&self._values, row)
            one.headers = 0
            one.headers_size = 0
            if list_offsets != NULL and not _is_null(list_validity, list_start + row):
                one.headers_at = list_offsets[list_start + row]
                one.headers = list_offsets[list_start + row + 1] - <int32_t>one.headers_at
                one.headers_size = self._measure_headers(&one)
            self._add(targets[row], &one, done)
            if self._open_bytes > self._open_bytes_max:
                done += self.finish()
        return done

    def finish(self):
        cdef int32_t slot
        return [self._close(slot) for slot in range(self._slot_count) if self._slots[slot].count]

    cdef int _make_room(self, int32_t count) except -1:
        cdef Slot* grown
        if count <= self._slot_count:
            return 0
        grown = <Slot*>realloc(self._slots, count * sizeof(Slot))
        if grown == NULL:
            raise MemoryError
        memset(grown + self._slot_count, 0, (count - self._slot_count) * sizeof(Slot))
        self._slots = grown
        self._slot_count = count
        return 0

    cdef int64_t _measure_headers(self, Row* row) noexcept:
        cdef int64_t size = 0
        cdef int32_t index
        for index in range(row.headers):
            size += _field_size(max(0, _size(&self._header_keys, row.headers_at + index)))
            size += _field_size(_size(&self._header_values, row.headers_at + index))
        return size

    cdef int _add(self, int32_t slot, Row* row, list done) except -1:
        cdef Slot* open_slot = &self._slots[slot]
        cdef int64_t fixed = (
            1 + _field_size(row.key_size) + _field_size(row.value_size) + _varint_size(row.headers) + row.headers_size
        )
        cdef int64_t body, size
        if not open_slot.count:
            open_slot.base_timestamp = open_slot.max_timestamp = row.timestamp
        body = fixed + _varint_size(row.timestamp - open_slot.base_timestamp) + _varint_size(open_slot.count)
        size = body + _varint_size(body)
        if open_slot.count and open_slot.size + size > self._batch_bytes:
            done.append(self._close(slot))
            open_slot.base_timestamp = open_slot.max_timestamp = row.timestamp
            body = fixed + 2
            size = body + _varint_size(body)
        self._reserve(open_slot, size)
        self._write(open_slot, row, body)
        open_slot.size += size
        open_slot.count += 1
        if row.timestamp > open_slot.max_timestamp:
            open_slot.max_timestamp = row.timestamp
        self._open_bytes += size
        return 0

    cdef int _reserve(self, Slot* slot, size_t size) except -1:
        if slot.batch == NULL:
            # As much as the batch before had: most likely this one is like it.
            slot.capacity = max(size, slot.capacity, <size_t>FIRST_BYTES)
            slot.batch = _new_bytes(HEADER_SIZE + slot.capacity)
        elif slot.size + size > slot.capacity:
            slot.capacity = max(slot.size + size, slot.capacity * 2)
            _resize(slot, slot.capacity)
        return 0

    cdef void _write(self, Slot* slot, Row* row, int64_t body) noexcept:
        cdef uint8_t* at = _of(slot.batch) + HEADER_SIZE + slot.size
        cdef int32_t index
        at = _put_varint(at, body)
        at[0] = 0  # record attributes: none are defined
        at = _put_varint(at + 1, row.timestamp - slot.base_timestamp)
        at = _put_varint(at, slot.count)
        at = _put_field(at, &self._keys, row.number, row.key_size)
        at = _put_field(at, &self._values, row.number, row.value_size)
        at = _put_varint(at, row.headers)
        for index in range(row.headers):
            at = _put_field(at, &self._header_keys, row.headers_at + index,
                            max(0, _size(&self._header_keys, row.headers_at + index)))
            at = _put_field(at, &self._header_values, row.headers_at + index,
                            _size(&self._header_values, row.headers_at + index))

    cdef object _close(self, int32_t number):
        cdef Slot* slot = &self._slots[number]
        cdef int32_t count = slot.count
        cdef int attributes = self._attributes
        cdef bytes body = None, batch
        cdef size_t size = slot.size
        cdef uint8_t* out
        if self._codec:
            records = PyMemoryView_FromMemory(<char*>_of(slot.batch) + HEADER_SIZE, slot.size, PyBUF_READ)
            body = self._compressor.compress(records)
        if body is None:
            _resize(slot, size)
            batch = <bytes>slot.batch
            Py_DECREF(batch)  # it was the slot's
            slot.batch = NULL
        else:
            size = len(body)
            attributes |= self._codec
            batch = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + size)
            memcpy(PyBytes_AS_STRING(batch) + HEADER_SIZE, PyBytes_AS_STRING(body), size)
        out = <uint8_t*>PyBytes_AS_STRING(batch)
        self._write_header(out, slot, size, attributes)
        _put_big(out + 17, ottla_crc32c(out + 21, HEADER_SIZE - 21 + size), 4)
        self._open_bytes -= slot.size
        slot.size = 0
        slot.count = 0
        return number, batch, count

    cdef void _write_header(self, uint8_t* out, Slot* slot, size_t size, int attributes) noexcept:
        memset(out, 0, 8)  # base offset: the broker's
        _put_big(out + 8, HEADER_SIZE - 12 + size, 4)
        memset(out + 12, 0xFF, 4)  # leader epoch: the broker's
        out[16] = 2
        _put_big(out + 21, attributes, 2)
        _put_big(out + 23, slot.count - 1, 4)
        _put_big(out + 27, <uint64_t>slot.base_timestamp, 8)
        _put_big(out + 35, <uint64_t>slot.max_timestamp, 8)
        memset(out + 43, 0xFF, 14)  # producer id, epoch, sequence: none yet
        _put_big(out + 57, slot.count, 4)
