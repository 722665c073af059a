/* The client of on-line tuning: see luthier_online.h for its use and docs/online-protocol.md for what is sent.
 *
 * One rule makes the rest simple: answers come in the order of the requests. So a request whose answer is late stays
 * in a short queue, the program runs on, and a later call reads the answer. Only silence, garbage or an error ends a
 * connection; the next one is tried after a pause that grows. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "luthier_online.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define FIRST_LIMIT (200 * MS)      /* for the first connection with its first fetch */
#define LATER_LIMIT (50 * MS)       /* for any other call */
#define PATIENCE (10000 * MS)       /* a service that is silent for so long is given up */
#define FIRST_PAUSE (100 * MS)      /* between two attempts to connect; doubles up to the longest */
#define LONGEST_PAUSE (5000 * MS)
#define LONGEST_ANSWER ((size_t)1 << 20)
#define LARGEST_VALUE 1e300         /* larger ones say that the iteration failed: sums of them would not be finite */
#define DEEPEST 32
#define QUEUE 8
#define MOST_MEASURED 128 /* configurations whose values are remembered: the best ones */
#define KEPT 5            /* the last values of each */
#define FEWEST 2          /* values before a configuration may replace the default: one may be due to luck */

enum running { NOTHING, FROM_SERVICE, FROM_OWN };
enum request { HELLO = 'h', FETCH = 'f', REPORT = 'r', BEST = 'b', LEAVE = 'l' };
enum kind { INTEGER, REAL, CHOICE };

typedef struct text {
    char *at;
    size_t length, room;
    int failed; /* no memory: what was added since is missing */
} text;

typedef struct parameter {
    char *name;
    enum kind kind;
    int wide, logarithmic, ordered;
    int *narrow_variable;
    int64_t *wide_variable;
    double *real_variable;
    int64_t low, high, step; /* of an integer; a choice goes from 0 to high */
    double real_low, real_high, factor;
    char **values;
    luthier_value first; /* the default */
} parameter;

typedef struct measured {
    double values[KEPT]; /* lower is better; a failed iteration is infinite */
    int64_t count;       /* of all values; the newest is at (count - 1) % KEPT */
    uint64_t hash;       /* of the configuration */
} measured;

struct luthier_online {
    char *address, *session;
    parameter *parameters;
    int count, clients;
    text constraints, settings; /* as the inside of a JSON list and object */
    int maximizes, broken, prepared, quiet, told, connected_before;
    locale_t plain; /* numbers with a point, whatever the program's locale */
    int64_t first_limit, later_limit;

    int fd;
    pid_t pid;
    text out;
    size_t sent;
    char *in;
    size_t in_length, in_scanned, in_room;
    char queue[QUEUE]; /* requests without an answer, oldest first */
    int queued;
    int64_t asked_at, retry_at, pause;

    luthier_value *incoming, *next, *best; /* being read; fetched; the best */
    char *seen;
    int next_arrived, best_arrived;
    enum running running; /* whose choice the variables hold, as long as it was not reported */
    measured *seen_values; /* what this program has measured itself, and the configurations one after the other */
    luthier_value *seen_configs, *first, *own; /* the default; what runs FROM_OWN */
    int seen_count;
    text kept;    /* a report that could not be sent because the connection was gone */
    int64_t started;
    void *attached;
    char phase[16];
    char error[256];
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* Texts that grow. */

static void add_bytes(text *to, const char *bytes, size_t length)
{
    if (to->failed)
        return;
    if (to->room - to->length < length + 1) {
        size_t room = 2 * to->room + length + 64;
        char *at = realloc(to->at, room);
        if (at == NULL) {
            to->failed = 1;
            return;
        }
        to->at = at;
        to->room = room;
    }
    memcpy(to->at + to->length, bytes, length);
    to->length += length;
    to->at[to->length] = '\0';
}

static void add(text *to, const char *plain)
{
    add_bytes(to, plain, strlen(plain));
}

static void empty(text *one)
{
    one->length = 0;
    one->failed = 0;
}

static void add_string(text *to, const char *string)
{
    add(to, "\"");
    for (const char *at = string; *at != '\0'; at++) {
        char escape[8];
        if (*at == '"' || *at == '\\' || (unsigned char)*at < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*at);
            add(to, escape);
        } else {
            add_bytes(to, at, 1);
        }
    }
    add(to, "\"");
}

static void add_whole(text *to, int64_t whole)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, whole);
    add(to, digits);
}

static void add_real(const luthier_online *tuning, text *to, double real)
{
    char digits[40];
    locale_t before = uselocale(tuning->plain);
    snprintf(digits, sizeof digits, "%.17g", real);
    uselocale(before);
    add(to, isfinite(real) ? digits : "null");
}

/* A value that is not finite, or so large that sums of it would not be, says that the iteration failed. */
static void add_reported(const luthier_online *tuning, text *to, double value)
{
    add_real(tuning, to, fabs(value) <= LARGEST_VALUE ? value : HUGE_VAL);
}

static uint64_t hash_bytes(const void *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

static char *copy_text(const char *from, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, from, length);
        copy[length] = '\0';
    }
    return copy;
}

/* Problems. */

/* How many bytes the character at a place has in UTF-8; 0 for a control character, and for what is no character. */
static int printable(const unsigned char *at)
{
    static const unsigned lowest[] = {0, 0, 0xa0, 0x800, 0x10000}; /* by length; from 0x80 to 0x9f are controls */
    const int length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (length < 2)
        return length == 1 && *at >= 0x20 && *at != 0x7f;
    unsigned code = *at & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    const int is_direction = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
        (code >= 0x2066 && code <= 0x2069); /* these change how the rest of a line is shown */
    return code < lowest[length] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff || is_direction ? 0 : length;
}

/* What a service sends reaches the terminal: nothing in it may control that. */
static void note(luthier_online *tuning, const char *format, va_list arguments)
{
    vsnprintf(tuning->error, sizeof tuning->error, format, arguments);
    for (char *at = tuning->error; *at != '\0';) {
        int length = printable((const unsigned char *)at);
        if (length == 0)
            *at = (unsigned char)*at < 0x80 ? ' ' : '?';
        at += length > 0 ? length : 1;
    }
}

static void tell(luthier_online *tuning)
{
    if (!tuning->quiet && !tuning->told)
        fprintf(stderr, "luthier: %s: %s; the program goes on without it\n", tuning->session,
            tuning->error);
    tuning->told = 1;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int problem(luthier_online *tuning, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(tuning, format, arguments);
    va_end(arguments);
    return 0;
}

/* A declaration that is wrong: nothing is tuned, so that no half of the parameters is. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int wrong(luthier_online *tuning, const char *format, ...)
{
    if (tuning->broken)
        return 0; /* the first one is the one to mend */
    va_list arguments;
    va_start(arguments, format);
    note(tuning, format, arguments);
    va_end(arguments);
    tuning->broken = 1;
    tell(tuning);
    return 0;
}

