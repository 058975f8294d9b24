# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Avro values to Arrow columns, compiled: the twin of `avro_pure.py`, whose opening text is valid here too.

Columns grow in memory of our own that Arrow then takes over without a copy. Every read is compared with the end of the
value first, so no bytes can make this read or write outside of it. A value that turns out to be bad halfway is taken
back: each column is cut to the length that its parent had before, which costs nothing where no value is bad.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

import pyarrow as pa

from ottla.kernel.avro_steps import DEPTH_MAX as _DEPTH_MAX, EMPTY_ITEMS_MAX as _EMPTY_ITEMS_MAX, Bad

cdef extern from "bytes.h":
    const uint8_t* ottla_varint(const uint8_t* at, const uint8_t* end, int64_t* value) nogil

cdef extern from "text.h":
    int ottla_is_utf8(const uint8_t* data, size_t size) nogil

cdef extern from *:
    """
    typedef __int128 ottla_int128;
    static inline int ottla_times(int64_t value, int64_t by, int64_t over, int64_t *result) {
        ottla_int128 wide = (ottla_int128)value * by;
        ottla_int128 quotient = wide / over;
        if (wide % over < 0) quotient--;
        *result = (int64_t)quotient;
        return quotient == (ottla_int128)*result;
    }
    /* A number of any length, big-endian, as 16 bytes; 0 if it has more than so many digits. */
    static inline int ottla_decimal(const uint8_t *data, int64_t size, int64_t digits, ottla_int128 *result) {
        uint8_t sign = size && data[0] & 0x80 ? 0xFF : 0;
        while (size > 16) {
            if (*data != sign) return 0;
            data++, size--;
        }
        unsigned __int128 raw = sign ? ~(unsigned __int128)0 : 0;
        if (size == 16 && (data[0] & 0x80 ? 0xFF : 0) != sign) return 0;
        for (int64_t at = 0; at < size; at++) raw = raw << 8 | data[at];
        ottla_int128 limit = 1;
        for (int64_t at = 0; at < digits && at < 38; at++) limit *= 10;
        *result = (ottla_int128)raw;
        return *result < limit && *result > -limit;
    }
    """
    ctypedef long long ottla_int128
    int ottla_times(int64_t value, int64_t by, int64_t over, int64_t* result) nogil
    int ottla_decimal(const uint8_t* data, int64_t size, int64_t digits, ottla_int128* result) nogil

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
    STEP_NULL = 0
    STEP_BOOLEAN = 1
    STEP_INT = 2
    STEP_LONG = 3
    STEP_LONG_TO_FLOAT = 4
    STEP_LONG_TO_DOUBLE = 5
    STEP_FLOAT = 6
    STEP_FLOAT_TO_DOUBLE = 7
    STEP_DOUBLE = 8
    STEP_BYTES = 9
    STEP_STRING = 10
    STEP_FIXED = 11
    STEP_DECIMAL = 12
    STEP_DECIMAL_FIXED = 13
    STEP_ENUM = 14
    STEP_ARRAY = 15
    STEP_MAP = 16
    STEP_RECORD = 17
    STEP_UNION = 18
    STEP_MEMBER = 19
    STEP_DEFAULT = 20
    STEP_REFUSE = 21
    STEP_SKIP_VARINT = 22
    STEP_SKIP_BYTES = 23
    STEP_SKIP_FIXED = 24
    STEP_SKIP_ARRAY = 25
    STEP_SKIP_MAP = 26

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
    NO_MEMORY = 100

cdef enum:
    HEAD_BYTES = 5

cdef int64_t DEPTH_MAX = _DEPTH_MAX
cdef int64_t EMPTY_ITEMS_MAX = _EMPTY_ITEMS_MAX
cdef int64_t INT_MAX = 0x7FFFFFFF
cdef int64_t LONG_MIN = -0x7FFFFFFFFFFFFFFF - 1


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


# --- programs


cdef struct StepOf:
    int64_t kind
    int64_t column
    int64_t a
    int64_t b
    int64_t c


cdef class AvroProgram:
    cdef StepOf* steps
    cdef int64_t* edges
    cdef bytes constants
    cdef int64_t count

    def __cinit__(self, steps, edges, bytes constants):
        """The last step is the first to be carried out."""
        cdef int64_t index
        listed, listed_edges = list(steps), list(edges)
        self.count = len(listed)
        self.constants = constants
        self.steps = <StepOf*>malloc(max(1, self.count) * sizeof(StepOf))
        self.edges = <int64_t*>malloc(max(1, len(listed_edges)) * sizeof(int64_t))
        if self.steps == NULL or self.edges == NULL:
            raise MemoryError()
        for index in range(self.count):
            kind, column, a, b, c = listed[index]
            self.steps[index].kind, self.steps[index].column = kind, column
            self.steps[index].a, self.steps[index].b, self.steps[index].c = a, b, c
        for index in range(<int64_t>len(listed_edges)):
            self.edges[index] = listed_edges[index]

    def __dealloc__(self):
        free(self.steps)
        free(self.edges)


