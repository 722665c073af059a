/* fakeapp: a program that does nothing but read a file after a pattern, and tells how long that took.
 *
 * The patterns are those of the fakeapp of S. Robert's thesis (section 2.2.3, table 2.2): the file has a number of
 * leads, one in the middle of each of as many equal parts. Each lead in turn makes some reads (repeat) at random places
 * around it (scatter) and then moves on (advance); what leaves the file at its end comes in again at its start.
 *
 *     fakeapp --create 256M data                 write a data file, always the same bytes
 *     fakeapp --pattern b --operations 2000 data
 *
 * One line of JSON on stdout: seconds between the first read and the last, reads, bytes, and a checksum of the bytes in
 * the order they were read. The same options and seed on the same file give the same checksum, however it was read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "quantity.h"

#define MAX_BYTES (UINT64_C(1) << 50)
#define MAX_COUNT UINT64_C(1000000000)
#define MAX_LEADS UINT64_C(1000000)
#define MAX_READ (UINT64_C(1) << 30)
#define STEP_MS 20
#define QUIET_MS 160 /* throttled storage delivers in bursts, up to a tenth of a second apart */
#define LONGEST_REST_MS 10000

typedef unsigned long long ull; /* what printf can print */

struct range {
    uint64_t low, high;
};

struct pattern {
    uint64_t operations, leads, advance, compute_us, seed;
    struct range size, scatter, repeat;
    bool each_lead_once; /* every lead has one turn, and that is all (table 2.2, G) */
};

_Noreturn static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fakeapp: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

/* ---- the data file ---- */

/* splitmix64 (Steele, Lea, Flood 2014): the next number of a stream; also what makes the words of the data file. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void create(const char *path, uint64_t size)
{
    static uint64_t block[1 << 16];
    uint64_t state = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fail("%s: %s", path, strerror(errno));
    while (size > 0) {
        for (size_t i = 0; i < sizeof block / sizeof *block; i++)
            block[i] = next_random(&state);
        ssize_t put = write(fd, block, size < sizeof block ? size : sizeof block);
        if (put <= 0 || (put % (ssize_t)sizeof *block != 0 && (uint64_t)put != size))
            fail("%s: could not be written whole: %s", path, put < 0 ? strerror(errno) : "disk full?");
        size -= (uint64_t)put;
    }
    /* On disk at once, for the page cache drops only what has been written. */
    if (fsync(fd) != 0 || close(fd) != 0)
        fail("%s: %s", path, strerror(errno));
}

/* ---- reading ---- */

