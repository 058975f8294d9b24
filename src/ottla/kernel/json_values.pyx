# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""JSON with the id of a schema before it, to Arrow columns: all values of which it is plain what they say.

`JsonDecoder(columns, type, steps, edges, constants).decode(values)` answers with a struct for each value and with the
rows that it leaves to others, which are null there: values that do not fit, and the few whose meaning takes more than a
look (the same name twice, 1e400, halves of characters). `ottla.schemas.json_columns` reads those with Python's own
parser, which has the last word and the sentence; without a compiler it reads all of them. So whatever is read here has
to be what Python would have read: tests compare them.

Properties are put into their columns in the order in which they come, for each is a column of its own; those that did
not come are null.
"""

include "columns.pxi"

from ottla.kernel.avro_steps import DEPTH_MAX as _DEPTH_MAX

cdef extern from "Python.h":
    # Called with the interpreter lock held, by code that does not know that.
    double PyOS_string_to_double(const char* text, char** end, void* overflow) nogil
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* kind) nogil
    void PyMem_Free(void* data) nogil
    int Py_DTSF_ADD_DOT_0

cdef extern from "math.h":
    bint isfinite(double value) nogil

cdef extern from "string.h":
    size_t strlen(const char* text) nogil

# The numbers of `json_steps.py`; a test compares them.
cdef enum:
    STEP_INTEGER = 0
    STEP_NUMBER = 1
    STEP_STRING = 2
    STEP_BOOLEAN = 3
    STEP_TEXT = 4
    STEP_LIST = 5
    STEP_MAP = 6
    STEP_STRUCT = 7
    STEP_SKIP = 8

cdef enum:
    # What is left to others.
    DOUBTFUL = 50
    # Names of a map are compared with one another up to so many.
    NAMES_MAX = 64
    DIGITS_MAX = 60

cdef int64_t DEPTH_MAX = _DEPTH_MAX
# A double has all whole numbers up to here, and these powers of ten, exactly.
cdef uint64_t EXACT_MAX = 0x20000000000000
cdef double[23] TENS
TENS = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22]


cdef struct Node:
    int64_t kind
    int64_t column
    int64_t a
    int64_t b


cdef struct Run:
    Node* nodes
    int64_t* edges
    const uint8_t* constants
    Column* columns
    const uint8_t* at
    const uint8_t* end
    # Of a text with escapes, what it says.
    Room plain
    # JSON that becomes text.
    Room written
    # Of each object that is open, which of its properties came already.
    Room seen


cdef struct Number:
    bint is_negative
    bint is_integer
    uint64_t digits
    bint has_all_digits
    int64_t exponent
    const uint8_t* start
    const uint8_t* end


cdef inline void blank(Run* run) noexcept nogil:
    while run.at < run.end and (run.at[0] == 32 or run.at[0] == 10 or run.at[0] == 13 or run.at[0] == 9):
        run.at += 1


cdef inline int word(Run* run, const char* text, int64_t size) noexcept nogil:
    if run.end - run.at < size or memcmp(run.at, text, size) != 0:
        return DOUBTFUL
    run.at += size
    return 0


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef int number(Run* run, Number* found) noexcept nogil:
    """As JSON has them."""
    cdef const uint8_t* at = run.at
    cdef const uint8_t* end = run.end
    cdef int64_t count = 0, exponent = 0
    cdef bint is_below = False
    found.start = at
    found.digits, found.exponent, found.is_integer, found.has_all_digits = 0, 0, True, True
    found.is_negative = at < end and at[0] == 45
    if found.is_negative:
        at += 1
    if at >= end or not is_digit(at[0]):
        return DOUBTFUL
    if at[0] == 48 and at + 1 < end and is_digit(at[1]):
        return DOUBTFUL
    while at < end and is_digit(at[0]):
        if found.digits > 0 or at[0] != 48:
            count += 1
        if count > 19:
            found.has_all_digits = False
        else:
            found.digits = found.digits * 10 + (at[0] - 48)
        at += 1
    if at < end and at[0] == 46:
        found.is_integer = False
        at += 1
        if at >= end or not is_digit(at[0]):
            return DOUBTFUL
        while at < end and is_digit(at[0]):
            if found.digits > 0 or at[0] != 48:
                count += 1
            if count > 19:
                found.has_all_digits = False
            else:
                found.digits = found.digits * 10 + (at[0] - 48)
                found.exponent -= 1
            at += 1
    if at < end and (at[0] == 101 or at[0] == 69):
        found.is_integer = False
        at += 1
        if at < end and (at[0] == 43 or at[0] == 45):
            is_below = at[0] == 45
            at += 1
        if at >= end or not is_digit(at[0]):
            return DOUBTFUL
        while at < end and is_digit(at[0]):
            if exponent < 10000:
                exponent = exponent * 10 + (at[0] - 48)
            at += 1
        found.exponent += -exponent if is_below else exponent
    found.end = run.at = at
    return 0


cdef inline int as_integer(Number* found, int64_t* value) noexcept nogil:
    cdef uint64_t limit = <uint64_t>1 << 63
    if not found.is_integer or not found.has_all_digits:
        return DOUBTFUL
    if found.digits > (limit if found.is_negative else limit - 1):
        return DOUBTFUL
    value[0] = <int64_t>(0 - found.digits) if found.is_negative else <int64_t>found.digits
    return 0


cdef int as_double(Number* found, double* value) noexcept nogil:
    cdef char digits[DIGITS_MAX + 1]
    cdef int64_t size = found.end - found.start
    if found.has_all_digits and found.digits <= EXACT_MAX and -22 <= found.exponent <= 22:
        value[0] = <double>found.digits
        if found.exponent < 0:
            value[0] /= TENS[-found.exponent]
        else:
            value[0] *= TENS[found.exponent]
        if found.is_negative:
            # Python has the integer -0 as 0.
            value[0] = 0.0 if found.is_integer and found.digits == 0 else -value[0]
        return 0
    if size > DIGITS_MAX:
        return DOUBTFUL
    memcpy(digits, found.start, size)
    digits[size] = 0
    value[0] = PyOS_string_to_double(digits, NULL, NULL)
    return 0 if isfinite(value[0]) else DOUBTFUL


# --- texts


cdef inline int hexadecimal(const uint8_t* at) noexcept nogil:
    """Four digits, or -1."""
    cdef int value = 0, index
    cdef uint8_t byte
    for index in range(4):
        byte = at[index]
        if is_digit(byte):
            value = value * 16 + byte - 48
        elif (byte | 32) >= 97 and (byte | 32) <= 102:
            value = value * 16 + (byte | 32) - 87
        else:
            return -1
    return value


cdef inline int put_point(Room* room, int point) noexcept nogil:
    """A character as UTF-8."""
    cdef uint8_t data[4]
    if point < 0x80:
        data[0] = point
        return append(room, data, 1)
    if point < 0x800:
        data[0], data[1] = 0xC0 | point >> 6, 0x80 | point & 63
        return append(room, data, 2)
    if point < 0x10000:
        data[0], data[1], data[2] = 0xE0 | point >> 12, 0x80 | point >> 6 & 63, 0x80 | point & 63
        return append(room, data, 3)
    data[0], data[1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 63
    data[2], data[3] = 0x80 | point >> 6 & 63, 0x80 | point & 63
    return append(room, data, 4)


cdef int text(Run* run, const uint8_t** start, int64_t* size) noexcept nogil:
    """What stands between two quotes. With escapes it is in `run.plain`, until the next one."""
    cdef const uint8_t* at
    cdef const uint8_t* begun
    cdef bint is_ascii = True
    if run.at >= run.end or run.at[0] != 34:
        return DOUBTFUL
    begun = at = run.at + 1
    while at < run.end and at[0] != 34 and at[0] != 92:
        if at[0] < 32:
            return DOUBTFUL
        if at[0] >= 128:
            is_ascii = False
        at += 1
    if at >= run.end:
        return DOUBTFUL
    if at[0] == 92:
        return text_with_escapes(run, start, size)
    if not is_ascii and not ottla_is_utf8(begun, at - begun):
        return DOUBTFUL
    start[0], size[0] = begun, at - begun
    run.at = at + 1
    return 0


cdef int text_with_escapes(Run* run, const uint8_t** start, int64_t* size) noexcept nogil:
    cdef const uint8_t* at = run.at + 1
    cdef const uint8_t* begun
    cdef int point, low, fault = 0
    cdef uint8_t byte
    run.plain.size = 0
    while fault == 0:
        begun = at
        while at < run.end and at[0] != 34 and at[0] != 92 and at[0] >= 32:
            at += 1
        if at > begun:
            if not ottla_is_utf8(begun, at - begun):
                return DOUBTFUL
            fault = append(&run.plain, begun, at - begun)
            if fault != 0:
                return fault
        if at >= run.end or at[0] < 32:
            return DOUBTFUL
        if at[0] == 34:
            break
        if run.end - at < 2:
            return DOUBTFUL
        byte = at[1]
        at += 2
        if byte == 34 or byte == 92 or byte == 47:
            point = byte
        elif byte == 98:
            point = 8
        elif byte == 102:
            point = 12
        elif byte == 110:
            point = 10
        elif byte == 114:
            point = 13
        elif byte == 116:
            point = 9
        elif byte == 117:
            if run.end - at < 4:
                return DOUBTFUL
            point = hexadecimal(at)
            at += 4
            if point < 0 or 0xDC00 <= point <= 0xDFFF:
                return DOUBTFUL
            if 0xD800 <= point <= 0xDBFF:
                if run.end - at < 6 or at[0] != 92 or at[1] != 117:
                    return DOUBTFUL
                low = hexadecimal(at + 2)
                if low < 0xDC00 or low > 0xDFFF:
                    return DOUBTFUL
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                at += 6
        else:
            return DOUBTFUL
        fault = put_point(&run.plain, point)
    if fault != 0:
        return fault
    if reserve(&run.plain, 1) != 0:
        return NO_MEMORY
    start[0], size[0] = run.plain.data, run.plain.size
    run.at = at + 1
    return 0


# --- what becomes text


cdef int write_escaped(Room* out, int point) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef uint8_t data[6]
    cdef int index
    data[0], data[1] = 92, 117
    for index in range(4):
        data[2 + index] = digits[point >> (12 - 4 * index) & 15]
    return append(out, data, 6)


cdef int write_text(Room* out, const uint8_t* data, int64_t size) noexcept nogil:
    """As Python's json writes it, in ASCII."""
    cdef const uint8_t* end = data + size
    cdef uint8_t pair[2]
    cdef int fault = append(out, b'"', 1), point, more
    while data < end and fault == 0:
        point = data[0]
        data += 1
        if 32 <= point < 127 and point != 34 and point != 92:
            pair[0] = point
            fault = append(out, pair, 1)
            continue
        pair[0], pair[1] = 92, 0
        if point == 34 or point == 92:
            pair[1] = point
        elif point == 10:
            pair[1] = 110
        elif point == 13:
            pair[1] = 114
        elif point == 9:
            pair[1] = 116
        elif point == 8:
            pair[1] = 98
        elif point == 12:
            pair[1] = 102
        if pair[1]:
            fault = append(out, pair, 2)
            continue
        if point >= 0x80:
            more = 3 if point >= 0xF0 else 2 if point >= 0xE0 else 1
            point &= 0x3F >> more
            while more:
                point = point << 6 | data[0] & 63
                data += 1
                more -= 1
        if point >= 0x10000:
            point -= 0x10000
            fault = write_escaped(out, 0xD800 + (point >> 10))
            point = 0xDC00 + (point & 0x3FF)
        if fault == 0:
            fault = write_escaped(out, point)
    return fault if fault != 0 else append(out, b'"', 1)


