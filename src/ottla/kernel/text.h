/* What the kernel must know of text. */
#ifndef OTTLA_KERNEL_TEXT_H
#define OTTLA_KERNEL_TEXT_H

#include <stdint.h>
#include <stddef.h>

/* Whether Python would decode these bytes: no overlong forms, no surrogates, nothing past U+10FFFF. */
static inline int ottla_is_utf8(const uint8_t *data, size_t size) {
    const uint8_t *end = data + size;
    while (data < end) {
        uint8_t byte = *data++;
        if (byte < 0x80) continue;
        int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
        if (byte < 0xC2 || byte > 0xF4 || end - data < more) return 0;
        uint8_t low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
        uint8_t high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
        if (*data < low || *data > high) return 0;
        for (data++; --more; data++)
            if ((*data & 0xC0) != 0x80) return 0;
    }
    return 1;
}

#endif
