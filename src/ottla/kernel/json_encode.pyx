# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Arrow columns to JSON, with the id of a schema before it or without: all rows of which it is plain that they fit.

`JsonEncoder(steps, edges, constants).encode(rows, head)` answers with a value for each row and with the rows that it
leaves to others, which are null there: those that do not fit, and those of which the schema asks more than a step can
see. `ottla.schemas.json_rows` writes those with Python's own writer after jsonschema has looked at them, which have the
last word and the sentence; without a compiler they write all of them. So does `ottla.streams.engine.row_columns`. So
whatever is written here has to be byte for byte what they would have written: tests compare them.
"""

include "output.pxi"
include "json_write.pxi"

# The numbers of `json_steps.py`; a test compares them.
cdef enum:
    WRITE_LEFT = 0
    WRITE_INT8 = 1
    WRITE_INT16 = 2
    WRITE_INT32 = 3
    WRITE_INT64 = 4
    WRITE_FLOAT = 5
    WRITE_DOUBLE = 6
    WRITE_BOOLEAN = 7
    WRITE_STRING = 8
    WRITE_BASE64 = 9
    WRITE_DATE = 10
    WRITE_MOMENT = 11
    WRITE_LIST = 12
    WRITE_MAP = 13
    WRITE_STRUCT = 14
    WRITE_NOTHING = 15


cdef struct Part:
    int64_t kind
    int64_t a
    int64_t b
    int64_t null_fits
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


cdef class JsonEncoder:
    cdef list steps
    cdef Part* parts
    cdef int32_t* children
    cdef int64_t* edges
    cdef bytes constants
    cdef const uint8_t* constant_bytes

    def __cinit__(self, steps, edges, bytes constants):
        """The last step is the one of a row."""
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
            self.parts[index].kind, self.parts[index].null_fits = step.kind, step.null_fits
            self.parts[index].a, self.parts[index].b = step.a, step.b
            self.parts[index].children = self.children + at
            self.parts[index].child_count = len(step.children)
            for child in step.children:
                self.children[at] = child
                at += 1

    def __dealloc__(self):
        free(self.parts)
        free(self.children)
        free(self.edges)

    def encode(self, rows, bytes head):
        """Raises Unwritable where all of it is more than one array can hold."""
        cdef Output content = Output(), ends = Output(), valid = Output()
        cdef int64_t count = len(rows), row, nulls = 0, before
        cdef int64_t root = len(self.steps) - 1
        cdef int32_t end = 0
        cdef int fault
        cdef const uint8_t* head_bytes = <const uint8_t*><const char*>head
        cdef int64_t head_size = len(head)
        held, left = [], []
        self.bind(root, rows, held)
        if ends.append(&end, 4) != 0 or valid.reserve((count + 7) // 8 + 8) != 0:
            raise MemoryError()
        memset(valid.data, 0xFF, (count + 7) // 8)
        valid.size = (count + 7) // 8
        for row in range(count):
            fault = 0
            if is_null(&self.parts[root], row):
                fault = DOUBTFUL
            else:
                before = content.size
                fault = content.append(head_bytes, head_size)
                if fault == 0:
                    fault = self.write(root, row, content)
                if fault == NO_MEMORY:
                    raise MemoryError()
                if fault != 0:
                    content.size = before
                    left.append(row)
                elif content.size > 0x7FFFFFFF:
                    raise Unwritable(row, root, TOO_LARGE)
            if fault != 0:
                valid.data[row >> 3] &= <uint8_t>~(1 << (row & 7))
                nulls += 1
            end = <int32_t>content.size
            if ends.append(&end, 4) != 0:
                raise MemoryError()
        buffers = [pa.py_buffer(valid) if nulls else None, pa.py_buffer(ends), pa.py_buffer(content if content.size else b"")]
        return pa.Array.from_buffers(pa.binary(), count, buffers, nulls), left

    cdef int bind(self, int64_t index, object array, list held) except -1:
        """Where the column of a step is in memory. `held`: what must stay there meanwhile."""
        cdef Part* part = &self.parts[index]
        cdef int64_t place
        step = self.steps[index]
        held.append(array)
        buffers = array.buffers()
        part.first = array.offset
        part.valid = address(buffers[0]) if buffers else NULL
        part.data, part.ends = NULL, NULL
        if part.kind == WRITE_STRUCT:
            for place in range(part.child_count):
                self.bind(part.children[place], array.field(place), held)
        elif part.kind == WRITE_LIST:
            part.ends = <const int32_t*>address(buffers[1])
            self.bind(part.children[0], array.values, held)
        elif part.kind == WRITE_MAP:
            part.ends = <const int32_t*>address(buffers[1])
            keys = array.keys
            held.append(keys)
            part.key_ends, part.keys = <const int32_t*>address(keys.buffers()[1]), address(keys.buffers()[2])
            part.first_key = keys.offset
            self.bind(part.children[0], array.items, held)
        elif part.kind == WRITE_STRING or part.kind == WRITE_BASE64:
            part.ends, part.data = <const int32_t*>address(buffers[1]), address(buffers[2])
        elif part.kind != WRITE_LEFT and part.kind != WRITE_NOTHING:
            part.data = address(buffers[1])
        return 0

    cdef int write(self, int64_t index, int64_t row, Output out) noexcept nogil:
        """Of something that is there."""
        cdef Part* part = &self.parts[index]
        cdef int64_t at = part.first + row
        if part.kind == WRITE_STRING:
            return self.text(part, at, out)
        if part.kind == WRITE_INT64:
            return write_integer((<const int64_t*>part.data)[at], out)
        if part.kind == WRITE_DOUBLE:
            return write_real((<const double*>part.data)[at], out)
        if part.kind == WRITE_INT32:
            return write_integer((<const int32_t*>part.data)[at], out)
        if part.kind == WRITE_STRUCT:
            return self.object(part, row, out)
        if part.kind == WRITE_BOOLEAN:
            return out.append(b"true", 4) if part.data[at >> 3] >> (at & 7) & 1 else out.append(b"false", 5)
        if part.kind == WRITE_LIST or part.kind == WRITE_MAP:
            return self.items(part, at, out)
        if part.kind == WRITE_MOMENT:
            return write_moment((<const int64_t*>part.data)[at], part.a, out)
        if part.kind == WRITE_DATE:
            return write_day((<const int32_t*>part.data)[at], out)
        if part.kind == WRITE_FLOAT:
            return write_real((<const float*>part.data)[at], out)
        if part.kind == WRITE_INT16:
            return write_integer((<const int16_t*>part.data)[at], out)
        if part.kind == WRITE_INT8:
            return write_integer((<const int8_t*>part.data)[at], out)
        if part.kind == WRITE_BASE64:
            return write_base64(part.data + part.ends[at], part.ends[at + 1] - part.ends[at], out)
        return DOUBTFUL

    cdef int text(self, Part* part, int64_t at, Output out) noexcept nogil:
        """Any, or one of `b` symbols."""
        cdef const uint8_t* start = part.data + part.ends[at]
        cdef int64_t size = part.ends[at + 1] - part.ends[at], number, edge
        for number in range(part.b):
            edge = part.a + 2 * number
            if self.edges[edge + 1] == size and (
                size == 0 or memcmp(self.constant_bytes + self.edges[edge], start, size) == 0
            ):
                return write_text(start, size, out)
        return DOUBTFUL if part.b else write_text(start, size, out)

    cdef int object(self, Part* part, int64_t row, Output out) noexcept nogil:
        """What is null is left out, unless it is required; with `b` it is written, and there are no blanks. The names
        stand in the constants as they are written."""
        cdef int64_t place, edge
        cdef bint is_first = True, is_there
        cdef int fault = out.append(b"{", 1)
        for place in range(part.child_count):
            if fault != 0:
                return fault
            edge = part.a + 3 * place
            is_there = not is_null(&self.parts[part.children[place]], row)
            if not is_there and self.edges[edge + 2]:
                return DOUBTFUL
            if not is_there and not part.b:
                continue
            if not is_first:
                fault = out.append(b", ", 1 if part.b else 2)
            is_first = False
            if fault == 0:
                fault = out.append(self.constant_bytes + self.edges[edge], self.edges[edge + 1])
            if fault == 0:
                fault = self.write(part.children[place], row, out) if is_there else out.append(b"null", 4)
        return fault if fault != 0 else out.append(b"}", 1)

    cdef int items(self, Part* part, int64_t at, Output out) noexcept nogil:
        cdef int64_t item, first = part.ends[at], last = part.ends[at + 1]
        cdef Part* child = &self.parts[part.children[0]]
        cdef bint is_map = part.kind == WRITE_MAP
        cdef int fault = out.append(b"{" if is_map else b"[", 1)
        if is_map and (last - first > NAMES_MAX or self.has_twice(part, first, last)):
            return DOUBTFUL
        for item in range(first, last):
            if fault == 0 and item > first:
                fault = out.append(b", ", 2)
            if fault == 0 and is_map:
                fault = self.key(part, part.first_key + item, out)
            if fault != 0:
                return fault
            if not is_null(child, item):
                fault = self.write(part.children[0], item, out)
            elif not child.null_fits:
                return DOUBTFUL
            else:
                fault = out.append(b"null", 4)
        return fault if fault != 0 else out.append(b"}" if is_map else b"]", 1)

    cdef int key(self, Part* part, int64_t at, Output out) noexcept nogil:
        cdef int fault = write_text(part.keys + part.key_ends[at], part.key_ends[at + 1] - part.key_ends[at], out)
        return fault if fault != 0 else out.append(b": ", 2)

    cdef bint has_twice(self, Part* part, int64_t first, int64_t last) noexcept nogil:
        cdef int64_t one, other, size
        cdef const int32_t* ends = part.key_ends + part.first_key
        for one in range(first, last):
            size = ends[one + 1] - ends[one]
            for other in range(first, one):
                if ends[other + 1] - ends[other] == size and (
                    size == 0 or memcmp(part.keys + ends[other], part.keys + ends[one], size) == 0
                ):
                    return True
        return False


cdef inline bint is_null(Part* part, int64_t row) noexcept nogil:
    cdef int64_t at = part.first + row
    if part.valid == NULL:
        return part.kind == WRITE_NOTHING
    return not part.valid[at >> 3] >> (at & 7) & 1