/* Declarations. */

static parameter *declare(luthier_online *tuning, const char *name, const void *variable)
{
    if (tuning == NULL || tuning->broken)
        return NULL;
    if (name == NULL || *name == '\0' || variable == NULL) {
        wrong(tuning, "a parameter needs a name and a variable");
        return NULL;
    }
    if (tuning->prepared) {
        wrong(tuning, "%s: declared after the first fetch; declare parameters before it", name);
        return NULL;
    }
    for (int i = 0; i < tuning->count; i++)
        if (strcmp(tuning->parameters[i].name, name) == 0) {
            wrong(tuning, "%s: two parameters have this name; rename one", name);
            return NULL;
        }
    parameter *grown = realloc(tuning->parameters, (size_t)(tuning->count + 1) * sizeof *grown);
    char *copy = copy_text(name, strlen(name));
    if (grown != NULL)
        tuning->parameters = grown;
    if (grown == NULL || copy == NULL) {
        free(copy);
        wrong(tuning, "out of memory");
        return NULL;
    }
    parameter *one = &grown[tuning->count++];
    memset(one, 0, sizeof *one);
    one->name = copy;
    return one;
}

static int check_integer(luthier_online *tuning, const parameter *one)
{
    const int64_t first = one->first.whole;
    if (one->low > one->high)
        return wrong(
            tuning, "%s: low %" PRId64 " is above high %" PRId64 "; swap them", one->name, one->low, one->high);
    if (first < one->low || first > one->high)
        return wrong(tuning, "%s: its present value %" PRId64 " is not between %" PRId64 " and %" PRId64
            "; it is the default and must be one of the values", one->name, first, one->low, one->high);
    if (one->logarithmic && one->low < 1)
        return wrong(tuning, "%s: low %" PRId64 " must be above 0 on a log scale", one->name, one->low);
    if (one->logarithmic && !(one->factor >= 1 && isfinite(one->factor)))
        return wrong(tuning, "%s: the factor must be 1 or more", one->name);
    if (!one->logarithmic && one->step < 1)
        return wrong(tuning, "%s: step %" PRId64 " must be above 0", one->name, one->step);
    if (!one->logarithmic && ((uint64_t)first - (uint64_t)one->low) % (uint64_t)one->step != 0)
        return wrong(tuning, "%s: its present value %" PRId64 " is not a step of %" PRId64 " from %" PRId64
            "; it is the default and must be one of the values", one->name, first, one->step, one->low);
    return 1;
}

int luthier_integer64(
    luthier_online *tuning, const char *name, int64_t *variable, int64_t low, int64_t high, int64_t step)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->wide = 1;
    one->wide_variable = variable;
    one->first.whole = *variable;
    one->low = low;
    one->high = high;
    one->step = step;
    return check_integer(tuning, one);
}

int luthier_integer64_log(
    luthier_online *tuning, const char *name, int64_t *variable, int64_t low, int64_t high, double factor)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->wide = one->logarithmic = 1;
    one->wide_variable = variable;
    one->first.whole = *variable;
    one->low = low;
    one->high = high;
    one->factor = factor;
    return check_integer(tuning, one);
}

int luthier_integer(luthier_online *tuning, const char *name, int *variable, int low, int high, int step)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->narrow_variable = variable;
    one->first.whole = *variable;
    one->low = low;
    one->high = high;
    one->step = step;
    return check_integer(tuning, one);
}

int luthier_integer_log(luthier_online *tuning, const char *name, int *variable, int low, int high, double factor)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->logarithmic = 1;
    one->narrow_variable = variable;
    one->first.whole = *variable;
    one->low = low;
    one->high = high;
    one->factor = factor;
    return check_integer(tuning, one);
}

static int declare_real(luthier_online *tuning, const char *name, double *variable, double low, double high,
    double step, int logarithmic)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->kind = REAL;
    one->logarithmic = logarithmic;
    one->real_variable = variable;
    one->first.real = *variable;
    one->real_low = low;
    one->real_high = high;
    one->factor = step;
    if (!isfinite(low) || !isfinite(high) || low > high)
        return wrong(tuning, "%s: low must be a finite number, and not above high", name);
    if (!(*variable >= low && *variable <= high))
        return wrong(tuning, "%s: its present value is not between low and high; it is the default", name);
    if (!isfinite(step) || step < 0)
        return wrong(tuning, "%s: the step must be 0 (any value) or above", name);
    if (logarithmic && (low <= 0 || (step != 0 && step <= 1)))
        return wrong(tuning, "%s: on a log scale low must be above 0 and a factor above 1", name);
    return 1;
}

int luthier_real(luthier_online *tuning, const char *name, double *variable, double low, double high, double step)
{
    return declare_real(tuning, name, variable, low, high, step, 0);
}

int luthier_real_log(luthier_online *tuning, const char *name, double *variable, double low, double high, double factor)
{
    return declare_real(tuning, name, variable, low, high, factor, 1);
}

/* Adds the values of a list; the last place in values holds NULL. */
static int split_values(parameter *one, const char *list)
{
    size_t most = 1;
    for (const char *at = list; *at != '\0'; at++)
        most += *at == ',';
    one->values = calloc(most + 1, sizeof *one->values);
    if (one->values == NULL)
        return 0;
    for (size_t i = 0; i < most; i++) {
        size_t length = strcspn(list, ",");
        const char *start = list, *end = list + length;
        while (start < end && *start == ' ')
            start++;
        while (end > start && end[-1] == ' ')
            end--;
        one->values[i] = copy_text(start, (size_t)(end - start));
        if (one->values[i] == NULL)
            return 0;
        list += length + 1;
    }
    one->high = (int64_t)most - 1;
    return 1;
}

static int declare_choice(luthier_online *tuning, const char *name, int *variable, const char *values, int ordered)
{
    parameter *one = declare(tuning, name, variable);
    if (one == NULL)
        return 0;
    one->kind = CHOICE;
    one->ordered = ordered;
    one->narrow_variable = variable;
    one->first.whole = *variable;
    if (values == NULL || !split_values(one, values))
        return wrong(tuning, "%s: its values are missing, or out of memory", name);
    for (int64_t i = 0; i <= one->high; i++)
        if (*one->values[i] == '\0')
            return wrong(tuning, "%s: value number %" PRId64 " is empty; write them as in \"sync,libaio\"", name, i);
    if (*variable < 0 || *variable > one->high)
        return wrong(tuning, "%s: its present value %d is not a number from 0 to %" PRId64, name, *variable, one->high);
    return 1;
}

int luthier_choice(luthier_online *tuning, const char *name, int *variable, const char *values)
{
    return declare_choice(tuning, name, variable, values, 0);
}

int luthier_ordered(luthier_online *tuning, const char *name, int *variable, const char *values)
{
    return declare_choice(tuning, name, variable, values, 1);
}

