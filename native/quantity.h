/* Whole numbers as people write them: 4096, 4k, 1M, 2G (powers of 1024). */
#ifndef LUTHIER_QUANTITY_H
#define LUTHIER_QUANTITY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* True, and the number in *value, if all of text is one and it lies between low and high. errno stays as it was. */
static inline bool parse_quantity(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    if (*text < '0' || *text > '9') /* strtoull would take a sign or white space */
        return false;
    int saved = errno;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    bool overflow = errno != 0;
    errno = saved;
    int shift = 0;
    if (*end == 'k' || *end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (shift != 0)
        end++;
    if (overflow || *end != '\0' || number > (UINT64_MAX >> shift))
        return false;
    number <<= shift;
    if (number < low || number > high)
        return false;
    *value = number;
    return true;
}

#endif
