# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Arrow columns to Avro values, compiled: the twin of `avro_encode_pure.py`, whose opening text is valid here too.

The buffers of the arrays are read where they are; the values grow in memory that Arrow then takes over.
"""

include "output.pxi"

cdef extern from *:
    """
    typedef __int128 ottla_wide;
    static inline int ottla_scaled(int64_t value, int64_t by, int64_t over, int64_t *result) {
        ottla_wide wide = (ottla_wide)value * by;
        ottla_wide quotient = wide / over;
        if (wide % over < 0) quotient--;
        *result = (int64_t)quotient;
        return quotient == (ottla_wide)*result;
    }
    """
    int ottla_scaled(int64_t value, int64_t by, int64_t over, int64_t* result) nogil

# The numbers of `avro_steps.py`; a test compares them.
cdef enum:
    WRITE_CONSTANT = 0
    WRITE_NULL = 1
    WRITE_BOOLEAN = 2
    WRITE_INT = 3
    WRITE_LONG = 4
    WRITE_FLOAT = 5
    WRITE_DOUBLE = 6
    WRITE_BYTES = 7
    WRITE_FIXED = 8
    WRITE_DECIMAL = 9
    WRITE_DECIMAL_FIXED = 10
    WRITE_ENUM = 11
    WRITE_ARRAY = 12
    WRITE_MAP = 13
    WRITE_RECORD = 14
    WRITE_MEMBERS = 15


cdef struct Part:
    int64_t kind
    int64_t null_branch
    int64_t branch
    int64_t a
    int64_t b
    int32_t* children
    int64_t child_count
    # Of the array that is being encoded.
    const uint8_t* valid
    const uint8_t* data
    const int32_t* ends
    int64_t first
    # Of a map: its keys.
    const uint8_t* keys
    const int32_t* key_ends
    int64_t first_key


cdef class AvroEncoder:
    cdef list steps
    cdef Part* parts
    cdef int32_t* children
    cdef int64_t* edges
    cdef bytes constants
    cdef const uint8_t* constant_bytes
    cdef int64_t fault_at

    def __cinit__(self, steps, edges, bytes constants):
        cdef int64_t index, at = 0
        self.steps = list(steps)
        self.constants = constants
        self.constant_bytes = <const uint8_t*><const char*>constants
        listed = list(edges)
        self.parts = <Part*>calloc(max(1, len(self.steps)), sizeof(Part))
        self.children = <int32_t*>calloc(max(1, sum(len(step.children) for step in self.steps)), 4)
        self.edges = <int64_t*>calloc(max(1, len(listed)), 8)
        if self.parts == NULL or self.children == NULL or self.edges == NULL:
            raise MemoryError()
        for index in range(<int64_t>len(listed)):
            self.edges[index] = listed[index]
        for index in range(<int64_t>len(self.steps)):
            step = self.steps[index]
            self.parts[index].kind = step.kind
            self.parts[index].null_branch, self.parts[index].branch = step.null_branch, step.branch
            self.parts[index].a, self.parts[index].b = step.a, step.b
            self.parts[index].children = self.children + at
            self.parts[index].child_count = len(step.children)
            for child, _ in step.children:
                self.children[at] = child
                at += 1

    def __dealloc__(self):
        free(self.parts)
        free(self.children)
        free(self.edges)

    def encode(self, rows, bytes head):
        """Raises Unwritable."""
        cdef Output content = Output(), ends = Output(), valid = Output()
        cdef int64_t count = len(rows), row, nulls = 0
        cdef int64_t root = len(self.steps) - 1
        cdef int32_t end = 0
        cdef int fault
        cdef const uint8_t* head_bytes = <const uint8_t*><const char*>head
        cdef int64_t head_size = len(head)
        held = []
        self.bind(root, rows, held)
        if ends.append(&end, 4) != 0 or valid.reserve((count + 7) // 8 + 8) != 0:
            raise MemoryError()
        memset(valid.data, 0xFF, (count + 7) // 8)
        valid.size = (count + 7) // 8
        for row in range(count):
            if is_null(&self.parts[root], row):
                valid.data[row >> 3] &= <uint8_t>~(1 << (row & 7))
                nulls += 1
            else:
                fault = content.append(head_bytes, head_size)
                if fault == 0:
                    fault = self.write(root, row, content)
                if fault == 0 and content.size > 0x7FFFFFFF:
                    fault, self.fault_at = TOO_LARGE, root
                if fault == NO_MEMORY:
                    raise MemoryError()
                if fault != 0:
                    raise Unwritable(row, self.fault_at, fault)
            end = <int32_t>content.size
            if ends.append(&end, 4) != 0:
                raise MemoryError()
        buffers = [pa.py_buffer(valid) if nulls else None, pa.py_buffer(ends), pa.py_buffer(content if content.size else b"")]
        return pa.Array.from_buffers(pa.binary(), count, buffers, nulls)

    cdef int bind(self, int64_t index, object array, list held) except -1:
        """Where the column of a step is in memory. `held`: what must stay there meanwhile."""
        cdef Part* part = &self.parts[index]
        step = self.steps[index]
        if part.kind == WRITE_CONSTANT:
            return 0
        held.append(array)
        buffers = array.buffers()
        part.first = array.offset
        part.valid = address(buffers[0]) if buffers else NULL
        part.data, part.ends = NULL, NULL
        if part.kind == WRITE_RECORD or part.kind == WRITE_MEMBERS:
            for child, place in step.children:
                self.bind(child, array.field(place) if place >= 0 else None, held)
        elif part.kind == WRITE_ARRAY:
            part.ends = <const int32_t*>address(buffers[1])
            self.bind(step.children[0][0], array.values, held)
        elif part.kind == WRITE_MAP:
            part.ends = <const int32_t*>address(buffers[1])
            keys = array.keys
            held.append(keys)
            part.key_ends, part.keys = <const int32_t*>address(keys.buffers()[1]), address(keys.buffers()[2])
            part.first_key = keys.offset
            self.bind(step.children[0][0], array.items, held)
        elif part.kind == WRITE_BYTES or part.kind == WRITE_FIXED or part.kind == WRITE_ENUM:
            part.ends, part.data = <const int32_t*>address(buffers[1]), address(buffers[2])
        elif part.kind != WRITE_NULL:
            part.data = address(buffers[1])
        return 0

    cdef int write(self, int64_t index, int64_t row, Output out) noexcept nogil:
        cdef Part* part = &self.parts[index]
        cdef int64_t at, child, value
        cdef int32_t small
        cdef int fault = 0
        if part.kind == WRITE_CONSTANT:
            return out.append(self.constant_bytes + part.a, part.b)
        if part.kind != WRITE_NULL and is_null(part, row):
            return self.null_of(index, part, out)
        if part.kind == WRITE_MEMBERS:
            for at in range(part.child_count):
                if not is_null(&self.parts[part.children[at]], row):
                    return self.write(part.children[at], row, out)
            return self.null_of(index, part, out)
        if part.branch >= 0:
            fault = out.number(part.branch)
            if fault != 0:
                return fault
        if part.kind == WRITE_RECORD:
            for at in range(part.child_count):
                fault = self.write(part.children[at], row, out)
                if fault != 0:
                    return fault
            return 0
        if part.kind == WRITE_NULL:
            return 0
        at = part.first + row
        if part.kind == WRITE_INT:
            return out.number((<const int32_t*>part.data)[at])
        if part.kind == WRITE_LONG:
            value = (<const int64_t*>part.data)[at]
            if (part.a != 1 or part.b != 1) and not ottla_scaled(value, part.a, part.b, &value):
                self.fault_at = index
                return BAD_NUMBER
            return out.number(value)
        if part.kind == WRITE_BYTES:
            value = part.ends[at + 1] - part.ends[at]
            fault = out.number(value)
            if fault == 0 and value:
                fault = out.append(part.data + part.ends[at], value)
            return fault
        if part.kind == WRITE_DOUBLE:
            return out.append(part.data + 8 * at, 8)
        if part.kind == WRITE_FLOAT:
            return out.append(part.data + 4 * at, 4)
        if part.kind == WRITE_BOOLEAN:
            small = part.data[at >> 3] >> (at & 7) & 1
            return out.append(&small, 1)
        if part.kind == WRITE_ARRAY or part.kind == WRITE_MAP:
            return self.items(part, at, out)
        if part.kind == WRITE_FIXED:
            if part.ends[at + 1] - part.ends[at] != part.a:
                self.fault_at = index
                return TOO_SHORT
            return out.append(part.data + part.ends[at], part.a)
        if part.kind == WRITE_ENUM:
            return self.symbol(index, part, at, out)
        return self.decimal(index, part, part.data + DECIMAL_BYTES * at, out)

    cdef int null_of(self, int64_t index, Part* part, Output out) noexcept nogil:
        if part.null_branch < 0:
            self.fault_at = index
            return BAD_BRANCH
        return out.number(part.null_branch)

    cdef int items(self, Part* part, int64_t at, Output out) noexcept nogil:
        cdef int64_t item, key, first = part.ends[at], last = part.ends[at + 1]
        cdef int fault = 0
        if last > first:
            fault = out.number(last - first)
        for item in range(first, last):
            if fault == 0 and part.kind == WRITE_MAP:
                key = part.first_key + item
                fault = out.number(part.key_ends[key + 1] - part.key_ends[key])
                if fault == 0 and part.key_ends[key + 1] > part.key_ends[key]:
                    fault = out.append(part.keys + part.key_ends[key], part.key_ends[key + 1] - part.key_ends[key])
            if fault == 0:
                fault = self.write(part.children[0], item, out)
            if fault != 0:
                return fault
        return out.number(0)

    cdef int symbol(self, int64_t index, Part* part, int64_t at, Output out) noexcept nogil:
        cdef int64_t number, size = part.ends[at + 1] - part.ends[at]
        for number in range(part.b):
            if self.edges[part.a + 2 * number + 1] == size and (
                size == 0
                or memcmp(
                    self.constant_bytes + self.edges[part.a + 2 * number], part.data + part.ends[at], size
                ) == 0
            ):
                return out.number(number)
        self.fault_at = index
        return BAD_SYMBOL

    cdef int decimal(self, int64_t index, Part* part, const uint8_t* data, Output out) noexcept nogil:
        """Sixteen bytes, the smallest first, as few as needed, the largest first."""
        cdef uint8_t sign = 0xFF if data[DECIMAL_BYTES - 1] & 0x80 else 0
        cdef int64_t size = DECIMAL_BYTES
        cdef int64_t at
        cdef int fault
        while size > 1 and data[size - 1] == sign and (data[size - 2] & 0x80) == (sign & 0x80):
            size -= 1
        if part.kind == WRITE_DECIMAL:
            fault = out.number(size)
        elif size > part.a:
            self.fault_at = index
            return BAD_NUMBER
        else:
            fault = 0
            for at in range(part.a - size):
                fault = out.append(&sign, 1)
        for at in range(size):
            if fault == 0:
                fault = out.append(data + size - 1 - at, 1)
        return fault


cdef inline bint is_null(Part* part, int64_t row) noexcept nogil:
    cdef int64_t at = part.first + row
    return part.valid != NULL and not part.valid[at >> 3] >> (at & 7) & 1