int luthier_constraint(luthier_online *tuning, const char *condition)
{
    if (tuning == NULL || tuning->broken)
        return 0;
    if (condition == NULL || tuning->prepared)
        return wrong(tuning, "constraint: declare it before the first fetch, with a text");
    if (tuning->constraints.length > 0)
        add(&tuning->constraints, ",");
    add_string(&tuning->constraints, condition);
    return tuning->constraints.failed ? wrong(tuning, "out of memory") : 1;
}

int luthier_clients(luthier_online *tuning, int count)
{
    if (tuning == NULL || tuning->broken)
        return 0;
    if (count < 1 || tuning->prepared)
        return wrong(tuning, "clients: set a number above 0 before the first fetch");
    tuning->clients = count;
    return 1;
}

/* Reading JSON. Strings are decoded where they are: that never makes them longer. */

typedef struct reader {
    char *at;
    const luthier_online *tuning;
    char why[160];
} reader;

static void skip_space(reader *from)
{
    while (*from->at == ' ' || *from->at == '\t' || *from->at == '\r')
        from->at++;
}

static int take(reader *from, char expected)
{
    skip_space(from);
    if (*from->at != expected)
        return 0;
    from->at++;
    return 1;
}

static int take_word(reader *from, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(from->at, word, length) != 0)
        return 0;
    from->at += length;
    return 1;
}

static int read_hex(reader *from, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, from->at++) {
        char digit = *from->at;
        if (digit >= '0' && digit <= '9')
            *code = *code * 16 + (unsigned)(digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            *code = *code * 16 + (unsigned)(digit - 'a') + 10;
        else if (digit >= 'A' && digit <= 'F')
            *code = *code * 16 + (unsigned)(digit - 'A') + 10;
        else
            return 0;
    }
    return 1;
}