struct reader {
    const struct pattern *pattern;
    int fd;
    uint64_t file_size, random_state;
    unsigned char *buffer;
    uint64_t reads, bytes, checksum;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t draw(struct range range, uint64_t *state)
{
    return range.low + next_random(state) % (range.high - range.low + 1);
}

static void compute(uint64_t microseconds)
{
    if (microseconds > 0)
        for (double end = now() + (double)microseconds / 1e6; now() < end;)
            ;
}

/* The bytes are folded in eight at a time, so that checking costs little beside reading. */
static uint64_t add_to_checksum(uint64_t checksum, const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
        checksum = (checksum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        checksum ^= checksum >> 32;
    }
    return checksum;
}

static void read_at(struct reader *reader, uint64_t offset, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t got = pread(reader->fd, reader->buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            fail("read of %llu bytes at %llu: %s", (ull)size, (ull)offset,
                 got < 0 ? strerror(errno) : "the file became shorter");
        done += (uint64_t)got;
    }
    reader->checksum = add_to_checksum(reader->checksum, reader->buffer, size);
    reader->bytes += size;
    reader->reads++;
}

/* One read around a place: within the scatter, at a multiple of the smallest size, inside the file. */
static void read_around(struct reader *reader, uint64_t place, uint64_t scatter)
{
    const struct pattern *pattern = reader->pattern;
    uint64_t size = draw(pattern->size, &reader->random_state);
    uint64_t shift = draw((struct range){0, scatter}, &reader->random_state);
    uint64_t offset = (place + reader->file_size - scatter / 2 + shift) % reader->file_size;
    offset -= offset % pattern->size.low;
    if (offset > reader->file_size - size)
        offset = reader->file_size - size;
    read_at(reader, offset, size);
    compute(pattern->compute_us);
}

static void run(struct reader *reader)
{
    const struct pattern *pattern = reader->pattern;
    uint64_t *scatters = calloc(pattern->leads, sizeof *scatters);
    reader->buffer = malloc(pattern->size.high);
    if (reader->buffer == NULL || scatters == NULL)
        fail("not enough memory for %llu leads and reads of %llu bytes", (ull)pattern->leads, (ull)pattern->size.high);
    for (uint64_t lead = 0; lead < pattern->leads; lead++)
        scatters[lead] = draw(pattern->scatter, &reader->random_state);
    uint64_t part = reader->file_size / pattern->leads;
    uint64_t moved = 0;
    do {
        for (uint64_t lead = 0; lead < pattern->leads; lead++) {
            uint64_t place = (lead * part + part / 2 + moved) % reader->file_size;
            uint64_t reads = draw(pattern->repeat, &reader->random_state);
            for (; reads > 0 && reader->reads < pattern->operations; reads--)
                read_around(reader, place, scatters[lead]);
        }
        moved = (moved + pattern->advance) % reader->file_size;
    } while (reader->reads < pattern->operations && !pattern->each_lead_once);
    free(reader->buffer);
    free(scatters);
}

/* ---- the command line ---- */

static const char USAGE[] =
    "usage: fakeapp [options] FILE\n"
    "      --create SIZE       write FILE with SIZE bytes and end\n"
    "  -p, --pattern a|b|c|d   the options of a pattern; those given after it count (b)\n"
    "  -N, --operations N      reads in all\n"
    "  -w, --min-size SIZE     smallest read; offsets are multiples of it (4k)\n"
    "  -W, --max-size SIZE     largest read (4k)\n"
    "  -L, --leads N           hot spots\n"
    "  -S, --scatter SIZE      width of a hot spot\n"
    "  -g, --scatter-range SIZE:SIZE  the width of each hot spot by chance\n"
    "  -l, --advance SIZE      how far a lead moves on after its reads\n"
    "  -r, --repeat N          successive reads of a lead\n"
    "  -G, --repeat-range N:N  the reads of each lead by chance; every lead has one turn, whatever --operations says\n"
    "      --compute-us N      microseconds of work after each read (0)\n"
    "      --seed N            another seed, other places (1)\n"
    "      --rest-ms N         milliseconds to wait first, and on until nothing comes in any more, for storage that is\n"
    "                          still busy with earlier reads or allows bursts (0)\n"
    "      --warm              keep what the page cache holds of FILE; otherwise it is dropped first\n"
    "      --help\n";

enum { CREATE = 256, COMPUTE, SEED, REST, WARM, HELP };

static const struct option OPTIONS[] = {
    {"create", required_argument, NULL, CREATE},
    {"pattern", required_argument, NULL, 'p'},
    {"operations", required_argument, NULL, 'N'},
    {"min-size", required_argument, NULL, 'w'},
    {"max-size", required_argument, NULL, 'W'},
    {"leads", required_argument, NULL, 'L'},
    {"scatter", required_argument, NULL, 'S'},
    {"scatter-range", required_argument, NULL, 'g'},
    {"advance", required_argument, NULL, 'l'},
    {"repeat", required_argument, NULL, 'r'},
    {"repeat-range", required_argument, NULL, 'G'},
    {"compute-us", required_argument, NULL, COMPUTE},
    {"seed", required_argument, NULL, SEED},
    {"rest-ms", required_argument, NULL, REST},
    {"warm", no_argument, NULL, WARM},
    {"help", no_argument, NULL, HELP},
    {0},
};

static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high)
{
    uint64_t value;
    if (!parse_quantity(text, low, high, &value))
        fail("%s: '%s' is not a whole number from %llu to %llu (4096, 64k, 1M)", option, text, (ull)low, (ull)high);
    return value;
}

static struct range fixed(uint64_t value)
{
    return (struct range){value, value};
}

static struct range range_of(const char *option, const char *text, uint64_t low, uint64_t high)
{
    char first[32];
    const char *colon = strchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof first)
        fail("%s: '%s' is not LOW:HIGH", option, text);
    memcpy(first, text, (size_t)(colon - text));
    first[colon - text] = '\0';
    struct range range = {number(option, first, low, high), number(option, colon + 1, low, high)};
    if (range.low > range.high)
        fail("%s: low %s is above high %s; swap them", option, first, colon + 1);
    return range;
}

/* The four kinds of section 2.2.3, small enough for a file of 64 MiB or more. */
static struct pattern named_pattern(const char *name)
{
    struct pattern pattern = {.operations = 2000, .seed = 1, .size = fixed(4096), .repeat = fixed(1)};
    if (strcmp(name, "a") == 0) { /* the columns of a matrix stored by rows */
        pattern.leads = 4;
        pattern.advance = 64 << 10;
    } else if (strcmp(name, "b") == 0) { /* few wide hot spots that move */
        pattern.leads = 4;
        pattern.scatter = fixed(4 << 20);
        pattern.repeat = fixed(250);
        pattern.advance = 1 << 20;
    } else if (strcmp(name, "c") == 0) { /* many small hot spots, visited in turn */
        pattern.leads = 50;
        pattern.scatter = fixed(512 << 10);
    } else if (strcmp(name, "d") == 0) { /* hot spots of any width, each for a while */
        pattern.leads = 20;
        pattern.scatter = (struct range){64 << 10, 8 << 20};
        pattern.repeat = (struct range){20, 180};
        pattern.each_lead_once = true;
        pattern.operations = MAX_COUNT;
    } else {
        fail("--pattern: '%s' is none of a, b, c, d", name);
    }
    return pattern;
}

struct request {
    struct pattern pattern;
    uint64_t create_bytes; /* 0: read */
    uint64_t rest_ms;
    bool warm;
    const char *path;
};

