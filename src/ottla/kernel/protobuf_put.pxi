# cython: language_level=3
"""Fields that were noted, into their columns: single values, lists, messages within messages, and maps."""

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