cdef int write_number(Run* run) noexcept nogil:
    cdef Number found
    cdef int64_t whole
    cdef double real
    cdef char* made
    cdef int fault = number(run, &found)
    if fault != 0:
        return fault
    if found.is_integer:
        fault = as_integer(&found, &whole)
        if fault == 0 and whole == 0:
            return append(&run.written, b"0", 1)
        return fault if fault != 0 else append(&run.written, found.start, found.end - found.start)
    fault = as_double(&found, &real)
    if fault != 0:
        return fault
    made = PyOS_double_to_string(real, 114, 0, Py_DTSF_ADD_DOT_0, NULL)
    if made == NULL:
        return NO_MEMORY
    fault = append(&run.written, made, strlen(made))
    PyMem_Free(made)
    return fault


cdef int write_value(Run* run, int64_t depth) noexcept nogil:
    """Anything, without blanks, into `run.written`."""
    cdef int64_t names[2 * NAMES_MAX]
    cdef int64_t count = 0, size, index
    cdef const uint8_t* start
    cdef const uint8_t* begun
    cdef uint8_t closing
    cdef int fault
    if depth > DEPTH_MAX:
        return DOUBTFUL
    blank(run)
    if run.at >= run.end:
        return DOUBTFUL
    if run.at[0] == 34:
        fault = text(run, &start, &size)
        return fault if fault != 0 else write_text(&run.written, start, size)
    if run.at[0] != 123 and run.at[0] != 91:
        begun = run.at
        if begun[0] == 116:
            fault = word(run, b"true", 4)
        elif begun[0] == 102:
            fault = word(run, b"false", 5)
        elif begun[0] == 110:
            fault = word(run, b"null", 4)
        else:
            return write_number(run)
        return fault if fault != 0 else append(&run.written, begun, run.at - begun)
    closing = run.at[0] + 2
    fault = append(&run.written, run.at, 1)
    run.at += 1
    blank(run)
    if fault == 0 and run.at < run.end and run.at[0] == closing:
        run.at += 1
        return append(&run.written, &closing, 1)
    while fault == 0:
        if closing == 125:
            blank(run)
            fault = text(run, &start, &size)
            if fault != 0 or count == NAMES_MAX:
                return fault or DOUBTFUL
            names[2 * count] = run.written.size
            fault = write_text(&run.written, start, size)
            names[2 * count + 1] = run.written.size - names[2 * count]
            for index in range(count):
                if fault == 0 and names[2 * index + 1] == names[2 * count + 1] and memcmp(
                    run.written.data + names[2 * index], run.written.data + names[2 * count], names[2 * count + 1]
                ) == 0:
                    return DOUBTFUL
            count += 1
            blank(run)
            if fault == 0:
                fault = word(run, b":", 1)
            if fault == 0:
                fault = append(&run.written, b":", 1)
        if fault == 0:
            fault = write_value(run, depth + 1)
        if fault != 0:
            return fault
        blank(run)
        if run.at >= run.end or (run.at[0] != 44 and run.at[0] != closing):
            return DOUBTFUL
        fault = append(&run.written, run.at, 1)
        run.at += 1
        if (run.at - 1)[0] == closing:
            return fault
    return fault


