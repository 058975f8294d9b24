# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Protobuf messages to Arrow columns, compiled: the twin of `protobuf_pure.py`, whose opening text is valid here too.

A message is read twice: once over its bytes, to note where each field is (the last of several counts, those of a list
are a chain), then field by field in the order of the columns. Notes are taken on two stacks that all values share.
Every read is compared with the end of its bytes first.
"""

include "columns.pxi"
include "protobuf_types.pxi"

from ottla.kernel.avro_steps import Bad
from ottla.kernel.protobuf_steps import NESTED_MAX as _NESTED_MAX

include "protobuf_scan.pxi"
include "protobuf_put.pxi"


cdef int is_place(const uint8_t** at, const uint8_t* end, const int64_t* place, int64_t count) noexcept nogil:
    """Past the numbers that say which message of the file follows."""
    cdef int64_t found, number, index
    cdef bint is_other
    cdef const uint8_t* after = ottla_varint(at[0], end, &found)
    if after == NULL or found < 0 or found > end - at[0]:
        return TOO_SHORT
    is_other = found != count and not (found == 0 and count == 1 and place[0] == 0)
    for index in range(found):
        after = ottla_varint(after, end, &number)
        if after == NULL:
            return TOO_SHORT
        is_other = is_other or number != place[index]
    at[0] = after
    return OTHER_MESSAGE if is_other else 0


cdef enum:
    PLACES_MAX = 64


cdef class ProtobufDecoder(ColumnSet):
    cdef MessageOf* messages
    cdef int message_count
    cdef int64_t* edges
    cdef bytes constants
    cdef Run run

    def __init__(self, columns, kind, messages, edges, bytes constants):
        """The first message is the one that values are; column 0 is its struct."""
        cdef int index, place
        cdef MessageOf* made
        cdef FieldOf* field
        listed, listed_edges = list(messages), list(edges)
        if self.messages != NULL:
            raise RuntimeError("a decoder is made once")
        self.messages = <MessageOf*>calloc(max(1, len(listed)), sizeof(MessageOf))
        self.edges = <int64_t*>calloc(max(1, len(listed_edges)), 8)
        if self.messages == NULL or self.edges == NULL:
            raise MemoryError()
        self.constants = constants
        for index in range(len(listed_edges)):
            self.edges[index] = listed_edges[index]
        for index in range(len(listed)):
            message, made = listed[index], &self.messages[index]
            made.column, made.oneof_count, made.count = message.column, message.oneof_count, len(message.fields)
            made.fields = <FieldOf*>calloc(max(1, made.count), sizeof(FieldOf))
            made.sorted = <int32_t*>calloc(max(1, made.count), 4)
            self.message_count = index + 1
            if made.fields == NULL or made.sorted == NULL:
                raise MemoryError()
            memset(made.small, 0xFF, sizeof(made.small))
            by_number = sorted(range(len(message.fields)), key=lambda at: message.fields[at].number)
            for place in range(len(by_number)):
                made.sorted[place] = by_number[place]
            for place in range(made.count):
                field, step = &made.fields[place], message.fields[place]
                field.number, field.kind, field.label, field.oneof = step.number, step.kind, step.label, step.oneof
                field.column, field.outer, field.a, field.b = step.column, step.outer, step.a, step.b
                field.is_closed, field.default = step.is_closed, step.default
                field.wire = wire_of(field.kind)
                if field.number < SMALL:
                    made.small[field.number] = place

    def __cinit__(self, *arguments):
        memset(&self.run, 0, sizeof(Run))

    def __dealloc__(self):
        cdef int index
        for index in range(self.message_count if self.messages != NULL else 0):
            free(self.messages[index].fields)
            free(self.messages[index].sorted)
        free(self.messages)
        free(self.edges)
        free(self.run.entries)
        free(self.run.slots)

    def decode(self, values, places):
        """A struct for each value, null for those that are null or bad; and the bad ones. `places`: of each id that
        may stand before a value, where the message is in its file."""
        cdef Values looked = Values(values)
        cdef const uint8_t* start
        cdef const uint8_t* end
        cdef int64_t row, number, last = -1, which = 0
        cdef int64_t place[PLACES_MAX]
        cdef int64_t place_count = 0
        cdef int fault
        cdef Run* run = &self.run
        bad = []
        self.begin()
        run.messages, run.edges, run.columns = self.messages, self.edges, self.columns
        run.constants = <const uint8_t*><const char*>self.constants
        for row in range(looked.count):
            fault = 0
            if looked.get(row, &start, &end):
                number = framed_id(start, end)
                if number < 0:
                    fault = NOT_FRAMED
                elif number != last:
                    its, last = places.get(number), number
                    place_count = -1 if its is None else len(its)
                    if place_count > PLACES_MAX:
                        raise ValueError("a message is too deep within others")
                    for which in range(place_count):
                        place[which] = its[which]
                if fault == 0 and place_count < 0:
                    fault = NO_PROGRAM
                elif fault == 0:
                    start += HEAD_BYTES
                    fault = is_place(&start, end, place, place_count)
                if fault == 0:
                    run.entry_count = run.slot_count = 0
                    fault = self.one(run, start, end)
                if fault == 0:
                    continue
                if fault == NO_MEMORY:
                    raise MemoryError()
                bad.append(Bad(row, fault, number if fault == NO_PROGRAM else 0))
                cut(self.columns, 0, row)
            if put_null(self.columns, 0) != 0:
                raise MemoryError()
        return self.finished(0, self.type, looked.count), bad

    cdef int one(self, Run* run, const uint8_t* start, const uint8_t* end) noexcept nogil:
        cdef MessageOf* message = &run.messages[0]
        cdef int64_t base = take_slots(run, message), index
        cdef int fault
        if base < 0:
            return NO_MEMORY
        fault = scan(run, message, base, start, end, 0)
        for index in range(message.count):
            if fault != 0:
                return fault
            fault = put_field(run, &message.fields[index], base + index, 0)
        return fault if fault != 0 else mark(&run.columns[0], True)
