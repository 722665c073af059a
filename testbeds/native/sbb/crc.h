/* CRC-32C (Castagnoli) of a piece of memory, by the processor's instruction where it has one. */
#ifndef SBB_CRC_H
#define SBB_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) static inline uint32_t crc32c_fast(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t value = crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        value = __builtin_ia32_crc32di(value, word);
    }
    for (; size > 0; size--, at++)
        value = __builtin_ia32_crc32qi((uint32_t)value, *at);
    return (uint32_t)value;
}
#endif

static inline uint32_t crc32c(uint32_t start, const void *data, size_t size)
{
    const unsigned char *at = data;
    uint32_t crc = ~start;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_fast(crc, at, size);
#endif
    for (; size > 0; size--, at++) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78u & -(crc & 1));
    }
    return ~crc;
}

#endif
