# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Arrow columns to Protobuf messages, compiled: the twin of `protobuf_encode_pure.py`, whose opening text is valid here.

The length of a message within another is known when it is written: room for one byte is left, and what was written is
moved if that is not enough.
"""

include "output.pxi"
include "protobuf_types.pxi"


cdef struct Part:
    int64_t number
    int64_t kind
    int64_t label
    int64_t oneof
    int64_t is_packed
    int64_t is_required
    int64_t a
    int64_t b
    int64_t is_closed
    int64_t default
    int64_t wire
    # Of the array that is being encoded; those of a list or map apart from those of what is in it.
    const uint8_t* outer_valid
    const int32_t* outer_ends
    int64_t outer_first
    const uint8_t* valid
    const uint8_t* data
    const int32_t* ends
    int64_t first


cdef struct Message:
    int64_t first
    int64_t count
    int64_t oneof_count


cdef enum:
    ONEOFS_MAX = 256


cdef inline bint is_there(const uint8_t* valid, int64_t at) noexcept nogil:
    return valid == NULL or valid[at >> 3] >> (at & 7) & 1


cdef class ProtobufEncoder:
    cdef list messages
    cdef Message* made
    cdef Part* parts
    cdef int64_t* edges
    cdef bytes constants
    cdef const uint8_t* constant_bytes
    cdef int64_t fault_at

    def __cinit__(self, messages, edges, bytes constants):
        """The first message is the one that values are."""
        cdef int64_t index, at = 0
        cdef Part* part
        self.messages, listed = list(messages), list(edges)
        self.constants = constants
        self.constant_bytes = <const uint8_t*><const char*>constants
        self.made = <Message*>calloc(max(1, len(self.messages)), sizeof(Message))
        self.parts = <Part*>calloc(max(1, sum(len(message.fields) for message in self.messages)), sizeof(Part))
        self.edges = <int64_t*>calloc(max(1, len(listed)), 8)
        if self.made == NULL or self.parts == NULL or self.edges == NULL:
            raise MemoryError()
        for index in range(<int64_t>len(listed)):
            self.edges[index] = listed[index]
        for index in range(<int64_t>len(self.messages)):
            message = self.messages[index]
            if message.oneof_count > ONEOFS_MAX:
                raise ValueError(f"a message has more than {ONEOFS_MAX} oneofs")
            self.made[index].first, self.made[index].count = at, len(message.fields)
            self.made[index].oneof_count = message.oneof_count
            for field in message.fields:
                part = &self.parts[at]
                part.number, part.kind, part.label, part.oneof = field.number, field.kind, field.label, field.oneof
                part.is_packed, part.is_required = field.is_packed, field.is_required
                part.a, part.b, part.is_closed, part.default = field.a, field.b, field.is_closed, field.default
                part.wire = wire_of(part.kind)
                at += 1

    def __dealloc__(self):
        free(self.made)
        free(self.parts)
        free(self.edges)

    def encode(self, rows, bytes head):
        """Raises Unwritable."""
        cdef Output content = Output(), ends = Output(), valid = Output()
        cdef int64_t count = len(rows), row, nulls = 0, first = rows.offset
        cdef int32_t end = 0
        cdef int fault
        cdef const uint8_t* head_bytes = <const uint8_t*><const char*>head
        cdef const uint8_t* of_rows = address(rows.buffers()[0])
        cdef int64_t head_size = len(head)
        held = [rows]
        self.bind(0, rows, held)
        if ends.append(&end, 4) != 0 or valid.reserve((count + 7) // 8 + 8) != 0:
            raise MemoryError()
        memset(valid.data, 0xFF, (count + 7) // 8)
        valid.size = (count + 7) // 8
        for row in range(count):
            if not is_there(of_rows, first + row):
                valid.data[row >> 3] &= <uint8_t>~(1 << (row & 7))
                nulls += 1
            else:
                fault = content.append(head_bytes, head_size)
                if fault == 0:
                    fault = self.message(0, row, content)
                if fault == 0 and content.size > 0x7FFFFFFF:
                    fault, self.fault_at = TOO_LARGE, 0
                if fault == NO_MEMORY:
                    raise MemoryError()
                if fault != 0:
                    raise Unwritable(row, self.fault_at, fault)
            end = <int32_t>content.size
            if ends.append(&end, 4) != 0:
                raise MemoryError()
        buffers = [pa.py_buffer(valid) if nulls else None, pa.py_buffer(ends), pa.py_buffer(content if content.size else b"")]
        return pa.Array.from_buffers(pa.binary(), count, buffers, nulls)

    # --- where the columns are

    cdef int bind(self, int64_t index, object array, list held) except -1:
        """`array`: a struct whose parts are the fields of this message. `held`: what must stay where it is meanwhile."""
        cdef int64_t at = self.made[index].first
        for field in self.messages[index].fields:
            if field.place >= 0:
                self.bind_field(at, array.field(field.place), held)
            at += 1
        return 0

    cdef int bind_field(self, int64_t at, object array, list held) except -1:
        cdef Part* part = &self.parts[at]
        held.append(array)
        if part.label >= LABEL_REPEATED:
            buffers = array.buffers()
            part.outer_valid, part.outer_ends = address(buffers[0]), <const int32_t*>address(buffers[1])
            part.outer_first = array.offset
            if part.label == LABEL_MAP:
                self.bind_field(self.made[part.a].first, array.keys, held)
                self.bind_field(self.made[part.a].first + 1, array.items, held)
                return 0
            array = array.values
            held.append(array)
        buffers = array.buffers()
        part.valid, part.first = address(buffers[0]), array.offset
        part.data, part.ends = NULL, NULL
        if part.kind == TYPE_MESSAGE or part.kind == TYPE_GROUP:
            self.bind(part.a, array, held)
        elif part.kind == TYPE_WRAPPER:
            # What is wrapped is the column itself.
            self.bind_field(self.made[part.a].first, array, held)
        elif part.kind == TYPE_STRING or part.kind == TYPE_BYTES or part.kind == TYPE_ENUM:
            part.ends, part.data = <const int32_t*>address(buffers[1]), address(buffers[2])
        else:
            part.data = address(buffers[1])
        return 0

    # --- one message

    cdef int message(self, int64_t index, int64_t row, Output out) noexcept nogil:
        cdef Message* message = &self.made[index]
        cdef uint8_t taken[ONEOFS_MAX]
        cdef int64_t at
        cdef Part* part
        cdef int fault
        if message.oneof_count:
            memset(taken, 0, message.oneof_count)
        for at in range(message.first, message.first + message.count):
            part = &self.parts[at]
            if part.label == LABEL_REPEATED or part.label == LABEL_MAP:
                fault = self.items(at, row, out)
            elif not is_there(part.valid, part.first + row):
                if part.is_required:
                    self.fault_at = at
                    return BAD_BRANCH
                continue
            else:
                if part.oneof >= 0:
                    if taken[part.oneof]:
                        self.fault_at = at
                        return REFUSED
                    taken[part.oneof] = 1
                fault = self.single(at, row, out, part.label == LABEL_IMPLICIT, True)
            if fault != 0:
                return fault
        return 0

    cdef int items(self, int64_t at, int64_t row, Output out) noexcept nogil:
        cdef Part* part = &self.parts[at]
        cdef int64_t item, before, place = part.outer_first + row
        cdef int fault
        if part.outer_ends == NULL or not is_there(part.outer_valid, place):
            return 0
        if part.outer_ends[place] == part.outer_ends[place + 1]:
            return 0
        if part.is_packed:
            fault = out.raw(<uint64_t>part.number << 3 | WIRE_BYTES)
            before = self.begin(out) if fault == 0 else -1
            if before < 0:
                return NO_MEMORY
            for item in range(part.outer_ends[place], part.outer_ends[place + 1]):
                fault = self.item(at, item, out, False)
                if fault != 0:
                    return fault
            return self.finish(out, before)
        for item in range(part.outer_ends[place], part.outer_ends[place + 1]):
            fault = self.pair(at, item, out) if part.label == LABEL_MAP else self.item(at, item, out, True)
            if fault != 0:
                return fault
        return 0

    cdef inline int item(self, int64_t at, int64_t item, Output out, bint has_tag) noexcept nogil:
        if not is_there(self.parts[at].valid, self.parts[at].first + item):
            self.fault_at = at
            return BAD_BRANCH
        return self.single(at, item, out, False, has_tag)

    cdef int pair(self, int64_t at, int64_t item, Output out) noexcept nogil:
        cdef int64_t before, inner = self.made[self.parts[at].a].first
        cdef int fault = out.raw(<uint64_t>self.parts[at].number << 3 | WIRE_BYTES)
        before = self.begin(out) if fault == 0 else -1
        if before < 0:
            return NO_MEMORY
        fault = self.item(inner, item, out, True)
        if fault == 0:
            fault = self.item(inner + 1, item, out, True)
            if fault == BAD_BRANCH and self.fault_at == inner + 1:
                self.fault_at = at
        return fault if fault != 0 else self.finish(out, before)

    cdef int64_t begin(self, Output out) noexcept nogil:
        """Room for a length; where it is, or -1 without memory."""
        cdef uint8_t zero = 0
        return out.size - 1 if out.append(&zero, 1) == 0 else -1

    cdef int finish(self, Output out, int64_t before) noexcept nogil:
        """The length of what was written since."""
        cdef uint64_t size = out.size - before - 1, rest = size
        cdef int more = 0, place
        while rest > 0x7F:
            rest >>= 7
            more += 1
        if more:
            if out.reserve(more) != 0:
                return NO_MEMORY
            memmove(out.data + before + 1 + more, out.data + before + 1, size)
            out.size += more
        for place in range(more):
            out.data[before + place] = <uint8_t>(size & 0x7F | 0x80)
            size >>= 7
        out.data[before + more] = <uint8_t>size
        return 0

    cdef int single(self, int64_t at, int64_t row, Output out, bint is_implicit, bint has_tag) noexcept nogil:
        """`is_implicit`: a default is not written."""
        cdef Part* part = &self.parts[at]
        cdef int64_t place = part.first + row, before, kind = part.kind
        cdef uint64_t raw = 0
        cdef int fault = 0
        if part.wire == WIRE_VARINT or part.wire == WIRE_64 or part.wire == WIRE_32:
            fault = self.scalar(at, part, place, &raw)
            if fault != 0 or (is_implicit and raw == 0):
                return fault
            if has_tag:
                fault = out.raw(<uint64_t>part.number << 3 | <uint64_t>part.wire)
            if fault != 0:
                return fault
            if part.wire == WIRE_VARINT:
                return out.raw(raw)
            return out.append(&raw, 8 if part.wire == WIRE_64 else 4)
        if kind == TYPE_STRING or kind == TYPE_BYTES:
            before = part.ends[place + 1] - part.ends[place]
            if is_implicit and before == 0:
                return 0
            fault = out.raw(<uint64_t>part.number << 3 | WIRE_BYTES)
            if fault == 0:
                fault = out.raw(<uint64_t>before)
            return fault if fault != 0 or before == 0 else out.append(part.data + part.ends[place], before)
        fault = out.raw(<uint64_t>part.number << 3 | <uint64_t>part.wire)
        if fault != 0:
            return fault
        if kind == TYPE_GROUP:
            fault = self.message(part.a, row, out)
            return fault if fault != 0 else out.raw(<uint64_t>part.number << 3 | WIRE_END)
        before = self.begin(out)
        if before < 0:
            return NO_MEMORY
        if kind == TYPE_MESSAGE:
            fault = self.message(part.a, row, out)
        elif kind == TYPE_WRAPPER:
            fault = self.single(self.made[part.a].first, row, out, True, True)
        else:
            fault = self.moment((<const int64_t*>part.data)[place], out)
        return fault if fault != 0 else self.finish(out, before)

    cdef int moment(self, int64_t micros, Output out) noexcept nogil:
        cdef int64_t seconds = micros // 1000000, rest = micros % 1000000
        cdef int fault = 0
        # C rounds to zero, and nanoseconds count onwards.
        if rest < 0:
            seconds, rest = seconds - 1, rest + 1000000
        if seconds:
            fault = out.raw(1 << 3)
            if fault == 0:
                fault = out.raw(<uint64_t>seconds)
        if fault == 0 and rest:
            fault = out.raw(2 << 3)
            if fault == 0:
                fault = out.raw(<uint64_t>(rest * 1000))
        return fault

    cdef inline int scalar(self, int64_t at, Part* part, int64_t place, uint64_t* raw) noexcept nogil:
        cdef int64_t kind = part.kind, value
        cdef int32_t small
        if kind == TYPE_INT64 or kind == TYPE_SFIXED64 or kind == TYPE_DOUBLE:
            raw[0] = (<const uint64_t*>part.data)[place]
        elif kind == TYPE_INT32:
            raw[0] = <uint64_t><int64_t>(<const int32_t*>part.data)[place]
        elif kind == TYPE_SFIXED32 or kind == TYPE_FLOAT:
            raw[0] = (<const uint32_t*>part.data)[place]
        elif kind == TYPE_BOOL:
            raw[0] = part.data[place >> 3] >> (place & 7) & 1
        elif kind == TYPE_SINT32:
            small = (<const int32_t*>part.data)[place]
            raw[0] = (<uint32_t>small << 1) ^ <uint32_t>(small >> 31)
        elif kind == TYPE_SINT64:
            value = (<const int64_t*>part.data)[place]
            raw[0] = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
        elif kind == TYPE_UINT32 or kind == TYPE_FIXED32:
            value = (<const int64_t*>part.data)[place]
            if value < 0 or value >> 32:
                self.fault_at = at
                return BAD_NUMBER
            raw[0] = <uint64_t>value
        elif kind == TYPE_ENUM:
            return self.symbol(at, part, place, raw)
        else:
            raw[0] = (<const uint64_t*>part.data)[2 * place]
            if (<const uint64_t*>part.data)[2 * place + 1]:
                self.fault_at = at
                return BAD_NUMBER
        return 0

    cdef int symbol(self, int64_t at, Part* part, int64_t place, uint64_t* raw) noexcept nogil:
        """The number of a name; of an open enum digits are a number, too."""
        cdef const uint8_t* start = part.data + part.ends[place]
        cdef int64_t size = part.ends[place + 1] - part.ends[place], number, edge, value = 0
        cdef bint is_negative
        for number in range(part.b):
            edge = part.a + 3 * number
            if self.edges[edge + 2] == size and memcmp(self.constant_bytes + self.edges[edge + 1], start, size) == 0:
                raw[0] = <uint64_t>self.edges[edge]
                return 0
        self.fault_at = at
        is_negative = size > 1 and start[0] == 45
        if part.is_closed or size == 0 or size > 11:
            return BAD_SYMBOL
        for number in range(is_negative, size):
            if start[number] < 48 or start[number] > 57:
                return BAD_SYMBOL
            value = value * 10 + start[number] - 48
        if is_negative:
            value = -value
        if value > 0x7FFFFFFF or value < -0x80000000:
            return BAD_SYMBOL
        raw[0] = <uint64_t>value
        return 0
