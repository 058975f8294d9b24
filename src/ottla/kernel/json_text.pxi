# cython: language_level=3
"""JSON that becomes text again: what a schema has no column for, as Python's json writes it, without blanks."""

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
