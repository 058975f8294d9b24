# cython: language_level=3
"""JSON as it is read: blanks, words, numbers and texts, of which Python would say the same."""

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