# --- to columns


cdef int put(Run* run, int64_t index, int64_t depth) noexcept nogil:
    """The value that comes, by this step."""
    cdef Node* node = &run.nodes[index]
    cdef Column* column = NULL
    cdef Number found
    cdef const uint8_t* start
    cdef int64_t size, whole
    cdef double real
    cdef int fault
    if node.column >= 0:
        column = &run.columns[node.column]
    blank(run)
    if run.at >= run.end or depth > DEPTH_MAX:
        return DOUBTFUL
    if node.kind == STEP_SKIP:
        # It has to be JSON, and that is all.
        run.written.size = 0
        return write_value(run, depth)
    if run.at[0] == 110:
        fault = word(run, b"null", 4)
        return fault if fault != 0 else put_null(run.columns, <int>node.column)
    if node.kind == STEP_STRING or (node.kind == STEP_TEXT and run.at[0] == 34):
        fault = text(run, &start, &size)
        return fault if fault != 0 else put_bytes(column, start, size)
    if node.kind == STEP_INTEGER:
        fault = number(run, &found)
        if fault == 0:
            fault = as_integer(&found, &whole)
        return fault if fault != 0 else put_number(column, &whole, 8)
    if node.kind == STEP_NUMBER:
        fault = number(run, &found)
        if fault == 0:
            fault = as_double(&found, &real)
        return fault if fault != 0 else put_number(column, &real, 8)
    if node.kind == STEP_BOOLEAN:
        if run.at[0] == 116:
            fault = word(run, b"true", 4)
            return fault if fault != 0 else put_boolean(column, True)
        fault = word(run, b"false", 5)
        return fault if fault != 0 else put_boolean(column, False)
    if node.kind == STEP_TEXT:
        run.written.size = 0
        fault = write_value(run, depth)
        return fault if fault != 0 else put_bytes(column, run.written.data, run.written.size)
    if node.kind == STEP_STRUCT:
        return put_object(run, node, depth)
    return put_items(run, node, depth)