/* The character of an escape \uXXXX, or of two that are halves of one, in UTF-8; returns where the text goes on. */
static char *read_unicode(reader *from, char *to)
{
    unsigned code, second;
    if (!read_hex(from, &code) || code == 0 || (code >= 0xdc00 && code < 0xe000))
        return NULL;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(from, "\\u") || !read_hex(from, &second) || second < 0xdc00 || second >= 0xe000)
            return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    }
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | (code >> 6));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | (code >> 12));
        *to++ = (char)(0x80 | ((code >> 6) & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | (code >> 18));
        *to++ = (char)(0x80 | ((code >> 12) & 0x3f));
        *to++ = (char)(0x80 | ((code >> 6) & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static char *read_escape(reader *from, char *to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char name = *from->at;
    if (name == '\0')
        return NULL;
    from->at++;
    if (name == 'u')
        return read_unicode(from, to);
    const char *found = strchr(names, name);
    if (found == NULL)
        return NULL;
    *to++ = meanings[found - names];
    return to;
}

static char *read_string(reader *from)
{
    if (!take(from, '"'))
        return NULL;
    char *start = from->at, *to = start;
    while (*from->at != '"') {
        if ((unsigned char)*from->at < 0x20)
            return NULL; /* the end of the line as well */
        if (*from->at == '\\') {
            from->at++;
            to = read_escape(from, to);
            if (to == NULL)
                return NULL;
        } else {
            *to++ = *from->at++;
        }
    }
    from->at++;
    *to = '\0';
    return start;
}

static int skip_digits(reader *from)
{
    const char *start = from->at;
    while (*from->at >= '0' && *from->at <= '9')
        from->at++;
    return from->at > start;
}

/* A number by JSON's grammar; whole tells whether it has neither a fraction nor an exponent. */
static int read_number(reader *from, double *real, int64_t *integer, int *whole)
{
    skip_space(from);
    const char *start = from->at;
    *whole = 1;
    if (*from->at == '-')
        from->at++;
    if (*from->at == '0')
        from->at++;
    else if (!skip_digits(from))
        return 0;
    if (*from->at == '.') {
        from->at++;
        *whole = 0;
        if (!skip_digits(from))
            return 0;
    }
    if (*from->at == 'e' || *from->at == 'E') {
        from->at++;
        *whole = 0;
        if (*from->at == '+' || *from->at == '-')
            from->at++;
        if (!skip_digits(from))
            return 0;
    }
    int saved = errno;
    locale_t before = uselocale(from->tuning->plain);
    *real = strtod(start, NULL);
    uselocale(before);
    errno = 0;
    *integer = *whole ? (int64_t)strtoll(start, NULL, 10) : 0;
    *whole = *whole && errno == 0;
    errno = saved;
    return 1;
}

static int skip_value(reader *from, int depth);

static int skip_members(reader *from, char end, int depth)
{
    if (depth > DEEPEST)
        return 0;
    from->at++;
    if (take(from, end))
        return 1;
    do {
        if (end == '}' && (read_string(from) == NULL || !take(from, ':')))
            return 0;
        if (!skip_value(from, depth + 1))
            return 0;
    } while (take(from, ','));
    return take(from, end);
}

static int skip_value(reader *from, int depth)
{
    double real;
    int64_t integer;
    int whole;
    skip_space(from);
    if (*from->at == '{')
        return skip_members(from, '}', depth);
    if (*from->at == '[')
        return skip_members(from, ']', depth);
    if (*from->at == '"')
        return read_string(from) != NULL;
    return take_word(from, "true") || take_word(from, "false") || take_word(from, "null") ||
        read_number(from, &real, &integer, &whole);
}

/* Reading configurations. */

static int outside(reader *from, const parameter *one)
{
    snprintf(from->why, sizeof from->why, "the value of %.80s is not one of those that were declared", one->name);
    return 0;
}

static int read_choice(reader *from, const parameter *one, luthier_value *value)
{
    const char *given = read_string(from);
    for (int64_t i = 0; given != NULL && i <= one->high; i++)
        if (strcmp(one->values[i], given) == 0) {
            value->whole = i;
            return 1;
        }
    return given != NULL ? outside(from, one) : 0;
}

static int read_value(reader *from, const parameter *one, luthier_value *value)
{
    double real;
    int64_t integer;
    int whole;
    if (one->kind == CHOICE)
        return read_choice(from, one, value);
    if (!read_number(from, &real, &integer, &whole))
        return 0;
    if (one->kind == REAL) {
        value->real = real;
        return real >= one->real_low && real <= one->real_high ? 1 : outside(from, one);
    }
    value->whole = integer;
    if (!whole || integer < one->low || integer > one->high)
        return outside(from, one);
    if (!one->logarithmic && ((uint64_t)integer - (uint64_t)one->low) % (uint64_t)one->step != 0)
        return outside(from, one);
    return 1;
}

static int read_config(reader *from, luthier_value *values)
{
    const luthier_online *tuning = from->tuning;
    int found = 0;
    memset(tuning->seen, 0, (size_t)tuning->count);
    if (!take(from, '{'))
        return 0;
    do {
        const char *name = read_string(from);
        int i = 0;
        while (name != NULL && i < tuning->count && strcmp(tuning->parameters[i].name, name) != 0)
            i++;
        if (name == NULL || i == tuning->count || tuning->seen[i]++ || !take(from, ':'))
            return 0;
        if (!read_value(from, &tuning->parameters[i], &values[i]))
            return 0;
        found++;
    } while (take(from, ','));
    return found == tuning->count && take(from, '}');
}

static int read_configs(reader *from, luthier_value *values)
{
    const luthier_online *tuning = from->tuning;
    if (!take(from, '['))
        return 0;
    for (int client = 0; client < tuning->clients; client++)
        if ((client > 0 && !take(from, ',')) || !read_config(from, values + (size_t)client * (size_t)tuning->count))
            return 0;
    return take(from, ']');
}

typedef struct answer {
    int ok, retry, config, configs;
    const char *error, *phase;
} answer;

static int read_member(reader *from, answer *got)
{
    const char *key = read_string(from);
    if (key == NULL || !take(from, ':'))
        return 0;
    skip_space(from);
    if (strcmp(key, "ok") == 0) {
        got->ok = take_word(from, "true");
        return got->ok || take_word(from, "false");
    }
    if (strcmp(key, "retry") == 0) {
        got->retry = take_word(from, "true");
        return got->retry || take_word(from, "false");
    }
    if (strcmp(key, "error") == 0)
        return (got->error = read_string(from)) != NULL;
    if (strcmp(key, "phase") == 0)
        return (got->phase = read_string(from)) != NULL;
    if (strcmp(key, "config") == 0)
        return got->config = read_config(from, from->tuning->incoming);
    if (strcmp(key, "configs") == 0)
        return got->configs = read_configs(from, from->tuning->incoming);
    return skip_value(from, 0);
}

static int read_answer(reader *from, answer *got)
{
    memset(got, 0, sizeof *got);
    if (!take(from, '{'))
        return 0;
    if (!take(from, '}')) {
        do {
            if (!read_member(from, got))
                return 0;
        } while (take(from, ','));
        if (!take(from, '}'))
            return 0;
    }
    skip_space(from);
    return *from->at == '\0';
}

int luthier_setting(luthier_online *tuning, const char *name, const char *value)
{
    double real;
    int64_t integer;
    int whole;
    if (tuning == NULL || tuning->broken)
        return 0;
    if (name == NULL || value == NULL || tuning->prepared)
        return wrong(tuning, "setting: set it before the first fetch, with a name and a value");
    char *copy = copy_text(value, strlen(value));
    reader from = {copy, tuning, ""};
    int bare = copy != NULL && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ||
        (read_number(&from, &real, &integer, &whole) && *from.at == '\0'));
    free(copy);
    if (tuning->settings.length > 0)
        add(&tuning->settings, ",");
    add_string(&tuning->settings, name);
    add(&tuning->settings, ":");
    if (bare)
        add(&tuning->settings, value);
    else
        add_string(&tuning->settings, value);
    if (strcmp(name, "goal") == 0)
        tuning->maximizes = strcmp(value, "maximize") == 0;
    return copy == NULL || tuning->settings.failed ? wrong(tuning, "out of memory") : 1;
}

/* Writing requests. */

static void add_value(const luthier_online *tuning, text *to, const parameter *one, luthier_value value)
{
    if (one->kind == CHOICE)
        add_string(to, one->values[value.whole]);
    else if (one->kind == REAL)
        add_real(tuning, to, value.real);
    else
        add_whole(to, value.whole);
}

static void add_bound(const luthier_online *tuning, text *to, const parameter *one, int64_t whole, double real)
{
    if (one->kind == REAL)
        add_real(tuning, to, real);
    else
        add_whole(to, whole);
}

static void add_parameter(const luthier_online *tuning, text *to, const parameter *one)
{
    static const char *const kinds[] = {"integer", "real", "choice"};
    add(to, "{\"kind\":\"");
    add(to, kinds[one->kind]);
    add(to, "\",\"name\":");
    add_string(to, one->name);
    if (one->kind == CHOICE) {
        for (int i = 0; one->values[i] != NULL; i++) {
            add(to, i == 0 ? ",\"values\":[" : ",");
            add_string(to, one->values[i]);
        }
        add(to, one->ordered ? "],\"ordered\":true" : "],\"ordered\":false");
    } else {
        add(to, ",\"low\":");
        add_bound(tuning, to, one, one->low, one->real_low);
        add(to, ",\"high\":");
        add_bound(tuning, to, one, one->high, one->real_high);
        add(to, ",\"step\":");
        if (one->kind == INTEGER && !one->logarithmic)
            add_whole(to, one->step);
        else if (one->kind == REAL && one->factor == 0)
            add(to, "null");
        else
            add_real(tuning, to, one->factor);
        add(to, one->logarithmic ? ",\"scale\":\"log\",\"unit\":\"\"" : ",\"scale\":\"linear\",\"unit\":\"\"");
    }
    add(to, ",\"default\":");
    add_value(tuning, to, one, one->first);
    add(to, "}");
}

static void add_space(const luthier_online *tuning, text *to)
{
    add(to, "{\"parameters\":[");
    for (int i = 0; i < tuning->count; i++) {
        if (i > 0)
            add(to, ",");
        add_parameter(tuning, to, &tuning->parameters[i]);
    }
    add(to, "],\"constraints\":[");
    add(to, tuning->constraints.length > 0 ? tuning->constraints.at : "");
    add(to, "]}");
}

static void add_config(const luthier_online *tuning, text *to, const luthier_value *values)
{
    for (int i = 0; i < tuning->count; i++) {
        add(to, i == 0 ? "{" : ",");
        add_string(to, tuning->parameters[i].name);
        add(to, ":");
        add_value(tuning, to, &tuning->parameters[i], values[i]);
    }
    add(to, "}");
}

/* The token of $LUTHIER_TOKEN, else the first line of the file that $LUTHIER_TOKEN_FILE names; "" where there is
 * none. */
static void find_token(char *token, size_t room)
{
    const char *given = getenv("LUTHIER_TOKEN"), *path = getenv("LUTHIER_TOKEN_FILE");
    *token = '\0';
    if (given != NULL && *given != '\0') {
        snprintf(token, room, "%s", given);
    } else if (path != NULL && *path != '\0') {
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        ssize_t length = fd < 0 ? 0 : read(fd, token, room - 1);
        if (fd >= 0)
            close(fd);
        token[length < 0 ? 0 : length] = '\0';
        token[strcspn(token, " \t\r\n")] = '\0';
    }
}

static void add_hello(const luthier_online *tuning, text *to)
{
    char host[256] = "", client[300], token[1024];
    gethostname(host, sizeof host - 1);
    snprintf(client, sizeof client, "%.80s/%ld", host, (long)tuning->pid);
    find_token(token, sizeof token);
    add(to, "{\"op\":\"hello\",\"protocol\":1,\"session\":");
    add_string(to, tuning->session);
    add(to, ",\"client\":");
    add_string(to, client);
    if (*token != '\0') {
        add(to, ",\"token\":");
        add_string(to, token);
    }
    if (tuning->clients > 1) {
        add(to, ",\"clients\":");
        add_whole(to, tuning->clients);
    }
    add(to, ",\"space\":");
    add_space(tuning, to);
    if (tuning->settings.length > 0) {
        add(to, ",\"settings\":{");
        add(to, tuning->settings.at);
        add(to, "}");
    }
    add(to, "}\n");
}

/* The connection. */

static void disconnect(luthier_online *tuning)
{
    if (tuning->fd >= 0)
        close(tuning->fd);
    tuning->fd = -1;
    tuning->queued = 0;
    tuning->in_length = tuning->in_scanned = 0;
    tuning->sent = 0;
    empty(&tuning->out);
    tuning->next_arrived = tuning->best_arrived = 0;
    strcpy(tuning->phase, "offline");
}

/* Ends a connection, or an attempt at one. The first new attempt may follow at once, the others after pauses that
 * grow. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int lose(luthier_online *tuning, int64_t least_pause, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(tuning, format, arguments);
    va_end(arguments);
    tell(tuning);
    disconnect(tuning);
    if (tuning->pause < least_pause)
        tuning->pause = least_pause;
    tuning->retry_at = now_ns() + tuning->pause;
    tuning->pause = tuning->pause == 0 ? FIRST_PAUSE : 2 * tuning->pause;
    if (tuning->pause > LONGEST_PAUSE)
        tuning->pause = LONGEST_PAUSE;
    return 0;
}

static int wait_for(int fd, short events, int64_t deadline)
{
    for (;;) {
        struct pollfd one = {fd, events, 0};
        int64_t left = deadline - now_ns();
        if (left <= 0)
            return 0;
        int ready = poll(&one, 1, (int)((left + MS - 1) / MS));
        if (ready > 0)
            return 1;
        if (ready < 0 && errno != EINTR)
            return 0;
    }
}

/* Connects a new socket, closed on exec, that does not wait. Numbers 0 to 2 are left to the program's own output. */
static int connect_to(luthier_online *tuning, const struct sockaddr *address, socklen_t length, int64_t deadline)
{
#ifdef SOCK_CLOEXEC
    int first = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
#else
    int first = socket(address->sa_family, SOCK_STREAM, 0);
#endif
    int fd = first < 0 ? -1 : fcntl(first, F_DUPFD_CLOEXEC, 3);
    int error = errno, one = 1;
    if (first >= 0)
        close(first);
    if (fd < 0)
        return lose(tuning, FIRST_PAUSE, "no socket: %s", strerror(error));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    error = connect(fd, address, length) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
        socklen_t size = sizeof error;
        if (!wait_for(fd, POLLOUT, deadline))
            error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    if (error == 0) {
        tuning->fd = fd;
        return 1;
    }
    close(fd);
    return lose(tuning, FIRST_PAUSE, "no service at %s: %s", tuning->address, strerror(error));
}

static int connect_unix(luthier_online *tuning, const char *path, int64_t deadline)
{
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path)
        return lose(tuning, LONGEST_PAUSE, "the path of the socket %s is too long", path);
    strcpy(address.sun_path, path);
    return connect_to(tuning, (const struct sockaddr *)&address, sizeof address, deadline);
}

/* HOST:PORT, [IPv6]:PORT or PORT. Names are not looked up: that could take any time. */
static int connect_tcp(luthier_online *tuning, const char *place, int64_t deadline)
{
    char host[64] = "127.0.0.1";
    const char *colon = strrchr(place, ':'), *port = colon != NULL ? colon + 1 : place;
    if (colon != NULL) {
        size_t length = (size_t)(colon - place);
        int bracket = length >= 2 && place[0] == '[' && colon[-1] == ']';
        snprintf(host, sizeof host, "%.*s", (int)(length - 2 * (size_t)bracket), place + bracket);
        if (strcmp(host, "localhost") == 0)
            strcpy(host, "127.0.0.1");
    }
    struct addrinfo hints, *found = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    int valid = strspn(port, "0123456789") == strlen(port) && strlen(port) <= 5 && atoi(port) > 0 && atoi(port) < 65536;
    if (!valid || getaddrinfo(host, port, &hints, &found) != 0 || found == NULL)
        return lose(tuning, LONGEST_PAUSE, "%s: write tcp:HOST:PORT with the address of the host in numbers",
            tuning->address);
    int done = connect_to(tuning, found->ai_addr, found->ai_addrlen, deadline);
    freeaddrinfo(found);
    return done;
}

/* Allocates what the number of parameters decides; none is declared from here on. */
static int prepare(luthier_online *tuning)
{
    if (tuning->prepared)
        return 1;
    if (tuning->count == 0)
        return wrong(tuning, "no parameter was declared");
    size_t count = (size_t)tuning->count, all = count * (size_t)tuning->clients;
    tuning->incoming = calloc(all, sizeof *tuning->incoming);
    tuning->next = calloc(all, sizeof *tuning->next);
    tuning->best = calloc(count, sizeof *tuning->best);
    tuning->first = calloc(count, sizeof *tuning->first);
    tuning->own = calloc(count, sizeof *tuning->own);
    tuning->seen = calloc(count, 1);
    tuning->prepared = 1;
    if (tuning->incoming == NULL || tuning->next == NULL || tuning->best == NULL || tuning->seen == NULL ||
        tuning->first == NULL || tuning->own == NULL)
        return wrong(tuning, "out of memory");
    for (int i = 0; i < tuning->count; i++)
        tuning->first[i] = tuning->parameters[i].first;
    return 1;
}

/* Sends what is left of the requests as far as the socket takes it. */
static int flush(luthier_online *tuning)
{
    while (tuning->sent < tuning->out.length) {
        ssize_t done = send(tuning->fd, tuning->out.at + tuning->sent, tuning->out.length - tuning->sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 1;
        if (done < 0)
            return lose(tuning, 0, "the connection to %s ended: %s", tuning->address, strerror(errno));
        tuning->sent += (size_t)done;
    }
    tuning->sent = 0;
    empty(&tuning->out);
    return 1;
}

/* Appends to the queue a request whose line was added to the text that is sent. */
static int ask(luthier_online *tuning, enum request kind)
{
    if (tuning->out.failed || tuning->queued == QUEUE)
        return lose(tuning, 0, "out of memory");
    tuning->queue[tuning->queued++] = (char)kind;
    tuning->asked_at = now_ns();
    return 1;
}

static int is_asked(const luthier_online *tuning, enum request kind)
{
    return memchr(tuning->queue, kind, (size_t)tuning->queued) != NULL;
}

static int understand(luthier_online *tuning, char *line, enum request kind)
{
    reader from = {line, tuning, "it is not an answer of the protocol"};
    answer got;
    int readable = read_answer(&from, &got);
    int needed = kind == FETCH ? (tuning->clients > 1 ? got.configs : got.config) : kind == BEST ? got.config : 1;
    if (!readable || (got.ok && !needed) || (!got.ok && got.error == NULL))
        return lose(tuning, LONGEST_PAUSE, "an answer of %s is refused: %s", tuning->address, from.why);
    if (!got.ok && (kind == HELLO || kind == FETCH))
        return lose(tuning, got.retry ? FIRST_PAUSE : LONGEST_PAUSE, "%s", got.error);
    if (!got.ok) {
        problem(tuning, "%s", got.error);
        tell(tuning);
        return 1;
    }
    if (got.phase != NULL)
        snprintf(tuning->phase, sizeof tuning->phase, "%s", got.phase);
    if (kind == FETCH) {
        memcpy(tuning->next, tuning->incoming, (size_t)tuning->clients * (size_t)tuning->count * sizeof *tuning->next);
        tuning->next_arrived = 1;
        tuning->connected_before = 1;
        tuning->pause = 0;
    } else if (kind == BEST) {
        memcpy(tuning->best, tuning->incoming, (size_t)tuning->count * sizeof *tuning->best);
        tuning->best_arrived = 1;
    }
    return 1;
}

/* Takes every whole line out of what was received. */
static int take_lines(luthier_online *tuning)
{
    char *end;
    while ((end = memchr(tuning->in + tuning->in_scanned, '\n', tuning->in_length - tuning->in_scanned)) != NULL) {
        size_t length = (size_t)(end - tuning->in) + 1;
        *end = '\0';
        if (tuning->queued == 0)
            return lose(tuning, LONGEST_PAUSE, "%s sent a line that was not asked for", tuning->address);
        enum request kind = (enum request)tuning->queue[0];
        memmove(tuning->queue, tuning->queue + 1, (size_t)--tuning->queued);
        if (memchr(tuning->in, '\0', length) != end)
            return lose(tuning, LONGEST_PAUSE, "an answer of %s holds a zero byte", tuning->address);
        if (!understand(tuning, tuning->in, kind))
            return 0;
        memmove(tuning->in, tuning->in + length, tuning->in_length - length);
        tuning->in_length -= length;
        tuning->in_scanned = 0;
    }
    tuning->in_scanned = tuning->in_length;
    return 1;
}

static size_t longest_answer(const luthier_online *tuning)
{
    return LONGEST_ANSWER + (size_t)tuning->clients * (size_t)tuning->count * 256;
}

/* Reads what is there. Returns 0 if the connection was lost, -1 if nothing is there. */
static int receive(luthier_online *tuning)
{
    if (tuning->in_room - tuning->in_length < 2048) {
        size_t room = 2 * tuning->in_room + 4096;
        char *in = tuning->in_room > longest_answer(tuning) ? NULL : realloc(tuning->in, room);
        if (in == NULL)
            return lose(tuning, LONGEST_PAUSE, "an answer of %s is too long", tuning->address);
        tuning->in = in;
        tuning->in_room = room;
    }
    ssize_t got = recv(tuning->fd, tuning->in + tuning->in_length, tuning->in_room - tuning->in_length, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return -1;
    if (got < 0)
        return lose(tuning, 0, "the connection to %s ended: %s", tuning->address, strerror(errno));
    if (got == 0)
        return lose(tuning, 0, "the service at %s closed the connection", tuning->address);
    tuning->in_length += (size_t)got;
    return take_lines(tuning);
}

/* Sends and receives until requests of a kind are answered. Returns 0 if the connection was lost or the time is over.
 * */
static int until_answered(luthier_online *tuning, enum request kind, int64_t deadline)
{
    int more = 1;
    while (is_asked(tuning, kind)) {
        if (!flush(tuning))
            return 0;
        if (more < 0) {
            short events = tuning->sent < tuning->out.length ? POLLIN | POLLOUT : POLLIN;
            if (!wait_for(tuning->fd, events, deadline)) {
                if (now_ns() - tuning->asked_at > PATIENCE)
                    return lose(tuning, 0, "%s does not answer", tuning->address);
                return problem(tuning, "no answer of %s in time", tuning->address);
            }
        }
        /* Just after a request nothing can be there yet: waiting first saves a system call. */
        more = more == 1 && deadline > 0 && tuning->in_length == 0 && kind == FETCH ? -1 : receive(tuning);
        if (more == 0)
            return 0;
    }
    return 1;
}

static int connect_now(luthier_online *tuning, int64_t deadline)
{
    if (!prepare(tuning) || now_ns() < tuning->retry_at)
        return 0;
    const char *address = tuning->address;
    int done = 0;
    if (strncmp(address, "unix:", 5) == 0)
        done = connect_unix(tuning, address + 5, deadline);
    else if (strncmp(address, "tcp:", 4) == 0)
        done = connect_tcp(tuning, address + 4, deadline);
    else
        return wrong(tuning, "the address %s is neither unix:PATH nor tcp:HOST:PORT", address);
    if (!done)
        return 0;
    add_hello(tuning, &tuning->out);
    if (!ask(tuning, HELLO))
        return 0;
    if (tuning->kept.length > 0 && !tuning->kept.failed) {
        add(&tuning->out, tuning->kept.at);
        empty(&tuning->kept);
        return ask(tuning, REPORT);
    }
    return 1;
}

/* Whether the handle can be used in this process; a child of the one that connected starts anew. */
static int usable(luthier_online *tuning)
{
    if (tuning == NULL || tuning->broken)
        return 0;
    if (tuning->pid != getpid()) {
        disconnect(tuning);
        empty(&tuning->kept);
        tuning->pid = getpid();
        tuning->retry_at = tuning->pause = 0;
        tuning->running = NOTHING;
    }
    return 1;
}

static int64_t limit(const luthier_online *tuning)
{
    return now_ns() + (tuning->connected_before ? tuning->later_limit : tuning->first_limit);
}

/* What this program has measured itself. While the service does not answer, the best of it is used. */

static int same_config(const luthier_online *tuning, const luthier_value *one, const luthier_value *other)
{
    return memcmp(one, other, (size_t)tuning->count * sizeof *one) == 0;
}

static luthier_value *seen_config(const luthier_online *tuning, int number)
{
    return tuning->seen_configs + (size_t)number * (size_t)tuning->count;
}

/* The value that stands for the last ones: the median, and of an even number the worse of the two in the middle. */
static double judged(const measured *one)
{
    const int count = one->count < KEPT ? (int)one->count : KEPT;
    double sorted[KEPT];
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > one->values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = one->values[i];
    }
    return count == 0 ? HUGE_VAL : sorted[count / 2];
}

static int keep_room(luthier_online *tuning)
{
    if (tuning->seen_values == NULL)
        tuning->seen_values = calloc(MOST_MEASURED, sizeof *tuning->seen_values);
    if (tuning->seen_configs == NULL)
        tuning->seen_configs = calloc(MOST_MEASURED, (size_t)tuning->count * sizeof *tuning->seen_configs);
    return tuning->seen_values != NULL && tuning->seen_configs != NULL;
}

/* The number of the worst configuration that is not the default. */
static int worst_seen(const luthier_online *tuning)
{
    int worst = -1;
    for (int i = 0; i < tuning->seen_count; i++)
        if (!same_config(tuning, seen_config(tuning, i), tuning->first) &&
            (worst < 0 || judged(&tuning->seen_values[i]) > judged(&tuning->seen_values[worst])))
            worst = i;
    return worst;
}

/* The place of a configuration; where all are taken, a new one gets that of the worst. */
static measured *place_of(luthier_online *tuning, const luthier_value *config)
{
    const size_t size = (size_t)tuning->count * sizeof *config;
    uint64_t hash = hash_bytes(config, size);
    for (int i = 0; i < tuning->seen_count; i++)
        if (tuning->seen_values[i].hash == hash && same_config(tuning, seen_config(tuning, i), config))
            return &tuning->seen_values[i];
    if (!keep_room(tuning))
        return NULL;
    const int place = tuning->seen_count < MOST_MEASURED ? tuning->seen_count++ : worst_seen(tuning);
    memset(&tuning->seen_values[place], 0, sizeof *tuning->seen_values);
    tuning->seen_values[place].hash = hash;
    memcpy(seen_config(tuning, place), config, size);
    return &tuning->seen_values[place];
}

static void remember(luthier_online *tuning, const luthier_value *config, double value)
{
    measured *one = place_of(tuning, config);
    if (one != NULL)
        one->values[one->count++ % KEPT] = !(fabs(value) <= LARGEST_VALUE) ? HUGE_VAL : tuning->maximizes ? -value : value;
}

/* The default, or the best configuration that was measured at least twice and is better. */
static const luthier_value *best_seen(const luthier_online *tuning)
{
    const luthier_value *best = tuning->first;
    double lowest = HUGE_VAL;
    for (int i = 0; i < tuning->seen_count; i++)
        if (same_config(tuning, seen_config(tuning, i), tuning->first))
            lowest = judged(&tuning->seen_values[i]);
    for (int i = 0; i < tuning->seen_count; i++)
        if (tuning->seen_values[i].count >= FEWEST && judged(&tuning->seen_values[i]) < lowest) {
            lowest = judged(&tuning->seen_values[i]);
            best = seen_config(tuning, i);
        }
    return best;
}

int luthier_fallback_values(luthier_online *tuning, luthier_value *values)
{
    /* Before the service has chosen anything, the variables have the values that the program gave them. */
    if (!usable(tuning) || !tuning->connected_before)
        return 0;
    const size_t size = (size_t)tuning->count * sizeof *values;
    memcpy(tuning->own, best_seen(tuning), size);
    for (int client = 0; client < tuning->clients; client++)
        memcpy(values + (size_t)client * (size_t)tuning->count, tuning->own, size);
    tuning->running = FROM_OWN;
    return 1;
}

/* The calls of the loop. */

int luthier_fetch_values(luthier_online *tuning, luthier_value *values)
{
    if (!usable(tuning))
        return 0;
    int64_t deadline = limit(tuning);
    tuning->running = NOTHING;
    if (tuning->fd < 0 && !connect_now(tuning, deadline))
        return 0;
    if (is_asked(tuning, FETCH)) {
        deadline = 0; /* it was waited for once; now the answer is there or the program goes on */
    } else if (!tuning->next_arrived) {
        add(&tuning->out, "{\"op\":\"fetch\"}\n");
        if (!ask(tuning, FETCH))
            return 0;
    }
    if (!until_answered(tuning, FETCH, deadline) || !tuning->next_arrived)
        return 0;
    tuning->next_arrived = 0;
    tuning->running = FROM_SERVICE;
    if (values != tuning->next)
        memcpy(values, tuning->next, (size_t)tuning->clients * (size_t)tuning->count * sizeof *values);
    return 1;
}

void luthier_put(luthier_online *tuning, const luthier_value *values)
{
    for (int i = 0; tuning != NULL && values != NULL && i < tuning->count; i++) {
        const parameter *one = &tuning->parameters[i];
        if (one->kind == REAL)
            *one->real_variable = values[i].real;
        else if (one->wide)
            *one->wide_variable = values[i].whole;
        else
            *one->narrow_variable = (int)values[i].whole;
    }
}

int luthier_fetch(luthier_online *tuning)
{
    if (!usable(tuning) || !prepare(tuning))
        return 0;
    int fetched = luthier_fetch_values(tuning, tuning->next);
    if (fetched)
        luthier_put(tuning, tuning->next);
    else if (luthier_fallback_values(tuning, tuning->incoming))
        luthier_put(tuning, tuning->incoming);
    return fetched;
}

/* Keeps a report for the next connection: it tells what was run, since the service may be a new one. */
static void keep(luthier_online *tuning, double value)
{
    empty(&tuning->kept);
    if (tuning->clients > 1)
        return;
    add(&tuning->kept, "{\"op\":\"report\",\"value\":");
    add_reported(tuning, &tuning->kept, value);
    add(&tuning->kept, ",\"config\":");
    add_config(tuning, &tuning->kept, tuning->next);
    add(&tuning->kept, "}\n");
}

static int send_report(luthier_online *tuning, const double *values)
{
    add(&tuning->out, tuning->clients > 1 ? "{\"op\":\"report\",\"values\":[" : "{\"op\":\"report\",\"value\":");
    for (int client = 0; client < tuning->clients; client++) {
        if (client > 0)
            add(&tuning->out, ",");
        add_reported(tuning, &tuning->out, values[client]);
    }
    add(&tuning->out, tuning->clients > 1 ? "]}\n" : "}\n");
    return ask(tuning, REPORT) && flush(tuning);
}

int luthier_report_values(luthier_online *tuning, const double *values)
{
    if (!usable(tuning) || tuning->running == NOTHING)
        return 0;
    const int is_chosen = tuning->running == FROM_SERVICE;
    const size_t count = (size_t)tuning->count;
    for (int client = 0; client < tuning->clients; client++)
        remember(tuning, is_chosen ? tuning->next + (size_t)client * count : tuning->own, values[client]);
    tuning->running = NOTHING;
    if (!is_chosen)
        return 0; /* the service has not asked for it */
    /* A connection that ended is noticed by reading: the first bytes sent over TCP would still be accepted. */
    if (tuning->fd >= 0 && receive(tuning) != 0 && send_report(tuning, values))
        return 1;
    keep(tuning, values[0]);
    return 0;
}

int luthier_report(luthier_online *tuning, double value)
{
    if (tuning == NULL)
        return 0;
    if (tuning->clients > 1)
        return problem(tuning, "a handle of several clients reports with luthier_report_values");
    return luthier_report_values(tuning, &value);
}

int luthier_report_failed(luthier_online *tuning)
{
    return luthier_report(tuning, HUGE_VAL);
}

int luthier_begin(luthier_online *tuning)
{
    int fetched = luthier_fetch(tuning);
    if (tuning != NULL)
        tuning->started = now_ns();
    return fetched;
}

int luthier_end(luthier_online *tuning)
{
    int64_t ended = now_ns();
    return tuning == NULL ? 0 : luthier_report(tuning, (double)(ended - tuning->started) / 1e9);
}

static int fetch_best(luthier_online *tuning)
{
    int64_t deadline = limit(tuning);
    if (tuning->fd < 0 && !connect_now(tuning, deadline))
        return 0;
    tuning->best_arrived = 0;
    if (!is_asked(tuning, BEST)) {
        add(&tuning->out, "{\"op\":\"best\"}\n");
        if (!ask(tuning, BEST))
            return 0;
    }
    return until_answered(tuning, BEST, deadline) && tuning->best_arrived;
}

int luthier_best_values(luthier_online *tuning, luthier_value *values)
{
    if (!usable(tuning))
        return 0;
    const luthier_value *best = fetch_best(tuning) ? tuning->best : tuning->connected_before ? best_seen(tuning) : NULL;
    if (best == NULL)
        return 0;
    tuning->running = NOTHING;
    memcpy(values, best, (size_t)tuning->count * sizeof *values);
    return 1;
}

int luthier_best(luthier_online *tuning)
{
    if (!usable(tuning) || !prepare(tuning) || !luthier_best_values(tuning, tuning->incoming))
        return 0;
    luthier_put(tuning, tuning->incoming);
    return 1;
}

/* The handle. */

/* The address that was given, or that of $LUTHIER_ONLINE, or the default of the service. */
static char *find_address(const char *given)
{
    const char *variable = getenv("LUTHIER_ONLINE"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (given == NULL && variable != NULL && *variable != '\0')
        given = variable;
    if (given != NULL)
        return copy_text(given, strlen(given));
    text path = {NULL, 0, 0, 0};
    add(&path, "unix:");
    if (data != NULL && *data != '\0') {
        add(&path, data);
    } else {
        add(&path, home != NULL ? home : "");
        add(&path, "/.local/share");
    }
    add(&path, "/luthier/online.sock");
    if (path.failed) {
        free(path.at);
        return NULL;
    }
    return path.at;
}

static void release(luthier_online *tuning)
{
    for (int i = 0; i < tuning->count; i++) {
        parameter *one = &tuning->parameters[i];
        for (int j = 0; one->values != NULL && one->values[j] != NULL; j++)
            free(one->values[j]);
        free(one->values);
        free(one->name);
    }
    free(tuning->parameters);
    free(tuning->address);
    free(tuning->session);
    free(tuning->constraints.at);
    free(tuning->settings.at);
    free(tuning->out.at);
    free(tuning->kept.at);
    free(tuning->in);
    free(tuning->incoming);
    free(tuning->next);
    free(tuning->best);
    free(tuning->seen);
    free(tuning->seen_values);
    free(tuning->seen_configs);
    free(tuning->first);
    free(tuning->own);
    if (tuning->plain != (locale_t)0)
        freelocale(tuning->plain);
    free(tuning);
}

luthier_online *luthier_open(const char *address, const char *session)
{
    luthier_online *tuning = calloc(1, sizeof *tuning);
    if (tuning == NULL)
        return NULL;
    tuning->fd = -1;
    tuning->pid = getpid();
    tuning->clients = 1;
    tuning->first_limit = FIRST_LIMIT;
    tuning->later_limit = LATER_LIMIT;
    strcpy(tuning->phase, "offline");
    tuning->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    tuning->address = find_address(address);
    tuning->session = copy_text(session != NULL ? session : "", session != NULL ? strlen(session) : 0);
    if (tuning->plain == (locale_t)0 || tuning->address == NULL || tuning->session == NULL) {
        release(tuning);
        return NULL;
    }
    const char *longest = getenv("LUTHIER_TIMEOUT_MS");
    if (longest != NULL && strspn(longest, "0123456789") == strlen(longest) && *longest != '\0' && strlen(longest) < 9)
        luthier_timeout_ms(tuning, atoi(longest));
    if (*tuning->session == '\0')
        wrong(tuning, "the session needs a name");
    return tuning;
}

void luthier_close(luthier_online *tuning)
{
    if (tuning == NULL)
        return;
    if (usable(tuning) && tuning->fd >= 0) {
        /* Reading all answers first: closing with unread ones could discard the last report on its way. */
        add(&tuning->out, "{\"op\":\"leave\"}\n");
        if (ask(tuning, LEAVE))
            until_answered(tuning, LEAVE, now_ns() + tuning->later_limit);
    }
    disconnect(tuning);
    release(tuning);
}

const char *luthier_phase(const luthier_online *tuning)
{
    return tuning == NULL ? "offline" : tuning->phase;
}

static const char *const PHASES[] = {"offline", "baseline", "searching", "converged", "stopped"};
enum { PHASE_COUNT = sizeof PHASES / sizeof *PHASES };

int luthier_phase_number(const luthier_online *tuning)
{
    int number = PHASE_COUNT - 1;
    while (number > 0 && strcmp(luthier_phase(tuning), PHASES[number]) != 0)
        number--;
    return number;
}

void luthier_put_phase(luthier_online *tuning, int number)
{
    if (tuning != NULL && number >= 0 && number < PHASE_COUNT)
        strcpy(tuning->phase, PHASES[number]);
}

const char *luthier_error(const luthier_online *tuning)
{
    return tuning == NULL ? "out of memory" : tuning->error;
}

void luthier_timeout_ms(luthier_online *tuning, int milliseconds)
{
    if (tuning != NULL && milliseconds >= 0)
        tuning->first_limit = tuning->later_limit = milliseconds * MS;
}

void luthier_quiet(luthier_online *tuning, int quiet)
{
    if (tuning != NULL)
        tuning->quiet = quiet;
}

int luthier_count(const luthier_online *tuning)
{
    return tuning == NULL || tuning->broken ? 0 : tuning->count;
}

void luthier_disable(luthier_online *tuning, const char *message)
{
    if (tuning != NULL) {
        disconnect(tuning);
        wrong(tuning, "%s", message);
    }
}

uint64_t luthier_fingerprint(luthier_online *tuning)
{
    text space = {NULL, 0, 0, 0};
    if (!usable(tuning) || !prepare(tuning))
        return 0;
    add_space(tuning, &space);
    uint64_t hash = hash_bytes(space.at, space.length);
    free(space.at);
    return hash;
}

int luthier_maximizes(const luthier_online *tuning)
{
    return tuning != NULL && tuning->maximizes;
}

void luthier_attach(luthier_online *tuning, void *pointer)
{
    if (tuning != NULL)
        tuning->attached = pointer;
}

void *luthier_attached(const luthier_online *tuning)
{
    return tuning == NULL ? NULL : tuning->attached;
}
