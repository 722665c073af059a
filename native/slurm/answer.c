#include "answer.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "environment_rules.h"

/* What is needed of libcrypto. It is opened when the program runs, and declared here: no headers of OpenSSL are needed
 * to build it, and one build runs on hosts with OpenSSL 1.1.1 and 3. */
static struct {
    void *(*new_key)(int, void *, const unsigned char *, size_t);
    void *(*new_context)(void);
    int (*verify_init)(void *, void *, const void *, void *, void *);
    int (*verify)(void *, const unsigned char *, size_t, const unsigned char *, size_t);
    const void *(*sha256)(void);
    int (*digest)(const void *, size_t, unsigned char *, unsigned int *, const void *, void *);
} crypto;

static void *public_key;

enum { ED25519 = 1087, SHA256_BYTES = 32 };
static const char PREFIX[] = "luthier submission 1\n";

/* A function of a library; ISO C has no conversion from the pointer of dlsym. */
static int find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

int can_check(const unsigned char *key)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};

    for (size_t i = 0; i < sizeof names / sizeof *names && public_key == NULL; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL && find(library, "EVP_PKEY_new_raw_public_key", &crypto.new_key)
            && find(library, "EVP_MD_CTX_new", &crypto.new_context)
            && find(library, "EVP_DigestVerifyInit", &crypto.verify_init)
            && find(library, "EVP_DigestVerify", &crypto.verify) && find(library, "EVP_sha256", &crypto.sha256)
            && find(library, "EVP_Digest", &crypto.digest))
            public_key = crypto.new_key(ED25519, NULL, key, KEY_BYTES);
    }
    return public_key != NULL;
}

int from_hex(const char *text, char end, unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 2 * count; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL)
            return 0;
        bytes[i / 2] = (unsigned char)((i % 2 == 0 ? 0 : bytes[i / 2] << 4) | (digit - digits));
    }
    return text[2 * count] == end;
}

int is_signed(const unsigned char *signature, const unsigned char *nonce, const char *request, size_t request_length,
    const char *answer, size_t length)
{
    size_t prefix = sizeof PREFIX - 1, before = prefix + NONCE_BYTES + SHA256_BYTES;
    unsigned char *text = malloc(before + length);
    void *context = crypto.new_context();
    int is_valid;

    if (text == NULL || context == NULL)
        return 0;
    memcpy(text, PREFIX, prefix);
    memcpy(text + prefix, nonce, NONCE_BYTES);
    memcpy(text + before, answer, length);
    is_valid = crypto.digest(request, request_length, text + prefix + NONCE_BYTES, NULL, crypto.sha256(), NULL) == 1
        && crypto.verify_init(context, NULL, NULL, NULL, public_key) == 1
        && crypto.verify(context, signature, SIGNATURE_BYTES, text, before + length) == 1;
    free(text);
    return is_valid; /* the context is left to the end of the process, which is near */
}

static int is_letter(char sign)
{
    return (sign >= 'A' && sign <= 'Z') || (sign >= 'a' && sign <= 'z');
}

static int is_digit(char sign)
{
    return sign >= '0' && sign <= '9';
}

int may_set(const char *name, size_t name_length, const char *value, size_t length)
{
    char upper[LONGEST_NAME + 1];

    if (name_length == 0 || name_length > LONGEST_NAME || length > LONGEST_VALUE || is_digit(name[0]))
        return 0;
    for (size_t i = 0; i < name_length; i++) {
        if (!is_letter(name[i]) && !is_digit(name[i]) && name[i] != '_')
            return 0;
        upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    }
    upper[name_length] = '\0';
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
        if (fnmatch(REFUSED[i], upper, 0) == 0)
            return 0;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(value[i]) && !is_digit(value[i]) && (value[i] == '\0' || strchr(VALUE_SIGNS, value[i]) == NULL))
            return 0;
    return 1;
}

int is_allowed(const char *answer, size_t length)
{
    const char *end = answer + length, *next;
    size_t set = 0;

    for (const char *line = answer; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL)
            return 0;
        for (const char *at = line; at < next; at++)
            if (*at < ' ' || *at > '~')
                return 0;
        if (next - line >= 4 && memcmp(line, "set ", 4) == 0) {
            const char *equals = memchr(line + 4, '=', (size_t)(next - line - 4));
            if (equals == NULL || ++set > MOST_VARIABLES_SET
                || !may_set(line + 4, (size_t)(equals - line - 4), equals + 1, (size_t)(next - equals - 1)))
                return 0;
        }
    }
    return length > 0;
}
