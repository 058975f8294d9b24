# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Record batches (v2) to Arrow columns, compiled: the twin of `decode_pure.py`, whose opening text is valid here too.

Columns grow in memory of our own that Arrow then takes over without a copy. Every read is compared with the end of its
buffer first, so no bytes can make this read or write outside of it: what does not add up is CorruptRecords.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import pyarrow as pa

from ottla.kernel import codecs
from ottla.kernel.errors import CorruptRecords

cdef extern from "bytes.h":
    void ottla_crc_prepare()
    uint32_t ottla_crc32c(const uint8_t* data, size_t size) nogil
    uint32_t ottla_crc_by_tables(const uint8_t* data, size_t size) nogil
    const uint8_t* ottla_varint(const uint8_t* at, const uint8_t* end, int64_t* value) nogil
    int64_t ottla_micros(int64_t ms, int64_t more_ms) nogil

ottla_crc_prepare()

cdef enum:
    HEADER_BYTES = 61
    OVERHEAD_BYTES = 12
    CRC_FROM = 21
    CODEC = 0x07
    APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    HEADERS_MAX = 1000000
    HEADER_COST_BYTES = 8

cdef int64_t OFFSET_MAX = <int64_t>1 << 62

ROWS_MAX = 10_000
BYTES_MAX = 8 * 1024 * 1024
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

_BINARY = pa.binary()
_STRING = pa.string()
_INT32 = pa.int32()
_INT64 = pa.int64()
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_PAIR = pa.struct([pa.field("key", _STRING), pa.field("value", _BINARY)])
HEADERS_TYPE = pa.list_(pa.field("element", _PAIR))