cdef int put_items(Run* run, Node* node, int64_t depth) noexcept nogil:
    """A list, or a map."""
    cdef Column* column = &run.columns[node.column]
    cdef Column* keys = NULL
    cdef bint is_map = node.kind == STEP_MAP
    cdef uint8_t closing = 125 if is_map else 93
    cdef int64_t first, size, other
    cdef const uint8_t* start
    cdef int32_t* ends
    cdef int fault
    if run.at[0] != closing - 2:
        return DOUBTFUL
    run.at += 1
    if is_map:
        keys = &run.columns[column.children[0]]
        first = keys.count
    blank(run)
    if run.at < run.end and run.at[0] == closing:
        run.at += 1
    else:
        while True:
            if is_map:
                blank(run)
                fault = text(run, &start, &size)
                if fault != 0 or keys.count - first == NAMES_MAX:
                    return fault or DOUBTFUL
                ends = <int32_t*>keys.ends.data
                for other in range(first, keys.count):
                    if ends[other + 1] - ends[other] == size and (
                        size == 0 or memcmp(keys.content.data + ends[other], start, size) == 0
                    ):
                        return DOUBTFUL
                fault = put_bytes(keys, start, size)
                blank(run)
                if fault == 0:
                    fault = word(run, b":", 1)
                if fault != 0:
                    return fault
            fault = put(run, node.a, depth + 1)
            if fault != 0:
                return fault
            blank(run)
            if run.at >= run.end or (run.at[0] != 44 and run.at[0] != closing):
                return DOUBTFUL
            run.at += 1
            if (run.at - 1)[0] == closing:
                break
    fault = mark_end(column, run.columns[column.children[column.child_count - 1]].count)
    return fault if fault != 0 else mark(column, True)


