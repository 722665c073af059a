/* The settings that a user asks for, what became of each, and the warnings about them. */
#define _GNU_SOURCE
#include "io.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../quantity.h"

enum kind { SIZE, FRACTION, WORD, SHAPE };

#define SWITCH {"off", "on", NULL}
#define ROMIO {"disable", "enable", "automatic", NULL}
static const struct {
    const char *name, *alias; /* alias: the name that H5Tuner's files use */
    enum kind kind;
    uint64_t low, high;
    const char *words[4];
} SETTING[SETTINGS] = {
    [ALIGNMENT_THRESHOLD] = {"alignment_threshold", NULL, SIZE, 0, UINT64_C(1) << 50, {0}},
    [ALIGNMENT] = {"alignment", NULL, SIZE, 1, UINT64_C(1) << 40, {0}},
    [SIEVE_BUFFER] = {"sieve_buffer", "sieve_buf_size", SIZE, 0, UINT64_C(1) << 40, {0}},
    [CHUNK] = {"chunk", NULL, SHAPE, 1, UINT32_MAX, {0}},
    [CHUNK_CACHE_BYTES] = {"chunk_cache_bytes", NULL, SIZE, 0, UINT64_C(1) << 40, {0}},
    [CHUNK_CACHE_SLOTS] = {"chunk_cache_slots", NULL, SIZE, 1, UINT64_C(1) << 32, {0}},
    [CHUNK_CACHE_W0] = {"chunk_cache_w0", NULL, FRACTION, 0, 1, {0}},
    [METADATA_BLOCK] = {"metadata_block", "meta_block_size", SIZE, 0, UINT64_C(1) << 40, {0}},
    [METADATA_CACHE] = {"metadata_cache", NULL, SIZE, 1024, 128u << 20, {0}},
    [FILL_TIME] = {"fill_time", NULL, WORD, 0, 0, {"alloc", "never", "ifset", NULL}},
    [ALLOC_TIME] = {"alloc_time", NULL, WORD, 0, 0, {"early", "late", "incr", NULL}},
    [COLLECTIVE_METADATA] = {"collective_metadata", NULL, WORD, 0, 0, SWITCH},
    [TRANSFER] = {"transfer", NULL, WORD, 0, 0, {"independent", "collective", NULL}},
    [CB_NODES] = {"cb_nodes", NULL, SIZE, 1, 1u << 24, {0}},
    [CB_BUFFER_SIZE] = {"cb_buffer_size", NULL, SIZE, 1, INT32_MAX, {0}},
    [ROMIO_DS_READ] = {"romio_ds_read", NULL, WORD, 0, 0, ROMIO},
    [ROMIO_DS_WRITE] = {"romio_ds_write", NULL, WORD, 0, 0, ROMIO},
    [ROMIO_CB_READ] = {"romio_cb_read", NULL, WORD, 0, 0, ROMIO},
    [ROMIO_CB_WRITE] = {"romio_cb_write", NULL, WORD, 0, 0, ROMIO},
    [STRIPING_FACTOR] = {"striping_factor", NULL, SIZE, 1, 1u << 24, {0}},
    [STRIPING_UNIT] = {"striping_unit", NULL, SIZE, 1, INT32_MAX, {0}},
};

static struct value values[VALUES];
static int value_count;
uint32_t asked;
static bool some_by_file;
static struct {
    const struct value *applied; /* to at least one file or dataset */
    int has_reason;              /* 1 while the reason is written, then 2 */
    char reason[WARNING];
} outcomes[SETTINGS];
static char unknown[WARNINGS][TEXT];
static int unknown_count;

const char *setting_name(enum setting setting)
{
    return SETTING[setting].name;
}

/* ---- warnings ---- */

static char warnings[WARNINGS][WARNING];
static int warning_count, printed;
static bool quiet, at_once;
static struct stat stderr_status; /* to notice that a program has opened something else as descriptor 2 */

void remember_stderr(void)
{
    const char *text = getenv("LUTHIER_IO_QUIET");
    quiet = !is_first_rank() || (text != NULL && *text != '\0' && strcmp(text, "0") != 0)
            || fstat(STDERR_FILENO, &stderr_status) != 0;
}

static void print_one(const char *text)
{
    struct stat status;
    char line[WARNING + 32];
    if (quiet || fstat(STDERR_FILENO, &status) != 0 || status.st_dev != stderr_status.st_dev
        || status.st_ino != stderr_status.st_ino)
        return;
    int length = snprintf(line, sizeof line, "luthier io: %s\n", text);
    plain_write(STDERR_FILENO, line, (size_t)length);
}

/* Processes that use neither HDF5 nor MPI-IO, such as a shell around the program, print nothing. */
void print_warnings(void)
{
    int saved = errno;
    at_once = true;
    int known = warnings_kept();
    for (int i = __atomic_exchange_n(&printed, known, __ATOMIC_RELAXED); i < known; i++)
        print_one(warnings[i]);
    errno = saved;
}

