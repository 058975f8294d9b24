# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Avro values to Arrow columns, compiled: the twin of `avro_pure.py`, whose opening text is valid here too.

Columns grow in memory of our own that Arrow then takes over without a copy. Every read is compared with the end of the
value first, so no bytes can make this read or write outside of it. A value that turns out to be bad halfway is taken
back: each column is cut to the length that its parent had before, which costs nothing where no value is bad.
"""

include "columns.pxi"

from ottla.kernel.avro_steps import DEPTH_MAX as _DEPTH_MAX, EMPTY_ITEMS_MAX as _EMPTY_ITEMS_MAX, Bad

cdef extern from "bytes.h":
    const uint8_t* ottla_varint(const uint8_t* at, const uint8_t* end, int64_t* value) nogil

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

cdef int64_t DEPTH_MAX = _DEPTH_MAX
cdef int64_t EMPTY_ITEMS_MAX = _EMPTY_ITEMS_MAX
cdef int64_t LONG_MIN = -0x7FFFFFFFFFFFFFFF - 1


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


cdef class AvroDecoder(ColumnSet):
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