cdef struct Run:
    StepOf* steps
    int64_t* edges
    const uint8_t* constants
    Column* columns
    const uint8_t* at
    const uint8_t* end
    int64_t which  # of REFUSED
    int64_t items_left  # so many more may come: one for each byte, and a few that take none


cdef inline int read_size(Run* run, int64_t* size) noexcept nogil:
    """Of bytes that follow, which are known to be there then."""
    cdef const uint8_t* after = ottla_varint(run.at, run.end, size)
    if after == NULL or size[0] < 0 or size[0] > run.end - after:
        return TOO_SHORT
    run.at = after
    return 0


cdef int items(Run* run, bint is_map, int64_t step, int column, int64_t depth) noexcept nogil:
    cdef int64_t count, size
    cdef int fault
    cdef const uint8_t* after
    while True:
        after = ottla_varint(run.at, run.end, &count)
        if after == NULL:
            return TOO_SHORT
        run.at = after
        if count == 0:
            break
        if count < 0:
            after = ottla_varint(run.at, run.end, &size)
            if after == NULL or count == LONG_MIN or size < 0 or size > run.end - after:
                return TOO_SHORT
            run.at = after
            count = -count
        if count > run.items_left:
            return TOO_MANY
        run.items_left -= count
        while count > 0:
            if is_map:
                fault = read_size(run, &size)
                if fault == 0 and not ottla_is_utf8(run.at, size):
                    fault = BAD_TEXT
                if fault == 0 and column >= 0:
                    fault = put_bytes(&run.columns[run.columns[column].children[0]], run.at, size)
                if fault != 0:
                    return fault
                run.at += size
            fault = carry_out(run, step, depth + 1)
            if fault != 0:
                return fault
            count -= 1
    if column < 0:
        return 0
    fault = mark_end(
        &run.columns[column], run.columns[run.columns[column].children[run.columns[column].child_count - 1]].count
    )
    return fault if fault != 0 else mark(&run.columns[column], True)


cdef int carry_out(Run* run, int64_t index, int64_t depth) noexcept nogil:
    """0, or why the value is bad."""
    cdef StepOf* step = &run.steps[index]
    cdef int64_t kind = step.kind
    cdef Column* column = NULL
    cdef const uint8_t* after
    cdef const uint8_t* before_end
    cdef int64_t value, size
    cdef int32_t small
    cdef float real
    cdef double wide
    cdef ottla_int128 decimal
    cdef int fault, number
    if step.column >= 0:
        column = &run.columns[step.column]
    if kind == STEP_RECORD:
        if depth > DEPTH_MAX:
            return TOO_DEEP
        for size in range(step.b):
            fault = carry_out(run, run.edges[step.a + size], depth + 1)
            if fault != 0:
                return fault
        return mark(column, True) if column != NULL else 0
    if kind == STEP_STRING or kind == STEP_BYTES:
        fault = read_size(run, &size)
        if fault != 0:
            return fault
        if kind == STEP_STRING and not ottla_is_utf8(run.at, size):
            return BAD_TEXT
        fault = put_bytes(column, run.at, size) if column != NULL else 0
        run.at += size
        return fault
    if kind == STEP_LONG or kind == STEP_INT or kind == STEP_LONG_TO_DOUBLE or kind == STEP_LONG_TO_FLOAT:
        after = ottla_varint(run.at, run.end, &value)
        if after == NULL:
            return TOO_SHORT
        run.at = after
        if kind == STEP_INT:
            if value > INT_MAX or value < -INT_MAX - 1:
                return BAD_NUMBER
            small = <int32_t>value
            return put_number(column, &small, 4)
        if kind == STEP_LONG:
            if (step.a != 1 or step.b != 1) and not ottla_times(value, step.a, step.b, &value):
                return BAD_NUMBER
            return put_number(column, &value, 8)
        wide = <double>value
        if kind == STEP_LONG_TO_DOUBLE:
            return put_number(column, &wide, 8)
        real = <float>wide
        return put_number(column, &real, 4)
    if kind == STEP_UNION:
        after = ottla_varint(run.at, run.end, &value)
        if after == NULL:
            return TOO_SHORT
        run.at = after
        if value < 0 or value >= step.b:
            return BAD_BRANCH
        if depth > DEPTH_MAX:
            return TOO_DEEP
        return carry_out(run, run.edges[step.a + value], depth + 1)
    if kind == STEP_NULL:
        return put_null(run.columns, <int>step.column) if column != NULL else 0
    if kind == STEP_DOUBLE:
        if run.end - run.at < 8:
            return TOO_SHORT
        memcpy(&wide, run.at, 8)
        run.at += 8
        return put_number(column, &wide, 8)
    if kind == STEP_FLOAT or kind == STEP_FLOAT_TO_DOUBLE:
        if run.end - run.at < 4:
            return TOO_SHORT
        memcpy(&real, run.at, 4)
        run.at += 4
        if kind == STEP_FLOAT:
            return put_number(column, &real, 4)
        wide = real
        return put_number(column, &wide, 8)
    if kind == STEP_BOOLEAN:
        if run.end - run.at < 1:
            return TOO_SHORT
        small = run.at[0]
        if small > 1:
            return BAD_NUMBER
        run.at += 1
        return put_boolean(column, small == 1)
    if kind == STEP_ENUM:
        after = ottla_varint(run.at, run.end, &value)
        if after == NULL:
            return TOO_SHORT
        run.at = after
        if value < 0 or value >= step.b or run.edges[step.a + 2 * value] < 0:
            return BAD_SYMBOL
        return put_bytes(
            column, run.constants + run.edges[step.a + 2 * value], run.edges[step.a + 2 * value + 1]
        )
    if kind == STEP_FIXED or kind == STEP_SKIP_FIXED:
        if run.end - run.at < step.a:
            return TOO_SHORT
        fault = put_bytes(column, run.at, step.a) if kind == STEP_FIXED else 0
        run.at += step.a
        return fault
    if kind == STEP_DECIMAL or kind == STEP_DECIMAL_FIXED:
        size = step.b
        if kind == STEP_DECIMAL:
            fault = read_size(run, &size)
            if fault != 0:
                return fault
        elif run.end - run.at < size:
            return TOO_SHORT
        if not ottla_decimal(run.at, size, step.a, &decimal):
            return BAD_NUMBER
        run.at += size
        return put_number(column, &decimal, 16)
    if depth > DEPTH_MAX:
        return TOO_DEEP
    if kind == STEP_ARRAY or kind == STEP_MAP:
        return items(run, kind == STEP_MAP, step.a, <int>step.column, depth)
    if kind == STEP_SKIP_ARRAY or kind == STEP_SKIP_MAP:
        return items(run, kind == STEP_SKIP_MAP, step.a, -1, depth)
    if kind == STEP_MEMBER:
        for number in range(column.child_count):
            if number != step.b:
                fault = put_null(run.columns, column.children[number])
                if fault != 0:
                    return fault
        fault = carry_out(run, step.a, depth + 1)
        return fault if fault != 0 else mark(column, True)
    if kind == STEP_DEFAULT:
        after, before_end, value = run.at, run.end, run.items_left
        run.at = run.constants + step.b
        run.end = run.at + step.c
        run.items_left = step.c + EMPTY_ITEMS_MAX
        fault = carry_out(run, step.a, depth + 1)
        run.at, run.end, run.items_left = after, before_end, value
        return fault
    if kind == STEP_SKIP_VARINT:
        after = ottla_varint(run.at, run.end, &value)
        if after == NULL:
            return TOO_SHORT
        run.at = after
        return 0
    if kind == STEP_SKIP_BYTES:
        fault = read_size(run, &size)
        if fault == 0:
            run.at += size
        return fault
    run.which = step.a
    return REFUSED


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