cdef int put_object(Run* run, Node* node, int64_t depth) noexcept nogil:
    cdef int64_t base = run.seen.size, expected = 0, index, tried, size, edge
    cdef const uint8_t* start
    cdef int fault
    if run.at[0] != 123:
        return DOUBTFUL
    run.at += 1
    if reserve(&run.seen, node.b + 1) != 0:
        return NO_MEMORY
    memset(run.seen.data + base, 0, node.b)
    run.seen.size = base + node.b
    blank(run)
    if run.at < run.end and run.at[0] == 125:
        run.at += 1
    else:
        while True:
            blank(run)
            fault = text(run, &start, &size)
            if fault != 0:
                return fault
            # They come in the order of the schema, as a rule.
            index = -1
            for tried in range(node.b):
                edge = node.a + 4 * expected
                if run.edges[edge + 1] == size and memcmp(run.constants + run.edges[edge], start, size) == 0:
                    index = expected
                expected = expected + 1 if expected + 1 < node.b else 0
                if index >= 0:
                    break
            blank(run)
            fault = word(run, b":", 1)
            if fault != 0:
                return fault
            if index < 0:
                run.written.size = 0
                fault = write_value(run, depth + 1)
            elif run.seen.data[base + index]:
                return DOUBTFUL
            else:
                run.seen.data[base + index] = 1
                fault = put(run, run.edges[node.a + 4 * index + 2], depth + 1)
            if fault != 0:
                return fault
            blank(run)
            if run.at >= run.end or (run.at[0] != 44 and run.at[0] != 125):
                return DOUBTFUL
            run.at += 1
            if (run.at - 1)[0] == 125:
                break
    for index in range(node.b):
        if run.seen.data[base + index]:
            continue
        edge = node.a + 4 * index
        if run.edges[edge + 3]:
            return DOUBTFUL
        if run.nodes[run.edges[edge + 2]].column >= 0:
            fault = put_null(run.columns, <int>run.nodes[run.edges[edge + 2]].column)
            if fault != 0:
                return fault
    run.seen.size = base
    return mark(&run.columns[node.column], True)


