/* Whether an answer came from the server, was meant for this request, and has only what may be printed. */
#ifndef LUTHIER_ANSWER_H
#define LUTHIER_ANSWER_H

#include <stddef.h>

enum { KEY_BYTES = 32, NONCE_BYTES = 32, SIGNATURE_BYTES = 64 };

/* Finds OpenSSL's library; false if it is missing, or has no Ed25519. */
int can_check(const unsigned char *key);

/* Reads two lower-case hexadecimal digits for each byte; false if there are not exactly as many before `end`. */
int from_hex(const char *text, char end, unsigned char *bytes, size_t count);

/* Whether `signature` is that of the server for this nonce, request and answer; call can_check first. */
int is_signed(const unsigned char *signature, const unsigned char *nonce, const char *request, size_t request_length,
    const char *answer, size_t length);

/* Whether a variable may be set, by the list that all parts of luthier share. */
int may_set(const char *name, size_t name_length, const char *value, size_t length);

/* Whether all lines are printable ASCII, and set only variables that may be set. */
int is_allowed(const char *answer, size_t length);

#endif