void warn(const char *format, ...)
{
    int saved = errno;
    int number = __atomic_fetch_add(&warning_count, 1, __ATOMIC_RELAXED);
    if (number < WARNINGS) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(warnings[number], WARNING, format, arguments);
        va_end(arguments);
        for (char *at = warnings[number]; *at != '\0'; at++)
            if ((unsigned char)*at < ' ')
                *at = '?';
    }
    if (at_once)
        print_warnings();
    errno = saved;
}

int warnings_kept(void)
{
    int count = __atomic_load_n(&warning_count, __ATOMIC_RELAXED);
    return count < WARNINGS ? count : WARNINGS;
}

const char *warning_at(int number)
{
    return warnings[number];
}

const char *unknown_at(int number)
{
    return number < unknown_count ? unknown[number] : NULL;
}

/* ---- reading ---- */

static bool parse_word(enum setting setting, const char *text, uint64_t *number)
{
    for (*number = 0; SETTING[setting].words[*number] != NULL; ++*number)
        if (strcmp(text, SETTING[setting].words[*number]) == 0)
            return true;
    return false;
}

static bool parse_fraction(const char *text, double *fraction)
{
    char *end;
    if (strspn(text, "0123456789.") != strlen(text) || *text == '\0')
        return false;
    *fraction = strtod(text, &end);
    return *end == '\0' && *fraction >= 0 && *fraction <= 1;
}

/* 64x1024, in H5Tuner's files also 64,1024 */
static bool parse_shape(const char *text, struct value *value)
{
    char copy[TEXT], *rest = copy, *part;
    snprintf(copy, sizeof copy, "%s", text);
    for (value->rank = 0; (part = strsep(&rest, "x,")) != NULL; value->rank++)
        if (value->rank == DIMENSIONS || !parse_quantity(part, 1, UINT32_MAX, &value->shape[value->rank]))
            return false;
    return true;
}

static bool parse(enum setting setting, const char *text, struct value *value)
{
    switch (SETTING[setting].kind) {
    case SIZE:
        return parse_quantity(text, SETTING[setting].low, SETTING[setting].high, &value->number);
    case FRACTION:
        return parse_fraction(text, &value->fraction);
    case WORD:
        return parse_word(setting, text, &value->number);
    default:
        return parse_shape(text, value);
    }
}

static void expect(enum setting setting, char *text, size_t size)
{
    const char *const *words = SETTING[setting].words;
    if (SETTING[setting].kind == WORD)
        snprintf(text, size, "%s%s%s%s%s", words[0], words[2] ? ", " : " or ", words[1], words[2] ? " or " : "",
                 words[2] ? words[2] : "");
    else if (SETTING[setting].kind == SHAPE)
        snprintf(text, size, "sizes such as 64x1024");
    else if (SETTING[setting].kind == FRACTION)
        snprintf(text, size, "a number from 0 to 1");
    else
        snprintf(text, size, "a whole number from %llu to %llu (4096, 64k, 1M)",
                 (unsigned long long)SETTING[setting].low, (unsigned long long)SETTING[setting].high);
}

static void refuse(const char *name)
{
    if (unknown_count < WARNINGS)
        snprintf(unknown[unknown_count++], TEXT, "%s", name);
}

static enum setting setting_called(const char *name)
{
    int setting = 0;
    while (setting < SETTINGS && strcmp(name, SETTING[setting].name) != 0
           && (SETTING[setting].alias == NULL || strcmp(name, SETTING[setting].alias) != 0))
        setting++;
    return (enum setting)setting;
}

static void drop(enum setting setting, const char *file)
{
    for (int i = 0; i < value_count; i++)
        if (values[i].setting == setting && strcmp(values[i].file, file) == 0)
            values[i--] = values[--value_count];
}

/* One setting by name; the last of several for the same file holds. Nothing is injected for the value `default`. */
void take_setting(const char *name, const char *text, const char *file)
{
    enum setting setting = setting_called(name);
    if (setting == SETTINGS) {
        warn("unknown setting '%.60s' is ignored; docs/io.md lists the names", name);
        refuse(name);
        return;
    }
    if (strcmp(text, "default") == 0) {
        drop(setting, file);
        return;
    }
    struct value value = {.setting = setting};
    char expected[120];
    if (strlen(text) >= TEXT || strlen(file) >= sizeof value.file || !parse(setting, text, &value)) {
        expect(setting, expected, sizeof expected);
        warn("%s: invalid value '%.40s' is ignored; expected %s", name, text, expected);
        refuse(name);
        return;
    }
    strcpy(value.text, text);
    strcpy(value.file, file);
    some_by_file |= *file != '\0';
    for (int i = 0; i < value_count; i++)
        if (values[i].setting == setting && strcmp(values[i].file, file) == 0) {
            values[i] = value;
            return;
        }
    if (value_count < VALUES)
        values[value_count++] = value;
    else
        warn("%s is ignored: more than %d settings", name, VALUES);
}