static void set_option(struct request *request, int option, const char *text)
{
    struct pattern *pattern = &request->pattern;
    switch (option) {
    case CREATE: request->create_bytes = number("--create", text, 1, MAX_BYTES); break;
    case REST: request->rest_ms = number("--rest-ms", text, 0, 3600000); break;
    case WARM: request->warm = true; break;
    case 'p': *pattern = named_pattern(text); break;
    case 'N':
        pattern->operations = number("--operations", text, 1, MAX_COUNT);
        pattern->each_lead_once = false;
        break;
    case 'w': pattern->size.low = number("--min-size", text, 1, MAX_READ); break;
    case 'W': pattern->size.high = number("--max-size", text, 1, MAX_READ); break;
    case 'L': pattern->leads = number("--leads", text, 1, MAX_LEADS); break;
    case 'S': pattern->scatter = fixed(number("--scatter", text, 0, MAX_BYTES)); break;
    case 'g': pattern->scatter = range_of("--scatter-range", text, 0, MAX_BYTES); break;
    case 'l': pattern->advance = number("--advance", text, 0, MAX_BYTES); break;
    case 'r': pattern->repeat = fixed(number("--repeat", text, 1, MAX_COUNT)); break;
    case 'G':
        pattern->repeat = range_of("--repeat-range", text, 1, MAX_COUNT);
        pattern->each_lead_once = true;
        pattern->operations = MAX_COUNT;
        break;
    case COMPUTE: pattern->compute_us = number("--compute-us", text, 0, MAX_COUNT); break;
    case SEED: pattern->seed = number("--seed", text, 0, UINT64_MAX); break;
    case HELP: fputs(USAGE, stdout); exit(0);
    default: exit(2); /* getopt has said what is wrong */
    }
}

static struct request parse(int argc, char **argv)
{
    struct request request = {.pattern = named_pattern("b")};
    int option;
    while ((option = getopt_long(argc, argv, "p:N:w:W:L:S:g:l:r:G:", OPTIONS, NULL)) != -1)
        set_option(&request, option, optarg);
    if (argc - optind != 1)
        fail("one FILE is needed, %d came; see fakeapp --help", argc - optind);
    request.path = argv[optind];
    if (request.pattern.size.low > request.pattern.size.high)
        fail("--min-size %llu is above --max-size %llu", (ull)request.pattern.size.low, (ull)request.pattern.size.high);
    return request;
}

/* The size of the file, if the pattern fits into it. */
static uint64_t checked_size(int fd, const struct request *request)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        fail("%s: not a regular file", request->path);
    uint64_t size = (uint64_t)status.st_size;
    uint64_t largest = request->pattern.size.high, scatter = request->pattern.scatter.high;
    if (largest > size)
        fail("--max-size: %llu is more than the %llu bytes of %s", (ull)largest, (ull)size, request->path);
    if (scatter > size)
        fail("--scatter: %llu is more than the %llu bytes of %s", (ull)scatter, (ull)size, request->path);
    return size;
}

/* How many pages of the file the page cache holds; 0 where that cannot be told. */
static size_t cached_pages(int fd, uint64_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)((size + page - 1) / page), count = 0;
    unsigned char *held = malloc(pages);
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (held != NULL && map != MAP_FAILED && mincore(map, size, held) == 0)
        for (size_t at = 0; at < pages; at++)
            count += held[at] & 1;
    if (map != MAP_FAILED)
        munmap(map, size);
    free(held);
    return count;
}

/* Wait `rest_ms`, and on until nothing more comes in of what an earlier run had asked for: only what is there can be
 * dropped. A file system that keeps its pages for good is not waited for. */
static void rest(int fd, uint64_t size, const struct request *request)
{
    struct timespec step = {0, STEP_MS * 1000000};
    size_t held = 0;
    uint64_t waited_ms = 0, quiet_ms = 0;
    while (waited_ms < request->rest_ms || (quiet_ms < QUIET_MS && waited_ms < request->rest_ms + LONGEST_REST_MS)) {
        if (!request->warm)
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        nanosleep(&step, NULL);
        size_t holds = cached_pages(fd, size);
        quiet_ms = holds == held ? quiet_ms + STEP_MS : 0;
        held = holds;
        waited_ms += STEP_MS;
    }
}

int main(int argc, char **argv)
{
    struct request request = parse(argc, argv);
    if (request.create_bytes > 0) {
        create(request.path, request.create_bytes);
        return 0;
    }
    int fd = open(request.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail("%s: %s", request.path, strerror(errno));
    struct reader reader = {.pattern = &request.pattern, .fd = fd, .random_state = request.pattern.seed};
    reader.file_size = checked_size(fd, &request);
    if (request.rest_ms > 0)
        rest(fd, reader.file_size, &request);
    if (!request.warm)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    double start = now();
    run(&reader);
    printf("{\"seconds\": %.6f, \"reads\": %llu, \"bytes\": %llu, \"checksum\": \"%016llx\"}\n", now() - start,
           (ull)reader.reads, (ull)reader.bytes, (ull)reader.checksum);
    return fflush(stdout) == 0 ? 0 : 1;
}
