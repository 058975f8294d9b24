# cython: language_level=3
"""Single values as JSON: numbers and texts as Python's json writes them, times as isoformat() does."""

cdef extern from "Python.h":
    # Called with the interpreter lock held, by code that does not know that.
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* kind) nogil
    void PyMem_Free(void* data) nogil
    int Py_DTSF_ADD_DOT_0

cdef extern from "math.h":
    bint isfinite(double value) nogil

cdef extern from "string.h":
    size_t strlen(const char* text) nogil

cdef extern from "text.h":
    int ottla_is_utf8(const uint8_t* data, size_t size) nogil

cdef enum:
    # What is left to others.
    DOUBTFUL = 50
    # Names of a map are compared with one another up to so many.
    NAMES_MAX = 64
    TEXT_BYTES_MAX = 40

cdef int64_t DAY_S = 86400
cdef int64_t SECOND_US = 1000000
# The days of 0001-01-01 and of 10000-01-01: Python has no others.
cdef int64_t DAY_FIRST = -719162
cdef int64_t DAY_PAST = 2932897


cdef int write_integer(int64_t value, Output out) noexcept nogil:
    cdef uint8_t digits[20]
    cdef int64_t at = 20
    cdef uint64_t rest = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    while True:
        at -= 1
        digits[at] = 48 + <uint8_t>(rest % 10)
        rest //= 10
        if rest == 0:
            break
    if value < 0:
        at -= 1
        digits[at] = 45
    return out.append(digits + at, 20 - at)


cdef int write_real(double value, Output out) noexcept nogil:
    cdef char* made
    cdef int fault
    if not isfinite(value):
        return DOUBTFUL
    made = PyOS_double_to_string(value, 114, 0, Py_DTSF_ADD_DOT_0, NULL)
    if made == NULL:
        return NO_MEMORY
    fault = out.append(made, strlen(made))
    PyMem_Free(made)
    return fault


cdef int write_text(const uint8_t* data, int64_t size, Output out) noexcept nogil:
    cdef const char* hexadecimal = b"0123456789abcdef"
    cdef const uint8_t* end = data + size
    cdef const uint8_t* begun = data
    cdef uint8_t escaped[6]
    cdef bint is_ascii = True
    cdef int64_t length
    cdef int fault
    if out.reserve(size + 2) != 0:
        return NO_MEMORY
    fault = out.append(b'"', 1)
    while data < end:
        if data[0] >= 128:
            is_ascii = False
        if data[0] >= 32 and data[0] != 34 and data[0] != 92:
            data += 1
            continue
        if data > begun:
            fault = out.append(begun, data - begun)
        escaped[0], escaped[1], length = 92, data[0], 2
        if data[0] == 10:
            escaped[1] = 110
        elif data[0] == 13:
            escaped[1] = 114
        elif data[0] == 9:
            escaped[1] = 116
        elif data[0] == 8:
            escaped[1] = 98
        elif data[0] == 12:
            escaped[1] = 102
        elif data[0] < 32:
            escaped[1], escaped[2], escaped[3], length = 117, 48, 48, 6
            escaped[4], escaped[5] = hexadecimal[data[0] >> 4], hexadecimal[data[0] & 15]
        if fault == 0:
            fault = out.append(escaped, length)
        if fault != 0:
            return fault
        data += 1
        begun = data
    if not is_ascii and not ottla_is_utf8(end - size, size):
        return DOUBTFUL
    if end > begun:
        fault = out.append(begun, end - begun)
    return fault if fault != 0 else out.append(b'"', 1)


cdef int write_base64(const uint8_t* data, int64_t size, Output out) noexcept nogil:
    cdef const char* letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef uint8_t four[4]
    cdef uint32_t bits
    cdef int64_t at = 0, index, rest
    cdef int fault = out.append(b'"', 1)
    while at < size and fault == 0:
        rest = size - at if size - at < 3 else 3
        bits = <uint32_t>data[at] << 16
        if rest > 1:
            bits |= <uint32_t>data[at + 1] << 8
        if rest > 2:
            bits |= data[at + 2]
        for index in range(4):
            four[index] = letters[bits >> (18 - 6 * index) & 63] if index <= rest else 61
        fault = out.append(four, 4)
        at += 3
    return fault if fault != 0 else out.append(b'"', 1)


cdef inline int64_t put_digits(uint8_t* text, int64_t at, int64_t value, int64_t count) noexcept nogil:
    cdef int64_t index
    for index in range(count):
        text[at + count - 1 - index] = 48 + <uint8_t>(value % 10)
        value //= 10
    return at + count


cdef int write_day(int64_t day, Output out) noexcept nogil:
    return DOUBTFUL if day < DAY_FIRST or day >= DAY_PAST else write_moment(day * DAY_S * SECOND_US, -1, out)


cdef int write_moment(int64_t micros, int64_t is_utc, Output out) noexcept nogil:
    """`is_utc`: below zero it is a date."""
    cdef uint8_t text[TEXT_BYTES_MAX]
    cdef int64_t seconds = micros // SECOND_US, rest = micros % SECOND_US, days, era, year, month, day, at
    # C rounds to zero.
    if rest < 0:
        seconds, rest = seconds - 1, rest + SECOND_US
    days = seconds // DAY_S
    if seconds % DAY_S < 0:
        days -= 1
    seconds -= days * DAY_S
    if days < DAY_FIRST or days >= DAY_PAST:
        return DOUBTFUL
    # Years that begin in March, in eras of 400: the day of leap years is the last one then. All are positive here.
    days += 719468
    era = days // 146097
    days -= era * 146097
    year = (days - days // 1460 + days // 36524 - days // 146096) // 365
    days -= 365 * year + year // 4 - year // 100
    month = (5 * days + 2) // 153
    day = days - (153 * month + 2) // 5 + 1
    year += 400 * era + (1 if month >= 10 else 0)
    month = month - 9 if month >= 10 else month + 3
    text[0] = 34
    at = put_digits(text, 1, year, 4)
    text[at] = 45
    at = put_digits(text, at + 1, month, 2)
    text[at] = 45
    at = put_digits(text, at + 1, day, 2)
    if is_utc >= 0:
        text[at] = 84
        at = put_digits(text, at + 1, seconds // 3600, 2)
        text[at] = 58
        at = put_digits(text, at + 1, seconds // 60 % 60, 2)
        text[at] = 58
        at = put_digits(text, at + 1, seconds % 60, 2)
        if rest:
            text[at] = 46
            at = put_digits(text, at + 1, rest, 6)
        if is_utc:
            text[at] = 90
            at += 1
    text[at] = 34
    return out.append(text, at + 1)
