/* Writes JSON to a descriptor; one file at a time. */
#ifndef LUTHIER_IO_JSON_H
#define LUTHIER_IO_JSON_H

#include "io.h"

void start_json(int fd);
bool end_json(void); /* false: not all of it could be written */
void put(const char *text);
void put_number(uint64_t number);
void put_seconds(uint64_t ns); /* a number with nine decimals */
void put_string(const char *string); /* bytes that are no UTF-8 become U+FFFD */
void put_field(const char *name, uint64_t number);
void put_time(const char *name, uint64_t ns);
void put_hexadecimal(const char *name, uint64_t number);
void put_sizes(const char *name, const uint64_t *sizes);

#endif