cdef class JsonDecoder(ColumnSet):
    cdef Node* nodes
    cdef int64_t* edges
    cdef bytes constants
    cdef int64_t root
    cdef Run run

    def __cinit__(self, columns, kind, steps, edges, bytes constants):
        """The last step is the one of a value. If it is no object, column 0 is a struct around it."""
        cdef int64_t index
        listed, listed_edges = list(steps), list(edges)
        memset(&self.run, 0, sizeof(Run))
        self.constants = constants
        self.root = len(listed) - 1
        self.nodes = <Node*>calloc(max(1, len(listed)), sizeof(Node))
        self.edges = <int64_t*>calloc(max(1, len(listed_edges)), 8)
        if self.nodes == NULL or self.edges == NULL:
            raise MemoryError()
        for index in range(<int64_t>len(listed_edges)):
            self.edges[index] = listed_edges[index]
        for index in range(<int64_t>len(listed)):
            step = listed[index]
            self.nodes[index].kind, self.nodes[index].column = step.kind, step.column
            self.nodes[index].a, self.nodes[index].b = step.a, step.b

    def __dealloc__(self):
        free(self.nodes)
        free(self.edges)
        free(self.run.plain.data)
        free(self.run.written.data)
        free(self.run.seen.data)

    def decode(self, values):
        """A struct for each value, null for those that are null, and the rows that are left to others."""
        cdef Values looked = Values(values)
        cdef const uint8_t* start
        cdef const uint8_t* end
        cdef int64_t row
        cdef bint is_object = self.nodes[self.root].column == 0
        cdef Run* run = &self.run
        cdef int fault
        left = []
        self.begin()
        run.nodes, run.edges, run.columns = self.nodes, self.edges, self.columns
        run.constants = <const uint8_t*><const char*>self.constants
        for row in range(looked.count):
            if looked.get(row, &start, &end):
                fault = DOUBTFUL
                if framed_id(start, end) >= 0:
                    run.at, run.end, run.seen.size = start + HEAD_BYTES, end, 0
                    blank(run)
                    # An object that is null is none.
                    if not is_object or (run.at < end and run.at[0] == 123):
                        fault = put(run, self.root, 0)
                    blank(run)
                    if fault == 0 and run.at != end:
                        fault = DOUBTFUL
                    if fault == 0 and not is_object:
                        fault = mark(&self.columns[0], True)
                if fault == 0:
                    continue
                if fault == NO_MEMORY:
                    raise MemoryError()
                left.append(row)
                cut(self.columns, 0, row)
            if put_null(self.columns, 0) != 0:
                raise MemoryError()
        return self.finished(0, self.type, looked.count), left
