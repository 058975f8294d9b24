# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Protobuf messages to Arrow columns, compiled: the twin of `protobuf_pure.py`, whose opening text is valid here too.

A message is read twice: once over its bytes, to note where each field is (the last of several counts, those of a list
are a chain), then field by field in the order of the columns. Notes are taken on two stacks that all values share.
Every read is compared with the end of its bytes first.
"""

include "columns.pxi"

from ottla.kernel.avro_steps import Bad
from ottla.kernel.protobuf_steps import NESTED_MAX as _NESTED_MAX

cdef extern from "bytes.h":
    const uint8_t* ottla_varint(const uint8_t* at, const uint8_t* end, int64_t* value) nogil

cdef extern from *:
    """
    /* A number of at most ten bytes; NULL if they or the buffer end first. */
    static inline const uint8_t *ottla_raw(const uint8_t *at, const uint8_t *end, uint64_t *value) {
        uint64_t raw = 0;
        if (at < end && *at < 0x80) { *value = *at; return at + 1; }
        for (int shift = 0; at < end && shift < 70; shift += 7) {
            uint8_t byte = *at++;
            raw |= (uint64_t)(byte & 0x7F) << shift;
            if (byte < 0x80) { *value = raw; return at; }
        }
        return NULL;
    }
    /* One of at most five bytes and `most`, as tags and lengths are. */
    static inline const uint8_t *ottla_short(const uint8_t *at, const uint8_t *end, uint64_t most, uint64_t *value) {
        const uint8_t *after = ottla_raw(at, end, value);
        return after == NULL || after - at > 5 || *value > most ? NULL : after;
    }
    static inline int64_t ottla_moment(int64_t seconds, int32_t nanos) {
        int64_t micros = nanos / 1000 - (nanos % 1000 < 0), whole;
        if (__builtin_mul_overflow(seconds, (int64_t)1000000, &whole)) return seconds < 0 ? -INT64_MAX : INT64_MAX;
        if (__builtin_add_overflow(whole, micros, &whole)) return seconds < 0 ? -INT64_MAX : INT64_MAX;
        return whole == INT64_MIN ? -INT64_MAX : whole;
    }
    static inline int32_t ottla_unzigzag32(uint32_t raw) { return (int32_t)(raw >> 1) ^ -(int32_t)(raw & 1); }
    static inline int64_t ottla_unzigzag64(uint64_t raw) { return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1); }
    static inline uint32_t ottla_load32(const uint8_t *at) { uint32_t raw; memcpy(&raw, at, 4); return raw; }
    static inline uint64_t ottla_load64(const uint8_t *at) { uint64_t raw; memcpy(&raw, at, 8); return raw; }
    """
    const uint8_t* ottla_raw(const uint8_t* at, const uint8_t* end, uint64_t* value) nogil
    const uint8_t* ottla_short(const uint8_t* at, const uint8_t* end, uint64_t most, uint64_t* value) nogil
    int64_t ottla_moment(int64_t seconds, int32_t nanos) nogil
    int32_t ottla_unzigzag32(uint32_t raw) nogil
    int64_t ottla_unzigzag64(uint64_t raw) nogil
    uint32_t ottla_load32(const uint8_t* at) nogil
    uint64_t ottla_load64(const uint8_t* at) nogil
    int snprintf(char* into, size_t size, const char* form, int value) nogil

# The numbers of `protobuf_steps.py`; a test compares them.
cdef enum:
    TYPE_DOUBLE = 1
    TYPE_FLOAT = 2
    TYPE_INT64 = 3
    TYPE_UINT64 = 4
    TYPE_INT32 = 5
    TYPE_FIXED64 = 6
    TYPE_FIXED32 = 7
    TYPE_BOOL = 8
    TYPE_STRING = 9
    TYPE_GROUP = 10
    TYPE_MESSAGE = 11
    TYPE_BYTES = 12
    TYPE_UINT32 = 13
    TYPE_ENUM = 14
    TYPE_SFIXED32 = 15
    TYPE_SFIXED64 = 16
    TYPE_SINT32 = 17
    TYPE_SINT64 = 18
    TYPE_TIMESTAMP = 21
    TYPE_WRAPPER = 22

cdef enum:
    LABEL_IMPLICIT = 0
    LABEL_PRESENT = 1
    LABEL_REPEATED = 2
    LABEL_MAP = 3

cdef enum:
    WIRE_VARINT = 0
    WIRE_64 = 1
    WIRE_BYTES = 2
    WIRE_GROUP = 3
    WIRE_END = 4
    WIRE_32 = 5

cdef enum:
    # Fields with smaller numbers are found at once.
    SMALL = 128
    # Keys of smaller maps are compared one with another.
    FEW_KEYS = 16

cdef int64_t NESTED_MAX = _NESTED_MAX


# --- programs


cdef struct FieldOf:
    int64_t number
    int64_t kind
    int64_t label
    int64_t oneof
    int64_t column
    int64_t outer
    int64_t a
    int64_t b
    int64_t is_closed
    int64_t default
    int64_t wire


cdef struct MessageOf:
    int64_t column
    int64_t oneof_count
    int64_t count
    FieldOf* fields
    int32_t small[SMALL]
    # All fields by their numbers.
    int32_t* sorted


cdef inline int64_t wire_of(int64_t kind) noexcept nogil:
    if kind == TYPE_DOUBLE or kind == TYPE_FIXED64 or kind == TYPE_SFIXED64:
        return WIRE_64
    if kind == TYPE_FLOAT or kind == TYPE_FIXED32 or kind == TYPE_SFIXED32:
        return WIRE_32
    if kind == TYPE_GROUP:
        return WIRE_GROUP
    if kind == TYPE_STRING or kind == TYPE_BYTES or kind >= TYPE_TIMESTAMP or kind == TYPE_MESSAGE:
        return WIRE_BYTES
    return WIRE_VARINT


cdef inline bint is_message(int64_t kind) noexcept nogil:
    return kind == TYPE_MESSAGE or kind == TYPE_GROUP or kind >= TYPE_TIMESTAMP


cdef inline int64_t field_of(MessageOf* message, uint64_t number) noexcept nogil:
    """-1 where there is none."""
    cdef int64_t low = 0, high = message.count, middle
    if number < SMALL:
        return message.small[number]
    while low < high:
        middle = (low + high) >> 1
        if <uint64_t>message.fields[message.sorted[middle]].number < number:
            low = middle + 1
        else:
            high = middle
    if low < message.count and <uint64_t>message.fields[message.sorted[low]].number == number:
        return message.sorted[low]
    return -1


# --- one value


# An occurrence of a field: bytes, or a number.
cdef struct Entry:
    const uint8_t* start
    const uint8_t* end
    uint64_t raw
    int64_t next
    bint is_bytes


# The occurrences of a field, the first and the last; -1: none. Of a oneof: the field that it has.
cdef struct Slot:
    int64_t first
    int64_t last


cdef struct Key:
    const uint8_t* start
    int64_t size
    uint64_t raw
    int64_t entry
    int64_t place
    bint is_dropped


cdef struct Run:
    MessageOf* messages
    int64_t* edges
    const uint8_t* constants
    Column* columns
    Entry* entries
    int64_t entry_count
    int64_t entry_capacity
    Slot* slots
    int64_t slot_count
    int64_t slot_capacity
    # Something that the reader does not know was passed over.
    bint was_unknown


cdef inline int64_t symbol_of(Run* run, FieldOf* field, int32_t number) noexcept nogil:
    """The edge of a number of an enum, or -1."""
    cdef int64_t low = 0, high = field.b, middle
    while low < high:
        middle = (low + high) >> 1
        if run.edges[field.a + 3 * middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < field.b and run.edges[field.a + 3 * low] == number:
        return field.a + 3 * low
    return -1


cdef int64_t take_slots(Run* run, MessageOf* message) noexcept nogil:
    """Where they begin, or -1 without memory."""
    cdef int64_t base = run.slot_count, count = message.count + message.oneof_count, capacity
    cdef void* moved
    if base + count > run.slot_capacity:
        capacity = max(2 * run.slot_capacity, base + count, 64)
        moved = realloc(run.slots, capacity * sizeof(Slot))
        if moved == NULL:
            return -1
        run.slots = <Slot*>moved
        run.slot_capacity = capacity
    memset(run.slots + base, 0xFF, count * sizeof(Slot))
    run.slot_count = base + count
    return base


cdef inline Entry* note(Run* run, int64_t slot, bint replaces) noexcept nogil:
    """Room for another occurrence; NULL without memory."""
    cdef Slot* its = &run.slots[slot]
    cdef int64_t index = its.last, capacity
    cdef void* moved
    if not (replaces and index >= 0):
        index = run.entry_count
        if index == run.entry_capacity:
            capacity = max(2 * index, 64)
            moved = realloc(run.entries, capacity * sizeof(Entry))
            if moved == NULL:
                return NULL
            run.entries = <Entry*>moved
            run.entry_capacity = capacity
        run.entry_count += 1
        if its.first < 0:
            its.first = index
        else:
            run.entries[its.last].next = index
        its.last = index
    run.entries[index].next = -1
    return &run.entries[index]


cdef int skip(
    uint64_t tag, const uint8_t** at, const uint8_t* end, int64_t depth, const uint8_t** content_end
) noexcept nogil:
    """Past a field that nobody knows. `content_end`: of a group, where its own end stands."""
    cdef uint64_t value, inner
    cdef const uint8_t* after
    cdef const uint8_t* ignored
    cdef int wire = tag & 7
    cdef int fault
    if wire == WIRE_VARINT:
        after = ottla_raw(at[0], end, &value)
        if after == NULL:
            return TOO_SHORT
        at[0] = after
        return 0
    if wire == WIRE_64 or wire == WIRE_32:
        value = 8 if wire == WIRE_64 else 4
        if <uint64_t>(end - at[0]) < value:
            return TOO_SHORT
        at[0] += value
        return 0
    if wire == WIRE_BYTES:
        after = ottla_short(at[0], end, INT_MAX, &value)
        if after == NULL or value > <uint64_t>(end - after):
            return TOO_SHORT
        at[0] = after + value
        return 0
    if wire != WIRE_GROUP:
        return BAD_FORM
    if depth >= NESTED_MAX:
        return TOO_DEEP
    while True:
        content_end[0] = at[0]
        after = ottla_short(at[0], end, 0xFFFFFFFF, &inner)
        if after == NULL:
            return TOO_SHORT
        at[0] = after
        if inner & 7 == WIRE_END:
            return 0 if inner >> 3 == tag >> 3 else BAD_FORM
        fault = skip(inner, at, end, depth + 1, &ignored)
        if fault != 0:
            return fault


cdef int scan(
    Run* run, MessageOf* message, int64_t base, const uint8_t* at, const uint8_t* end, int64_t depth
) noexcept nogil:
    """Notes where the fields are, from slot `base` on; without one (-1) it only sees whether all is well, down to the
    last message."""
    cdef uint64_t tag, raw = 0
    cdef int64_t index, size = 0, before
    cdef const uint8_t* after
    cdef const uint8_t* content_end = NULL
    cdef const uint8_t* start
    cdef FieldOf* field
    cdef Entry* entry
    cdef bint is_bytes
    cdef int fault, wire
    while at < end:
        at = ottla_short(at, end, 0xFFFFFFFF, &tag)
        if at == NULL:
            return TOO_SHORT
        if tag >> 3 == 0:
            return BAD_FORM
        wire = tag & 7
        index = field_of(message, tag >> 3)
        start = at
        if index >= 0:
            field = &message.fields[index]
            if wire != field.wire and not (
                wire == WIRE_BYTES and field.label == LABEL_REPEATED and field.wire != WIRE_GROUP
            ):
                index = -1
        if index < 0:
            fault = skip(tag, &at, end, depth, &content_end)
            if fault != 0:
                return fault
            run.was_unknown = True
            continue
        is_bytes = wire == WIRE_BYTES or wire == WIRE_GROUP
        if wire == WIRE_VARINT:
            at = ottla_raw(at, end, &raw)
            if at == NULL:
                return TOO_SHORT
            if field.kind == TYPE_ENUM and field.is_closed and symbol_of(run, field, <int32_t>raw) < 0:
                run.was_unknown = True
                continue
        elif wire == WIRE_BYTES:
            start = ottla_short(at, end, INT_MAX, &raw)
            if start == NULL or raw > <uint64_t>(end - start):
                return TOO_SHORT
            at = content_end = start + raw
            if field.kind == TYPE_STRING and not ottla_is_utf8(start, raw):
                return BAD_TEXT
        elif wire == WIRE_GROUP:
            fault = skip(tag, &at, end, depth, &content_end)
            if fault != 0:
                return fault
        else:
            size = 8 if wire == WIRE_64 else 4
            if end - at < size:
                return TOO_SHORT
            raw = ottla_load64(at) if wire == WIRE_64 else ottla_load32(at)
            at += size
        if base < 0:
            if is_message(field.kind) or (field.label == LABEL_REPEATED and is_bytes and field.wire != WIRE_BYTES):
                fault = look_through(run, field, start, content_end, depth)
                if fault != 0:
                    return fault
            continue
        if field.oneof >= 0:
            before = run.slots[base + message.count + field.oneof].first
            if before >= 0 and before != index:
                fault = forget(run, &message.fields[before], base + before, depth)
                if fault != 0:
                    return fault
            run.slots[base + message.count + field.oneof].first = index
        entry = note(run, base + index, field.label <= LABEL_PRESENT and not is_message(field.kind))
        if entry == NULL:
            return NO_MEMORY
        entry.start, entry.end, entry.raw, entry.is_bytes = start, content_end, raw, is_bytes
    return 0


cdef int look_through(
    Run* run, FieldOf* field, const uint8_t* start, const uint8_t* end, int64_t depth
) noexcept nogil:
    """What nobody asks for has to be well-formed all the same."""
    cdef uint64_t raw
    if is_message(field.kind):
        if depth >= NESTED_MAX:
            return TOO_DEEP
        return scan(run, &run.messages[field.a], -1, start, end, depth + 1)
    if field.wire == WIRE_VARINT:
        while start < end:
            start = ottla_raw(start, end, &raw)
            if start == NULL:
                return TOO_SHORT
        return 0
    return TOO_SHORT if (end - start) % (8 if field.wire == WIRE_64 else 4) else 0


cdef int forget(Run* run, FieldOf* field, int64_t slot, int64_t depth) noexcept nogil:
    """A field of a oneof, when another one comes."""
    cdef int64_t index = run.slots[slot].first
    cdef int fault
    run.slots[slot].first = run.slots[slot].last = -1
    while index >= 0:
        if is_message(field.kind):
            fault = look_through(run, field, run.entries[index].start, run.entries[index].end, depth)
            if fault != 0:
                return fault
        index = run.entries[index].next
    return 0


# --- to columns


cdef int put_scalar(Run* run, FieldOf* field, uint64_t raw) noexcept nogil:
    cdef Column* column = &run.columns[field.column]
    cdef int64_t kind = field.kind, edge
    cdef uint64_t wide[2]
    cdef int32_t small
    cdef int64_t large
    cdef char digits[16]
    if kind == TYPE_INT64 or kind == TYPE_SFIXED64 or kind == TYPE_DOUBLE:
        return put_number(column, &raw, 8)
    if kind == TYPE_INT32 or kind == TYPE_SFIXED32 or kind == TYPE_FLOAT:
        small = <int32_t>raw
        return put_number(column, &small, 4)
    if kind == TYPE_ENUM:
        edge = symbol_of(run, field, <int32_t>raw)
        if edge >= 0:
            return put_bytes(column, run.constants + run.edges[edge + 1], run.edges[edge + 2])
        return put_bytes(column, <const uint8_t*>digits, snprintf(digits, 16, b"%d", <int32_t>raw))
    if kind == TYPE_BOOL:
        return put_boolean(column, raw != 0)
    if kind == TYPE_UINT32 or kind == TYPE_FIXED32:
        large = <uint32_t>raw
        return put_number(column, &large, 8)
    if kind == TYPE_SINT64:
        large = ottla_unzigzag64(raw)
        return put_number(column, &large, 8)
    if kind == TYPE_SINT32:
        small = ottla_unzigzag32(<uint32_t>raw)
        return put_number(column, &small, 4)
    wide[0], wide[1] = raw, 0
    return put_number(column, wide, 16)


cdef int put_packed(Run* run, FieldOf* field, const uint8_t* at, const uint8_t* end) noexcept nogil:
    cdef uint64_t raw
    cdef int fault, size
    if field.wire == WIRE_VARINT:
        while at < end:
            at = ottla_raw(at, end, &raw)
            if at == NULL:
                return TOO_SHORT
            if field.kind == TYPE_ENUM and field.is_closed and symbol_of(run, field, <int32_t>raw) < 0:
                continue
            fault = put_scalar(run, field, raw)
            if fault != 0:
                return fault
        return 0
    size = 8 if field.wire == WIRE_64 else 4
    if (end - at) % size:
        return TOO_SHORT
    while at < end:
        fault = put_scalar(run, field, ottla_load64(at) if size == 8 else ottla_load32(at))
        if fault != 0:
            return fault
        at += size
    return 0


cdef int put_message(Run* run, FieldOf* field, int64_t entry, bint is_one, int64_t depth) noexcept nogil:
    """What these occurrences say together; `is_one`: the first alone. -1: nothing."""
    cdef MessageOf* message = &run.messages[field.a]
    cdef int64_t entries_before = run.entry_count, base, index
    cdef int64_t micros
    cdef uint64_t seconds = 0, nanos = 0
    cdef int fault = 0
    if depth >= NESTED_MAX:
        return TOO_DEEP
    base = take_slots(run, message)
    if base < 0:
        return NO_MEMORY
    while entry >= 0 and fault == 0:
        fault = scan(run, message, base, run.entries[entry].start, run.entries[entry].end, depth + 1)
        entry = -1 if is_one else run.entries[entry].next
    if fault == 0 and field.kind == TYPE_TIMESTAMP:
        if run.slots[base].last >= 0:
            seconds = run.entries[run.slots[base].last].raw
        if run.slots[base + 1].last >= 0:
            nanos = run.entries[run.slots[base + 1].last].raw
        micros = ottla_moment(<int64_t>seconds, <int32_t>nanos)
        fault = put_number(&run.columns[field.column], &micros, 8)
    elif fault == 0:
        for index in range(message.count):
            fault = put_field(run, &message.fields[index], base + index, depth + 1)
            if fault != 0:
                break
        if fault == 0 and field.kind != TYPE_WRAPPER:
            fault = mark(&run.columns[field.column], True)
    run.slot_count, run.entry_count = base, entries_before
    return fault


cdef inline int put_single(Run* run, FieldOf* field, int64_t entry, bint is_one, int64_t depth) noexcept nogil:
    """`entry`: -1 for its default."""
    if is_message(field.kind):
        return put_message(run, field, entry, is_one, depth)
    if field.wire == WIRE_BYTES:
        if entry < 0:
            return put_bytes(&run.columns[field.column], NULL, 0)
        return put_bytes(
            &run.columns[field.column], run.entries[entry].start, run.entries[entry].end - run.entries[entry].start
        )
    return put_scalar(run, field, <uint64_t>field.default if entry < 0 else run.entries[entry].raw)


cdef int put_field(Run* run, FieldOf* field, int64_t slot, int64_t depth) noexcept nogil:
    cdef int64_t entry = run.slots[slot].first
    cdef int fault = 0
    cdef Column* outer
    if field.label <= LABEL_PRESENT:
        if entry < 0 and field.label == LABEL_PRESENT:
            return put_null(run.columns, <int>field.column)
        return put_single(run, field, entry, False, depth)
    if field.label == LABEL_MAP:
        fault = put_pairs(run, field, entry, depth)
    else:
        while entry >= 0 and fault == 0:
            if run.entries[entry].is_bytes and field.wire != WIRE_BYTES and field.wire != WIRE_GROUP:
                fault = put_packed(run, field, run.entries[entry].start, run.entries[entry].end)
            else:
                fault = put_single(run, field, entry, True, depth)
            entry = run.entries[entry].next
    if fault != 0:
        return fault
    outer = &run.columns[field.outer]
    fault = mark_end(outer, run.columns[outer.children[outer.child_count - 1]].count)
    return fault if fault != 0 else mark(outer, True)


cdef int by_key(const void* left, const void* right) noexcept nogil:
    cdef const Key* one = <const Key*>left
    cdef const Key* other = <const Key*>right
    cdef int order = 0
    if one.size != other.size:
        return -1 if one.size < other.size else 1
    if one.raw != other.raw:
        return -1 if one.raw < other.raw else 1
    if one.size > 0:
        order = memcmp(one.start, other.start, one.size)
    if order != 0:
        return order
    return -1 if one.place < other.place else 1


cdef int by_place(const void* left, const void* right) noexcept nogil:
    return -1 if (<const Key*>left).place < (<const Key*>right).place else 1


cdef inline bint is_same(Key* one, Key* other) noexcept nogil:
    return one.raw == other.raw and one.size == other.size and (
        one.size == 0 or memcmp(one.start, other.start, one.size) == 0
    )


cdef uint64_t exact_key(FieldOf* field, uint64_t raw) noexcept nogil:
    """Bits that do not count are the same in equal keys."""
    if field.kind == TYPE_BOOL:
        return raw != 0
    if field.kind == TYPE_INT32 or field.kind == TYPE_UINT32 or field.kind == TYPE_SINT32:
        return <uint32_t>raw
    return raw


cdef int put_pairs(Run* run, FieldOf* field, int64_t first, int64_t depth) noexcept nogil:
    """Of a map: the last of those that have the same key counts. A pair with anything else in it is none."""
    cdef MessageOf* message = &run.messages[field.a]
    cdef int64_t count = 0, entry = first, base, entries_before = run.entry_count, index, other
    cdef Key* keys
    cdef int fault = 0
    while entry >= 0:
        count += 1
        entry = run.entries[entry].next
    if count == 0:
        return 0
    if depth >= NESTED_MAX:
        return TOO_DEEP
    keys = <Key*>malloc(count * sizeof(Key))
    base = take_slots(run, message)
    if keys == NULL or base < 0:
        free(keys)
        return NO_MEMORY
    entry, index = first, 0
    while entry >= 0 and fault == 0:
        memset(run.slots + base, 0xFF, 2 * sizeof(Slot))
        run.entry_count, run.was_unknown = entries_before, False
        fault = scan(run, message, base, run.entries[entry].start, run.entries[entry].end, depth + 1)
        memset(&keys[index], 0, sizeof(Key))
        keys[index].entry, keys[index].place = entry, index
        keys[index].is_dropped = run.was_unknown
        if run.slots[base].last >= 0:
            if message.fields[0].wire == WIRE_BYTES:
                keys[index].start = run.entries[run.slots[base].last].start
                keys[index].size = run.entries[run.slots[base].last].end - keys[index].start
            else:
                keys[index].raw = exact_key(&message.fields[0], run.entries[run.slots[base].last].raw)
        entry, index = run.entries[entry].next, index + 1
    if fault == 0 and count <= FEW_KEYS:
        for index in range(count):
            for other in range(index + 1, count):
                if not keys[other].is_dropped and is_same(&keys[index], &keys[other]):
                    keys[index].is_dropped = True
    elif fault == 0:
        qsort(keys, count, sizeof(Key), by_key)
        other = -1
        for index in range(count - 1, -1, -1):
            if other >= 0 and is_same(&keys[index], &keys[other]):
                keys[index].is_dropped = True
            elif not keys[index].is_dropped:
                other = index
        qsort(keys, count, sizeof(Key), by_place)
    for index in range(count):
        if fault != 0:
            break
        entry = keys[index].entry
        if keys[index].is_dropped:
            fault = look_through(run, field, run.entries[entry].start, run.entries[entry].end, depth)
            continue
        memset(run.slots + base, 0xFF, 2 * sizeof(Slot))
        run.entry_count = entries_before
        fault = scan(run, message, base, run.entries[entry].start, run.entries[entry].end, depth + 1)
        if fault == 0:
            fault = put_field(run, &message.fields[0], base, depth + 1)
        if fault == 0:
            fault = put_field(run, &message.fields[1], base + 1, depth + 1)
    free(keys)
    run.slot_count, run.entry_count = base, entries_before
    return fault


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