def crc32c(data):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return ottla_crc32c(<const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def crc32c_by_tables(data):
    """What processors without the instruction use; here so that it is tested on those that have it."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return ottla_crc_by_tables(<const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


# --- columns


cdef class Memory:
    """Bytes that grow. Once Arrow has it, nobody writes to it any more."""

    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)

    cdef int reserve(self, Py_ssize_t more) except -1:
        """Room for `more` bytes after `size`."""
        cdef Py_ssize_t wanted = self.size + more
        cdef void* moved
        if wanted <= self.capacity:
            return 0
        wanted = max(wanted, self.capacity * 2, 1024)
        moved = realloc(self.data, wanted)
        if moved == NULL:
            raise MemoryError()
        self.data = <uint8_t*>moved
        self.capacity = wanted
        return 0

    cdef inline int append(self, const void* data, Py_ssize_t size) except -1:
        self.reserve(size)
        memcpy(self.data + self.size, data, size)
        self.size += size
        return 0


cdef object as_arrow(Memory memory):
    # Arrow ends the process when it meets an empty buffer that is nowhere.
    return pa.py_buffer(memory if memory.size else b"")


cdef class Numbers:
    cdef Memory memory

    def __cinit__(self):
        self.memory = Memory()

    cdef inline int append64(self, int64_t value) except -1:
        return self.memory.append(&value, 8)

    cdef inline int append32(self, int32_t value) except -1:
        return self.memory.append(&value, 4)

    cdef object array(self, object type_, Py_ssize_t count):
        return pa.Array.from_buffers(type_, count, [None, as_arrow(self.memory)])


cdef class Texts:
    """A column of byte strings: where each ends, all of them in a row, and which are null."""

    cdef Memory ends
    cdef Memory content
    cdef Memory valid
    cdef Py_ssize_t count
    cdef Py_ssize_t nulls

    def __cinit__(self):
        cdef int32_t zero = 0
        self.ends, self.content, self.valid = Memory(), Memory(), Memory()
        self.ends.append(&zero, 4)

    cdef inline int append(self, const uint8_t* data, int64_t size) except -1:
        """A `size` of -1 is null."""
        cdef int32_t end
        self.mark(size >= 0)
        if size > 0:
            if self.content.size + size > 0x7FFFFFFF:
                raise CorruptRecords("a piece of a batch is too large for Arrow")
            self.content.append(data, size)
        end = <int32_t>self.content.size
        return self.ends.append(&end, 4)

    cdef inline int mark(self, bint is_valid) except -1:
        cdef Py_ssize_t byte = self.count >> 3
        if byte >= self.valid.size:
            self.valid.reserve(64)
            memset(self.valid.data + self.valid.size, 0, 64)
            self.valid.size += 64
        if is_valid:
            self.valid.data[byte] |= <uint8_t>(1 << (self.count & 7))
        else:
            self.nulls += 1
        self.count += 1
        return 0

    cdef object array(self, object type_):
        valid = as_arrow(self.valid) if self.nulls else None
        buffers = [valid, as_arrow(self.ends), as_arrow(self.content)]
        return pa.Array.from_buffers(type_, self.count, buffers, self.nulls)


cdef class Piece:
    """The rows that become one set of arrays."""

    cdef Texts keys
    cdef Texts values
    cdef Numbers offsets
    cdef Numbers stamps
    cdef Numbers kinds
    cdef Texts header_keys
    cdef Texts header_values
    cdef Memory header_ends
    cdef Memory header_valid
    cdef Py_ssize_t header_nulls
    cdef Py_ssize_t rows
    cdef Py_ssize_t bytes

    def __cinit__(self, bint with_headers):
        cdef int32_t zero = 0
        self.keys, self.values = Texts(), Texts()
        self.offsets, self.stamps, self.kinds = Numbers(), Numbers(), Numbers()
        if with_headers:
            self.header_keys, self.header_values = Texts(), Texts()
            self.header_ends, self.header_valid = Memory(), Memory()
            self.header_ends.append(&zero, 4)

    cdef int end_headers(self, bint has_any) except -1:
        """After the headers of a row; a row without any is null, as Spark's own connector has it."""
        cdef int32_t end = <int32_t>self.header_keys.count
        cdef Py_ssize_t byte = self.rows >> 3
        if byte >= self.header_valid.size:
            self.header_valid.reserve(64)
            memset(self.header_valid.data + self.header_valid.size, 0, 64)
            self.header_valid.size += 64
        if has_any:
            self.header_valid.data[byte] |= <uint8_t>(1 << (self.rows & 7))
        else:
            self.header_nulls += 1
        return self.header_ends.append(&end, 4)

    cdef list arrays(self):
        columns = [
            self.keys.array(_BINARY),
            self.values.array(_BINARY),
            self.offsets.array(_INT64, self.rows),
            self.stamps.array(_TIMESTAMP, self.rows),
            self.kinds.array(_INT32, self.rows),
        ]
        if self.header_keys is not None:
            children = [self.header_keys.array(_STRING), self.header_values.array(_BINARY)]
            pairs = pa.Array.from_buffers(_PAIR, self.header_keys.count, [None], children=children)
            valid = as_arrow(self.header_valid) if self.header_nulls else None
            buffers = [valid, as_arrow(self.header_ends)]
            columns.append(pa.Array.from_buffers(HEADERS_TYPE, self.rows, buffers, self.header_nulls, 0, [pairs]))
        return columns


# --- batches


cdef struct Header:
    int64_t base
    int32_t length
    uint32_t crc
    int16_t attributes
    int32_t last_delta
    int64_t base_ms
    int64_t max_ms
    int64_t producer_id
    int32_t count


cdef inline uint64_t big_endian(const uint8_t* data, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int index
    for index in range(size):
        value = value << 8 | data[index]
    return value


cdef int read_header(const uint8_t* data, Header* header) except -1:
    """Of the HEADER_BYTES that are known to be there."""
    cdef int8_t magic = <int8_t>data[16]
    header.base = <int64_t>big_endian(data, 8)
    header.length = <int32_t>big_endian(data + 8, 4)
    header.crc = <uint32_t>big_endian(data + 17, 4)
    header.attributes = <int16_t>big_endian(data + 21, 2)
    header.last_delta = <int32_t>big_endian(data + 23, 4)
    header.base_ms = <int64_t>big_endian(data + 27, 8)
    header.max_ms = <int64_t>big_endian(data + 35, 8)
    header.producer_id = <int64_t>big_endian(data + 43, 8)
    header.count = <int32_t>big_endian(data + 57, 4)
    if magic != 2:
        raise CorruptRecords(f"a batch has the format {magic}: only format 2, of Kafka 0.11 and newer, is read")
    if (
        header.length < HEADER_BYTES - OVERHEAD_BYTES
        or header.last_delta < 0
        or header.base < 0
        or header.base > OFFSET_MAX
    ):
        raise CorruptRecords("the header of a batch does not add up")
    return 0


def fetched_until(data, int64_t start):
    """The offset after the last whole batch in `data`: where the next fetch begins. `start` if there is none."""
    cdef Py_buffer view
    cdef Header header
    cdef Py_ssize_t position = 0
    cdef int64_t until = start
    cdef const uint8_t* bytes_
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    bytes_ = <const uint8_t*>view.buf
    try:
        while position + HEADER_BYTES <= view.len:
            read_header(bytes_ + position, &header)
            if position + OVERHEAD_BYTES + header.length > view.len:
                break
            until = max(until, header.base + header.last_delta + 1)
            position += OVERHEAD_BYTES + header.length
        return until
    finally:
        PyBuffer_Release(&view)


cdef class Decoder:
    """The records with `start` <= offset < `end` in the `data` of one fetch answer, piece by piece."""

    cdef Py_buffer view
    cdef bint has_view
    cdef Py_ssize_t position
    # Where the batch begins that is being read, or was last.
    cdef Py_ssize_t open_from
    cdef int64_t start
    cdef int64_t end
    cdef bint with_headers
    cdef bint check_crcs
    cdef Py_ssize_t limit_bytes
    cdef list aborted
    cdef Py_ssize_t aborted_at
    cdef set open_aborted
    # The batch whose records are being read: it may take several pieces.
    cdef Header header
    cdef Py_buffer plain
    cdef bint has_plain
    cdef const uint8_t* at
    cdef const uint8_t* plain_end
    cdef int32_t left

    def __init__(
        self,
        data,
        int64_t start,
        int64_t end,
        aborted=(),
        bint with_headers=False,
        bint check_crcs=True,
        Py_ssize_t decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
    ):
        """`aborted` has (producer id, first offset) of each aborted transaction; leave it empty to read them too."""
        self.release()
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.has_view = True
        self.position = self.open_from = 0
        self.start, self.end = start, end
        self.with_headers, self.check_crcs = with_headers, check_crcs
        self.limit_bytes = decompressed_bytes_max
        self.aborted = sorted(aborted, key=lambda one: one[1])
        self.aborted_at = 0
        self.open_aborted = set()

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        self.release_plain()
        if self.has_view:
            self.has_view = False
            PyBuffer_Release(&self.view)

    cdef void release_plain(self) noexcept:
        self.at = NULL
        if self.has_plain:
            self.has_plain = False
            PyBuffer_Release(&self.plain)

    def next_columns(self, Py_ssize_t rows_max=ROWS_MAX, Py_ssize_t bytes_max=BYTES_MAX):
        """Arrays of key, value, offset, timestamp, timestamp type and, if wanted, headers; None after the last.

        Raises CorruptRecords."""
        cdef Piece piece = Piece(self.with_headers)
        # Most of what is left are values. Where they grow from nothing they are copied as often as they double.
        piece.values.content.reserve(min(bytes_max, self.view.len - self.open_from))
        while self.at != NULL or self.open_next():
            self.read_records(piece, rows_max, bytes_max)
            if piece.rows >= rows_max or (piece.rows and piece.bytes >= bytes_max):
                break
        return piece.arrays() if piece.rows else None

    cdef bint open_next(self) except -1:
        """Make the next batch that is wanted the one being read; False when there is none."""
        cdef const uint8_t* batch
        cdef Py_ssize_t size
        cdef int64_t last
        while self.position + HEADER_BYTES <= self.view.len:
            batch = <const uint8_t*>self.view.buf + self.position
            read_header(batch, &self.header)
            size = OVERHEAD_BYTES + <Py_ssize_t>self.header.length
            if self.position + size > self.view.len or self.header.base >= self.end:
                break
            self.position += size
            last = self.header.base + self.header.last_delta
            if self.aborted_at < len(self.aborted):
                self.open_transactions(last)
            if self.header.attributes & CONTROL:
                if self.open_aborted:
                    self.close_transaction(batch + HEADER_BYTES, batch + size)
                continue
            if last < self.start:
                continue
            if self.header.attributes & TRANSACTIONAL and self.open_aborted:
                if self.header.producer_id in self.open_aborted:
                    continue
            if self.check_crcs and ottla_crc32c(batch + CRC_FROM, size - CRC_FROM) != self.header.crc:
                raise CorruptRecords(f"the batch at offset {self.header.base} fails its checksum")
            self.open_from = self.position - size
            self.open_records(batch, size)
            return True
        return False

    cdef int open_transactions(self, int64_t last) except -1:
        while self.aborted_at < len(self.aborted) and self.aborted[self.aborted_at][1] <= last:
            self.open_aborted.add(self.aborted[self.aborted_at][0])
            self.aborted_at += 1
        return 0

    cdef int close_transaction(self, const uint8_t* at, const uint8_t* end) except -1:
        """A control record's key is two int16: a version and a type, 0 for abort. They are never compressed."""
        cdef int64_t number = 0
        cdef int skipped
        if self.header.producer_id not in self.open_aborted:
            return 0
        at = ottla_varint(at, end, &number)
        if at != NULL and at < end:
            at += 1
            for skipped in range(3):  # timestamp, offset, length of the key
                at = ottla_varint(at, end, &number)
                if at == NULL:
                    break
        else:
            at = NULL
        if at == NULL or number < 4 or number > end - at:
            raise CorruptRecords(f"the control batch at offset {self.header.base} has no type")
        if big_endian(at + 2, 2) == 0:
            self.open_aborted.discard(self.header.producer_id)
        return 0

    cdef int open_records(self, const uint8_t* batch, Py_ssize_t size) except -1:
        cdef int codec = self.header.attributes & CODEC
        if codec:
            compressed = PyMemoryView_FromMemory(<char*>batch + HEADER_BYTES, size - HEADER_BYTES, PyBUF_READ)
            plain = codecs.decompress(codec, compressed, self.limit_bytes)
            PyObject_GetBuffer(plain, &self.plain, PyBUF_SIMPLE)
            self.has_plain = True
            self.at = <const uint8_t*>self.plain.buf
            self.plain_end = self.at + self.plain.len
        else:
            self.at = batch + HEADER_BYTES
            self.plain_end = batch + size
        self.left = self.header.count
        return 0

    cdef int read_records(self, Piece piece, Py_ssize_t rows_max, Py_ssize_t bytes_max) except -1:
        """Records of the open batch into the piece, until one of them is full or used up."""
        cdef const uint8_t* at = self.at
        cdef const uint8_t* plain_end = self.plain_end
        cdef const uint8_t* record_end
        cdef const uint8_t* key
        cdef const uint8_t* value
        cdef int64_t length = 0, delta_ms = 0, delta = 0, key_size = 0, value_size = 0, offset
        cdef bint by_broker = (self.header.attributes & APPEND_TIME) != 0
        cdef int32_t kind = by_broker
        cdef bint is_wanted
        while self.left > 0:
            at = ottla_varint(at, plain_end, &length)
            if at == NULL or length < 0 or length > plain_end - at:
                self.fail("a record runs past the batch")
            record_end = at + length
            if at >= plain_end:
                self.fail("a record runs past the batch")
            at = ottla_varint(at + 1, plain_end, &delta_ms)
            if at != NULL:
                at = ottla_varint(at, plain_end, &delta)
            if at == NULL or delta < 0 or delta > self.header.last_delta:
                self.fail("a record is outside of its batch")
            key = at = ottla_varint(at, plain_end, &key_size)
            if at == NULL or key_size < -1 or key_size > record_end - at:
                self.fail("a key runs past its record")
            if key_size > 0:
                at += key_size
            value = at = ottla_varint(at, plain_end, &value_size)
            if at == NULL or value_size < -1 or value_size > record_end - at:
                self.fail("a value runs past its record")
            if value_size > 0:
                at += value_size
            offset = self.header.base + delta
            is_wanted = self.start <= offset < self.end
            at = self.read_headers(at, record_end, piece if is_wanted and self.with_headers else None)
            if at != record_end:
                self.fail("a record does not end where it says")
            self.left -= 1
            if not is_wanted:
                continue
            piece.keys.append(key, key_size)
            piece.values.append(value, value_size)
            piece.offsets.append64(offset)
            piece.stamps.append64(
                ottla_micros(self.header.max_ms, 0) if by_broker else ottla_micros(self.header.base_ms, delta_ms)
            )
            piece.kinds.append32(kind)
            piece.rows += 1
            piece.bytes += max(key_size, 0) + max(value_size, 0)
            if piece.rows >= rows_max or piece.bytes >= bytes_max:
                break
        self.at = at
        if self.left <= 0:
            if at != plain_end:
                self.fail("there are bytes left over")
            self.release_plain()
        return 0

    cdef const uint8_t* read_headers(self, const uint8_t* at, const uint8_t* end, Piece piece) except NULL:
        """Past the headers; they go into the piece if there is one."""
        cdef int64_t count = 0, size = 0, index
        cdef const uint8_t* name
        cdef int64_t name_size = 0
        at = ottla_varint(at, end, &count)
        if at == NULL or count < 0 or count > end - at:
            self.fail("a record does not say how many headers it has")
        if piece is not None and count > HEADERS_MAX:
            self.fail(f"a record has {count} headers, of which {HEADERS_MAX} at most are read")
        for index in range(count):
            name = at = ottla_varint(at, end, &name_size)
            if at == NULL or name_size < 0 or name_size > end - at:
                self.fail("a header has no key, or runs past its record")
            at += name_size
            at = ottla_varint(at, end, &size)
            if at == NULL or size < -1 or size > end - at:
                self.fail("a header runs past its record")
            if piece is not None:
                append_text(piece.header_keys, name, name_size)
                piece.header_values.append(at, size)
                piece.bytes += HEADER_COST_BYTES + name_size + max(size, 0)
            if size > 0:
                at += size
        if piece is not None:
            piece.end_headers(count > 0)
        return at

    cdef int fail(self, reason) except -1:
        raise CorruptRecords(f"{reason} at offset {self.header.base}")


cdef int append_text(Texts texts, const uint8_t* data, int64_t size) except -1:
    """Spark trusts that text is UTF-8: what is not becomes replacement characters, as in Java."""
    cdef int64_t index
    for index in range(size):
        if data[index] >= 0x80:
            valid = (<bytes>(<const char*>data)[:size]).decode("utf-8", "replace").encode()
            return texts.append(<const uint8_t*><char*>valid, len(valid))
    return texts.append(data, size)
