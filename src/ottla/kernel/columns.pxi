# cython: language_level=3
"""Columns that decoders of values fill, included by each of them: memory that grows, and that Arrow then takes over."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy, memset

import pyarrow as pa

cdef extern from "text.h":
    int ottla_is_utf8(const uint8_t* data, size_t size) nogil

# The numbers of `avro_steps.py`; a test compares them.
cdef enum:
    KIND_NULL = 0
    KIND_BOOLEAN = 1
    KIND_INT32 = 2
    KIND_INT64 = 3
    KIND_FLOAT = 4
    KIND_DOUBLE = 5
    KIND_BYTES = 6
    KIND_DECIMAL = 7
    KIND_LIST = 8
    KIND_MAP = 9
    KIND_STRUCT = 10

cdef enum:
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
    NO_MEMORY = 100

cdef enum:
    HEAD_BYTES = 5

cdef int64_t INT_MAX = 0x7FFFFFFF


# --- memory


cdef struct Room:
    uint8_t* data
    int64_t size
    int64_t capacity


cdef inline int reserve(Room* room, int64_t more) noexcept nogil:
    """Room for `more` bytes after `size`; 0, or NO_MEMORY."""
    cdef int64_t wanted = room.size + more
    cdef void* moved
    if wanted <= room.capacity:
        return 0
    wanted = max(wanted, room.capacity * 2, 1024)
    moved = realloc(room.data, wanted)
    if moved == NULL:
        return NO_MEMORY
    room.data = <uint8_t*>moved
    room.capacity = wanted
    return 0


cdef inline int append(Room* room, const void* data, int64_t size) noexcept nogil:
    if room.size + size > room.capacity and reserve(room, size) != 0:
        return NO_MEMORY
    memcpy(room.data + room.size, data, size)
    room.size += size
    return 0


cdef class Owned:
    """Bytes that Arrow has taken over: nobody writes to them any more."""

    cdef uint8_t* data
    cdef int64_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)


cdef object handed_over(Room* room):
    cdef Owned owned
    if room.size == 0:
        # Arrow ends the process when it meets an empty buffer that is nowhere.
        return pa.py_buffer(b"")
    owned = Owned()
    owned.data, owned.size = room.data, room.size
    room.data, room.size, room.capacity = NULL, 0, 0
    return pa.py_buffer(owned)


# --- columns


cdef struct Column:
    int kind
    int width  # of a number
    bint has_nulls
    int64_t count
    Room content
    Room ends
    Room valid  # bits, there from the first null on
    int32_t* children
    int child_count


cdef inline int mark(Column* column, bint is_valid) noexcept nogil:
    """One more item, whose content is there already."""
    cdef int64_t byte = column.count >> 3
    cdef uint8_t bit = <uint8_t>(1 << (column.count & 7))
    if not column.has_nulls:
        if is_valid:
            column.count += 1
            return 0
        column.valid.size = 0
        if reserve(&column.valid, byte + 64) != 0:
            return NO_MEMORY
        memset(column.valid.data, 0xFF, byte + 1)
        column.valid.size = byte + 1
        column.has_nulls = True
    if byte >= column.valid.size:
        if reserve(&column.valid, 64) != 0:
            return NO_MEMORY
        column.valid.size = byte + 1
    if is_valid:
        column.valid.data[byte] |= bit
    else:
        column.valid.data[byte] &= <uint8_t>~bit
    column.count += 1
    return 0


cdef inline int mark_end(Column* column, int64_t end) noexcept nogil:
    cdef int32_t short_end = <int32_t>end
    if end > INT_MAX:
        return TOO_LARGE
    return append(&column.ends, &short_end, 4)


cdef inline int put_boolean(Column* column, bint value) noexcept nogil:
    cdef int64_t byte = column.count >> 3
    cdef uint8_t bit = <uint8_t>(1 << (column.count & 7))
    if byte >= column.content.size:
        if reserve(&column.content, 64) != 0:
            return NO_MEMORY
        column.content.size = byte + 1
    if value:
        column.content.data[byte] |= bit
    else:
        column.content.data[byte] &= <uint8_t>~bit
    return mark(column, True)


cdef inline int put_number(Column* column, const void* value, int width) noexcept nogil:
    if append(&column.content, value, width) != 0:
        return NO_MEMORY
    return mark(column, True)


cdef inline int put_bytes(Column* column, const uint8_t* data, int64_t size) noexcept nogil:
    cdef int fault = 0
    if size:
        fault = append(&column.content, data, size)
    if fault == 0:
        fault = mark_end(column, column.content.size)
    return fault if fault != 0 else mark(column, True)


cdef int put_null(Column* columns, int index) noexcept nogil:
    cdef Column* column = &columns[index]
    cdef uint64_t nothing[2]
    cdef int fault = 0
    cdef int number
    nothing[0] = nothing[1] = 0
    if column.kind == KIND_STRUCT:
        for number in range(column.child_count):
            fault = put_null(columns, column.children[number])
            if fault != 0:
                return fault
    elif column.kind == KIND_BYTES:
        fault = mark_end(column, column.content.size)
    elif column.kind == KIND_LIST or column.kind == KIND_MAP:
        fault = mark_end(column, columns[column.children[column.child_count - 1]].count)
    elif column.kind == KIND_BOOLEAN:
        fault = put_boolean(column, False)
        column.count -= 1
    elif column.kind != KIND_NULL:
        fault = append(&column.content, nothing, column.width)
    return fault if fault != 0 else mark(column, False)


cdef void cut(Column* columns, int index, int64_t count) noexcept nogil:
    """Back to the first `count` items."""
    cdef Column* column = &columns[index]
    cdef int number
    if column.count <= count and column.kind != KIND_STRUCT:
        # A list whose items were begun, and that was not ended itself, has as many items as before.
        if column.kind == KIND_LIST or column.kind == KIND_MAP:
            for number in range(column.child_count):
                cut(columns, column.children[number], (<int32_t*>column.ends.data)[column.count])
        elif column.kind == KIND_BYTES:
            column.content.size = (<int32_t*>column.ends.data)[column.count]
            column.ends.size = 4 * (column.count + 1)
        elif column.width:
            column.content.size = column.count * column.width
        return
    if column.kind == KIND_STRUCT:
        for number in range(column.child_count):
            cut(columns, column.children[number], count)
    elif column.kind == KIND_LIST or column.kind == KIND_MAP:
        column.ends.size = 4 * (count + 1)
        for number in range(column.child_count):
            cut(columns, column.children[number], (<int32_t*>column.ends.data)[count])
    elif column.kind == KIND_BYTES:
        column.ends.size = 4 * (count + 1)
        column.content.size = (<int32_t*>column.ends.data)[count]
    elif column.kind == KIND_BOOLEAN:
        column.content.size = (count + 7) >> 3
    elif column.kind != KIND_NULL:
        column.content.size = count * column.width
    if column.count > count:
        column.count = count
    if column.has_nulls:
        column.valid.size = (column.count + 7) >> 3


# --- arrays of values


cdef class Values:
    """An Arrow array of bytes, looked into."""

    cdef object array
    cdef const int32_t* ends
    cdef const uint8_t* content
    cdef const uint8_t* valid
    cdef int64_t first
    cdef int64_t count

    def __cinit__(self, array):
        if array.type != pa.binary():
            array = array.cast(pa.binary())
        self.array = array
        valid, ends, content = array.buffers()
        self.first, self.count = array.offset, len(array)
        self.valid = NULL if valid is None else <const uint8_t*><uintptr_t>valid.address
        self.ends = NULL if ends is None else <const int32_t*><uintptr_t>ends.address
        self.content = NULL if content is None else <const uint8_t*><uintptr_t>content.address

    cdef inline bint get(self, int64_t row, const uint8_t** start, const uint8_t** end) noexcept nogil:
        """False for null."""
        cdef int64_t index = self.first + row
        if self.valid != NULL and not self.valid[index >> 3] >> (index & 7) & 1:
            return False
        start[0] = self.content + self.ends[index]
        end[0] = self.content + self.ends[index + 1]
        return True


cdef inline int64_t framed_id(const uint8_t* start, const uint8_t* end) noexcept nogil:
    """-1 where there is none."""
    if end - start < HEAD_BYTES or start[0] != 0:
        return -1
    return <int64_t>start[1] << 24 | <int64_t>start[2] << 16 | <int64_t>start[3] << 8 | start[4]


cdef class ColumnSet:
    """The columns of one reader, and what they have become when all values are read."""

    cdef object shapes
    cdef object type
    cdef Column* columns
    cdef int count
    cdef int32_t* children

    def __cinit__(self, columns, kind, *more):
        """`kind`: the type of the array, a struct whose parts have the shapes of `columns`."""
        cdef int index, at = 0
        self.shapes, self.type = list(columns), kind
        self.count = len(self.shapes)
        self.columns = <Column*>calloc(max(1, self.count), sizeof(Column))
        self.children = <int32_t*>calloc(max(1, sum(len(shape.children) for shape in self.shapes)), 4)
        if self.columns == NULL or self.children == NULL:
            raise MemoryError()
        widths = {KIND_INT32: 4, KIND_FLOAT: 4, KIND_INT64: 8, KIND_DOUBLE: 8, KIND_DECIMAL: 16}
        for index in range(self.count):
            shape = self.shapes[index]
            self.columns[index].kind = shape.kind
            self.columns[index].width = widths.get(int(shape.kind), 0)
            self.columns[index].children = self.children + at
            self.columns[index].child_count = len(shape.children)
            for child in shape.children:
                self.children[at] = child
                at += 1

    def __dealloc__(self):
        cdef int index
        for index in range(self.count if self.columns != NULL else 0):
            free(self.columns[index].content.data)
            free(self.columns[index].ends.data)
            free(self.columns[index].valid.data)
        free(self.columns)
        free(self.children)

    cdef int begin(self) except -1:
        cdef int32_t zero = 0
        cdef int index
        cdef Column* column
        for index in range(self.count):
            column = &self.columns[index]
            column.count, column.has_nulls = 0, False
            column.content.size = column.ends.size = column.valid.size = 0
            if column.kind == KIND_BYTES or column.kind == KIND_LIST or column.kind == KIND_MAP:
                if append(&column.ends, &zero, 4) != 0:
                    raise MemoryError()
        return 0

    cdef object finished(self, int index, object kind, int64_t count):
        cdef Column* column = &self.columns[index]
        if column.kind == KIND_NULL:
            return pa.nulls(count)
        valid = None
        if column.has_nulls:
            column.valid.size = (count + 7) >> 3
            valid = handed_over(&column.valid)
        if column.kind == KIND_STRUCT:
            children = [
                self.finished(child, kind.field(place).type, count) for place, child in enumerate(self.shapes[index].children)
            ]
            return pa.Array.from_buffers(kind, count, [valid], children=children)
        if column.kind == KIND_LIST or column.kind == KIND_MAP:
            return self.finished_items(index, kind, count, valid)
        if column.kind == KIND_BYTES:
            return pa.Array.from_buffers(
                kind, count, [valid, handed_over(&column.ends), handed_over(&column.content)]
            )
        return pa.Array.from_buffers(kind, count, [valid, handed_over(&column.content)])

    cdef object finished_items(self, int index, object kind, int64_t count, object valid):
        cdef Column* column = &self.columns[index]
        inner = self.shapes[index].children
        item_count = self.columns[<int>inner[len(inner) - 1]].count
        if column.kind == KIND_LIST:
            child = self.finished(inner[0], kind.value_type, item_count)
        else:
            pair = pa.struct([kind.key_field, kind.item_field])
            parts = [
                self.finished(inner[0], kind.key_type, item_count),
                self.finished(inner[1], kind.item_type, item_count),
            ]
            child = pa.Array.from_buffers(pair, item_count, [None], children=parts)
        return pa.Array.from_buffers(kind, count, [valid, handed_over(&column.ends)], children=[child])
