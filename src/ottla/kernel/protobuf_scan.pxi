# cython: language_level=3
"""The bytes of a message: which fields it has and where, noted for whoever puts them into columns."""

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
