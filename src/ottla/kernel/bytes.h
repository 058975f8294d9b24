/* What the kernel does to single bytes: CRC-32C, numbers of variable length, times. */
#ifndef OTTLA_KERNEL_BYTES_H
#define OTTLA_KERNEL_BYTES_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

/* CRC-32C: the processor's instruction where it has one, else eight tables. A result of the instruction takes three
   cycles, but one can begin in every cycle: so three lanes of the data are summed side by side. Their sums are put
   together with tables that say what so many zero bytes, as one lane has, do to a sum. */
#define OTTLA_CRC_LANE 4096
static uint32_t ottla_crc_tables[8][256];
static uint32_t ottla_crc_lane_tables[4][256];
static int ottla_crc_has_instruction = 0;

static void ottla_crc_prepare(void) {
    memset(ottla_crc_lane_tables, 0, sizeof ottla_crc_lane_tables);
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        ottla_crc_tables[0][n] = crc;
    }
    for (uint32_t n = 0; n < 256; n++)
        for (int table = 1; table < 8; table++) {
            uint32_t before = ottla_crc_tables[table - 1][n];
            ottla_crc_tables[table][n] = ottla_crc_tables[0][before & 0xFF] ^ (before >> 8);
        }
    for (int bit = 0; bit < 32; bit++) {
        uint32_t moved = (uint32_t)1 << bit;
        for (int byte = 0; byte < OTTLA_CRC_LANE; byte++) moved = ottla_crc_tables[0][moved & 0xFF] ^ (moved >> 8);
        for (int n = 0; n < 256; n++)
            if (n >> (bit & 7) & 1) ottla_crc_lane_tables[bit >> 3][n] ^= moved;
    }
#if defined(__x86_64__) && defined(__GNUC__)
    ottla_crc_has_instruction = __builtin_cpu_supports("sse4.2") ? 1 : 0;
#endif
}

#if defined(__x86_64__) && defined(__GNUC__)
static inline uint32_t ottla_crc_past_lane(uint32_t crc) {
    return ottla_crc_lane_tables[0][crc & 0xFF] ^ ottla_crc_lane_tables[1][crc >> 8 & 0xFF]
        ^ ottla_crc_lane_tables[2][crc >> 16 & 0xFF] ^ ottla_crc_lane_tables[3][crc >> 24];
}

__attribute__((target("sse4.2")))
static uint32_t ottla_crc_by_instruction(const uint8_t *data, size_t size) {
    uint64_t crc = 0xFFFFFFFFu, second, third, word;
    for (; size >= 3 * OTTLA_CRC_LANE; data += 3 * OTTLA_CRC_LANE, size -= 3 * OTTLA_CRC_LANE) {
        second = third = 0;
        for (int at = 0; at < OTTLA_CRC_LANE; at += 8) {
            memcpy(&word, data + at, 8);
            crc = __builtin_ia32_crc32di(crc, word);
            memcpy(&word, data + OTTLA_CRC_LANE + at, 8);
            second = __builtin_ia32_crc32di(second, word);
            memcpy(&word, data + 2 * OTTLA_CRC_LANE + at, 8);
            third = __builtin_ia32_crc32di(third, word);
        }
        crc = ottla_crc_past_lane((uint32_t)crc) ^ second;
        crc = ottla_crc_past_lane((uint32_t)crc) ^ third;
    }
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; size; data++, size--) crc = __builtin_ia32_crc32qi((uint32_t)crc, *data);
    return (uint32_t)crc ^ 0xFFFFFFFFu;
}
#else
static uint32_t ottla_crc_by_instruction(const uint8_t *data, size_t size) { return 0; }
#endif

static uint32_t ottla_crc_by_tables(const uint8_t *data, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16
                              | (uint32_t)data[3] << 24);
        crc = ottla_crc_tables[7][low & 0xFF] ^ ottla_crc_tables[6][low >> 8 & 0xFF]
            ^ ottla_crc_tables[5][low >> 16 & 0xFF] ^ ottla_crc_tables[4][low >> 24]
            ^ ottla_crc_tables[3][data[4]] ^ ottla_crc_tables[2][data[5]]
            ^ ottla_crc_tables[1][data[6]] ^ ottla_crc_tables[0][data[7]];
    }
    for (; size; data++, size--) crc = ottla_crc_tables[0][(crc ^ *data) & 0xFF] ^ (crc >> 8);
    return crc ^ 0xFFFFFFFFu;
}

static uint32_t ottla_crc32c(const uint8_t *data, size_t size) {
    return ottla_crc_has_instruction ? ottla_crc_by_instruction(data, size) : ottla_crc_by_tables(data, size);
}

/* A zigzag number of at most ten bytes; where it ends, or NULL if the buffer or the ten bytes end first. */
static inline const uint8_t *ottla_varint(const uint8_t *at, const uint8_t *end, int64_t *value) {
    uint64_t raw = 0;
    int shift = 0;
    while (at < end) {
        uint8_t byte = *at++;
        raw |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return at;
        }
        shift += 7;
        if (shift > 63) return NULL;
    }
    return NULL;
}

/* Milliseconds that do not fit as microseconds become the last moment that does. */
static inline int64_t ottla_micros(int64_t ms, int64_t more_ms) {
    int64_t sum, micros;
    if (__builtin_add_overflow(ms, more_ms, &sum)) return ms < 0 ? -INT64_MAX : INT64_MAX;
    if (__builtin_mul_overflow(sum, (int64_t)1000, &micros) || micros == INT64_MIN)
        return sum < 0 ? -INT64_MAX : INT64_MAX;
    return micros;
}

#endif