def schema_ids(values):
    """The ids that stand before these values, each once, in the order of their first."""
    cdef Values looked = Values(values)
    cdef const uint8_t* start
    cdef const uint8_t* end
    cdef int64_t row, number, last = -1
    found = {}
    for row in range(looked.count):
        if not looked.get(row, &start, &end):
            continue
        number = framed_id(start, end)
        if number >= 0 and number != last:
            found[number] = None
            last = number
    return list(found)


cdef class AvroDecoder:
    cdef object shapes
    cdef object type
    cdef Column* columns
    cdef int count
    cdef int32_t* children

    def __cinit__(self, columns, kind):
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

    def decode(self, values, programs):
        """A struct for each value, null for those that are null or bad; and the bad ones."""
        cdef Values looked = Values(values)
        cdef const uint8_t* start
        cdef const uint8_t* end
        cdef int64_t row, number, last = -1
        cdef AvroProgram program = None
        cdef Run run
        cdef int fault
        bad = []
        self.begin()
        run.columns = self.columns
        run.which = 0
        for row in range(looked.count):
            fault = 0
            if looked.get(row, &start, &end):
                number = framed_id(start, end)
                if number < 0:
                    fault = NOT_FRAMED
                elif number != last:
                    program, last = programs.get(number), number
                    if program is not None:
                        run.steps, run.edges = program.steps, program.edges
                        run.constants = <const uint8_t*><const char*>program.constants
                if fault == 0 and program is None:
                    fault, run.which = NO_PROGRAM, number
                elif fault == 0:
                    run.at, run.end = start + HEAD_BYTES, end
                    run.items_left = end - start + EMPTY_ITEMS_MAX
                    fault = carry_out(&run, program.count - 1, 0)
                    if fault == 0 and run.at != run.end:
                        fault = LEFT_OVER
                if fault == 0:
                    continue
                if fault == NO_MEMORY:
                    raise MemoryError()
                bad.append(Bad(row, fault, run.which if fault == REFUSED or fault == NO_PROGRAM else 0))
                cut(self.columns, 0, row)
            if put_null(self.columns, 0) != 0:
                raise MemoryError()
        return self.finished(0, self.type, looked.count), bad

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
