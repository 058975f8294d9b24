# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""JSON, with the id of a schema before it or without, to Arrow columns: all values of which it is plain what they say.

`JsonDecoder(columns, type, steps, edges, constants).decode(values)` answers with a struct for each value and with the
rows that it leaves to others, which are null there: values that do not fit, and the few whose meaning takes more than a
look (the same name twice, 1e400, halves of characters). `ottla.schemas.json_columns` reads those with Python's own
parser, which has the last word and the sentence; without a compiler it reads all of them. So does
`ottla.streams.engine.row_columns`. Whatever is read here has to be what Python would have read: tests compare them.

Properties are put into their columns in the order in which they come, for each is a column of its own; those that did
not come are null.
"""

include "columns.pxi"
include "json_scan.pxi"
include "json_text.pxi"

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
    cdef bint has_head
    cdef Run run

    def __cinit__(self, columns, kind, steps, edges, bytes constants, bint has_head=True):
        """The last step is the one of a value. If it is no object, column 0 is a struct around it. `has_head`: whether
        the id of a schema comes before it."""
        cdef int64_t index
        listed, listed_edges = list(steps), list(edges)
        memset(&self.run, 0, sizeof(Run))
        self.constants, self.has_head = constants, has_head
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
                if not self.has_head or framed_id(start, end) >= 0:
                    run.at, run.end, run.seen.size = start + (HEAD_BYTES if self.has_head else 0), end, 0
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