static void read_list(const char *list)
{
    char *copy = strdup(list), *rest = copy, *item;
    while (copy != NULL && (item = strsep(&rest, ",")) != NULL) {
        item += strspn(item, " \t");
        if (*item == '\0')
            continue;
        char *text = strchr(item, '=');
        if (text != NULL)
            *text++ = '\0';
        take_setting(item, text == NULL ? "" : text, "");
    }
    free(copy);
}

/* A variable for each setting, such as LUTHIER_IO_SIEVE_BUFFER. */
static void read_variables(void)
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        char name[64] = "LUTHIER_IO_";
        size_t length = strlen(name);
        for (const char *letter = SETTING[setting].name; *letter != '\0' && length + 1 < sizeof name; letter++)
            name[length++] = (char)toupper((unsigned char)*letter);
        const char *text = getenv(name);
        if (text != NULL && *text != '\0')
            take_setting(SETTING[setting].name, text, "");
    }
}

void read_settings(void)
{
    const char *list = getenv("LUTHIER_IO"), *xml = getenv("LUTHIER_IO_XML");
    char path[PATH_MAX];
    if (xml != NULL && *xml != '\0') {
        absolute_path(xml, path, sizeof path);
        read_xml(path);
        if (*xml != '/') /* programs that this one starts may run in another folder */
            setenv("LUTHIER_IO_XML", path, 1);
    }
    if (list != NULL)
        read_list(list);
    read_variables();
    for (int i = 0; i < value_count; i++)
        asked |= UINT32_C(1) << values[i].setting;
}

/* ---- use ---- */

static bool ends(const char *text, const char *end)
{
    size_t length = strlen(text), wanted_length = strlen(end);
    return length >= wanted_length && strcmp(text + length - wanted_length, end) == 0;
}

const struct value *find_wanted(enum setting setting, const char *path)
{
    const struct value *found = NULL;
    for (int i = 0; i < value_count; i++)
        if (values[i].setting == setting && (*values[i].file == '\0' || ends(path, values[i].file))
            && (found == NULL || strlen(values[i].file) > strlen(found->file)))
            found = &values[i];
    return found;
}

bool any_wanted(enum setting first, enum setting last)
{
    return (asked & (UINT32_MAX >> (31 - last)) & (UINT32_MAX << first)) != 0;
}

bool by_file(void)
{
    return some_by_file;
}

void mark_applied(const struct value *value)
{
    __atomic_store_n(&outcomes[value->setting].applied, value, __ATOMIC_RELAXED);
}

bool is_applied(const struct value *value)
{
    return __atomic_load_n(&outcomes[value->setting].applied, __ATOMIC_RELAXED) == value;
}

/* Why the setting has no effect on some file or dataset. The first reason of each setting is kept. */
void mark_inert(enum setting setting, const char *format, ...)
{
    int none = 0;
    if (!__atomic_compare_exchange_n(&outcomes[setting].has_reason, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcomes[setting].reason, WARNING, format, arguments);
    va_end(arguments);
    __atomic_store_n(&outcomes[setting].has_reason, 2, __ATOMIC_RELEASE);
}

/* Why a setting without a reason of its own was not applied. */
static const char *default_reason(enum setting setting)
{
    if (setting >= FIRST_HINT)
        return "the program opened no file through MPI-IO, or libluthier_io_mpi.so was not preloaded";
    if (hdf5_is_static())
        return "HDF5 is linked statically into the program; link it dynamically (h5cc -shlib)";
    if (!hdf5_was_used())
        return "the program made no call of HDF5";
    if (setting == TRANSFER)
        return "no dataset was read or written through MPI-IO";
    if (setting == FILL_TIME || setting == ALLOC_TIME || setting == CHUNK)
        return "the program created no dataset";
    return "no file was opened that it holds for";
}

struct outcome outcome_of(enum setting setting)
{
    struct outcome outcome = {0};
    for (int i = 0; i < value_count; i++)
        if (values[i].setting == setting)
            outcome.asked = values[i].text;
    if (outcomes[setting].applied != NULL)
        outcome.applied = outcomes[setting].applied->text;
    if (outcome.asked == NULL)
        return outcome;
    if (__atomic_load_n(&outcomes[setting].has_reason, __ATOMIC_ACQUIRE) == 2)
        outcome.reason = outcomes[setting].reason;
    else
        outcome.reason = default_reason(setting);
    return outcome;
}

/* At the end: one warning for each setting that had no effect at all. */
void conclude_settings(void)
{
    static int concluded;
    if ((!hdf5_was_used() && !mpi_was_used()) || __atomic_exchange_n(&concluded, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (int i = 0; i < SETTINGS; i++) {
        struct outcome outcome = outcome_of((enum setting)i);
        if (outcome.asked != NULL && outcome.applied == NULL)
            warn("%s has no effect: %s", SETTING[i].name, outcome.reason);
    }
}
