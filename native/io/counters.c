/* One record of counters for each file and layer. The totals of a layer are summed up when the report is written. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 2048 };

bool counting;
static struct file *files;        /* the first LISTED_FILES, in the order they came; memory is taken as it is used */
static int listed;                /* may be larger than LISTED_FILES */
static int places[PLACES];        /* hashed by layer and path: the number of the file in files, from 1; 0 if empty */
static struct file rests[LAYERS]; /* all other files */
static int numbered;              /* files with a number */
static struct digest whole;       /* of all operations on files with a number */
static uint64_t first_thread;     /* that made such an operation: an address that no other thread has */
static uint64_t other_threads;
static THREAD_LOCAL char thread_mark;

bool tables_made(void)
{
    if (files == NULL) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *memory = mmap(NULL, LISTED_FILES * sizeof *files, PROT_READ | PROT_WRITE, flags, -1, 0);
        files = memory == MAP_FAILED ? NULL : memory;
    }
    return files != NULL;
}

int files_listed(void)
{
    int count = __atomic_load_n(&listed, __ATOMIC_RELAXED);
    return files == NULL ? 0 : count < LISTED_FILES ? count : LISTED_FILES;
}

struct file *file_at(int number)
{
    return __atomic_load_n(&files[number].filled, __ATOMIC_ACQUIRE) ? &files[number] : NULL;
}

struct file *rest_of(enum layer layer)
{
    return &rests[layer];
}

static uint64_t hash_of(enum layer layer, const char *path)
{
    uint64_t hash = 1469598103934665603u + (uint64_t)layer;
    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211u;
    return hash;
}

static bool is_same(const struct file *file, enum layer layer, uint64_t hash, const char *path)
{
    return file->hash == hash && file->layer == layer && strcmp(file->path, path) == 0;
}

/* Files that are not the program's own: those of the system, and what an MPI library keeps for its processes. Programs do
 * not decide which of them are used, and when. */
bool is_system(const char *path)
{
    static const char *const STARTS[] = {"/etc/", "/usr/", "/lib", "/dev/", "/proc/", "/sys/", "/run/", "/var/lib/"};
    static const char *const PARTS[] = {"/ompi.", "/openmpi-sessions-", "/pmix-", "/pmix_", "/prte.", "/hydra_"};
    for (size_t i = 0; i < sizeof STARTS / sizeof *STARTS; i++)
        if (strncmp(path, STARTS[i], strlen(STARTS[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (strstr(path, PARTS[i]) != NULL)
            return true;
    return false;
}

/* A new record, or NULL if there are too many. */
static struct file *add_file(enum layer layer, uint64_t hash, const char *path)
{
    if (__atomic_load_n(&listed, __ATOMIC_RELAXED) >= LISTED_FILES)
        return NULL;
    int number = __atomic_fetch_add(&listed, 1, __ATOMIC_RELAXED);
    if (number >= LISTED_FILES)
        return NULL;
    struct file *file = &files[number];
    file->layer = layer;
    file->hash = hash;
    file->number = is_system(path) ? -1 : __atomic_fetch_add(&numbered, 1, __ATOMIC_RELAXED);
    strcpy(file->path, path);
    __atomic_store_n(&file->filled, true, __ATOMIC_RELEASE);
    return file;
}

struct file *file_named(enum layer layer, const char *path)
{
    uint64_t hash = hash_of(layer, path);
    struct file *added = NULL;
    if (files == NULL || strlen(path) >= sizeof files->path)
        return &rests[layer];
    for (uint64_t i = 0; i < PLACES; i++) {
        int *place = &places[(hash + i) % PLACES], number = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (number == 0) {
            if (added == NULL && (added = add_file(layer, hash, path)) == NULL)
                break;
            if (__atomic_compare_exchange_n(place, &number, (int)(added - files) + 1, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return added;
        }
        /* If another thread was faster to add the same file, the record added here stays unused. */
        if (is_same(&files[number - 1], layer, hash, path))
            return &files[number - 1];
    }
    return &rests[layer];
}

struct file *known_file(enum layer layer, const char *path)
{
    uint64_t hash = hash_of(layer, path);
    for (uint64_t i = 0; files != NULL && i < PLACES; i++) {
        int number = __atomic_load_n(&places[(hash + i) % PLACES], __ATOMIC_ACQUIRE);
        if (number == 0 || is_same(&files[number - 1], layer, hash, path))
            return number == 0 ? NULL : &files[number - 1];
    }
    return NULL;
}

/* ---- counting ---- */

/* Upper bounds of the buckets of sizes: 100, 1k, 10k, 100k, 1M, 4M, 10M, 100M, 1G, more. */
static int bucket_of(uint64_t size)
{
    static const uint64_t LIMITS[SIZE_BUCKETS - 1] = {100,     1000,     10000,     100000,    1000000,
                                                      4000000, 10000000, 100000000, 1000000000};
    int bucket = 0;
    while (bucket < SIZE_BUCKETS - 1 && size > LIMITS[bucket])
        bucket++;
    return bucket;
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of the number. */
static uint64_t mixed(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static void extend(struct digest *digest, uint64_t word)
{
    add(&digest->sum, word);
    set(&digest->order, (get(&digest->order) + word) * 0x9e3779b97f4a7c15u ^ (get(&digest->order) >> 29));
}

void note(struct file *file, enum operation operation, int64_t offset, uint64_t size)
{
    uint64_t word = mixed(mixed((uint64_t)offset + 0x9e3779b97f4a7c15u) + (size << 3) + (uint64_t)operation);
    uint64_t thread = (uint64_t)(uintptr_t)&thread_mark, nobody = 0;
    extend(&file->digest, word);
    set(&file->last, operation);
    if (file->number < 0)
        return;
    extend(&whole, mixed(word + (uint64_t)file->number));
    if (get(&first_thread) != thread
        && !__atomic_compare_exchange_n(&first_thread, &nobody, thread, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        set(&other_threads, 1);
}

const struct digest *process_digest(void)
{
    return &whole;
}

bool threads_seen(void)
{
    return get(&other_threads) != 0;
}

void count_other(struct file *file, uint64_t start_ns)
{
    uint64_t elapsed = now_ns() - start_ns;
    add(&file->tally.other_ns, elapsed);
    if (file->loop_bytes > 0 && file->layer != HDF5 && (get(&file->last) == CLOSED || get(&file->last) == SYNCED))
        late_time(file, elapsed);
}

void count_read(struct file *file, int64_t offset, ssize_t got, uint64_t start_ns)
{
    struct tally *tally = &file->tally;
    add(&tally->read_ns, now_ns() - start_ns);
    if (got < 0)
        return;
    note(file, READ, offset, (uint64_t)got);
    add(&tally->reads, 1);
    add(&tally->read_bytes, (uint64_t)got);
    add(&tally->read_sizes[bucket_of((uint64_t)got)], 1);
    if (offset < 0)
        return;
    if ((uint64_t)offset == get(&tally->next_read))
        add(&tally->sequential_reads, 1);
    set(&tally->next_read, (uint64_t)offset + (uint64_t)got);
}

void count_write(struct file *file, int64_t offset, ssize_t got, uint64_t start_ns)
{
    struct tally *tally = &file->tally;
    add(&tally->write_ns, now_ns() - start_ns);
    if (got < 0)
        return;
    uint64_t size = (uint64_t)got;
    note(file, WRITTEN, offset, size);
    add(&tally->writes, 1);
    add(&tally->write_bytes, size);
    add(&tally->write_sizes[bucket_of(size)], 1);
    if (get(&tally->writes) == 1 || size < get(&tally->smallest_write))
        set(&tally->smallest_write, size);
    if (size > get(&tally->largest_write))
        set(&tally->largest_write, size);
    if (offset < 0)
        return;
    if ((uint64_t)offset == get(&tally->next_write))
        add(&tally->sequential_writes, 1);
    set(&tally->next_write, (uint64_t)offset + size);
}

/* In a forked child: it counts its own operations. Records stay, for descriptors refer to them. */
void clear_counters(void)
{
    whole = (struct digest){0};
    first_thread = other_threads = 0;
    for (int layer = 0; layer < LAYERS; layer++)
        memset(&rests[layer].tally, 0, sizeof rests[layer].tally);
    for (int number = 0; number < files_listed(); number++) {
        struct file *file = file_at(number);
        if (file != NULL) {
            memset(&file->tally, 0, sizeof file->tally);
            file->digest = (struct digest){0};
        }
    }
}

bool is_used(const struct tally *tally)
{
    return tally->opens + tally->reads + tally->writes + tally->seeks + tally->syncs + tally->datasets > 0;
}

bool anything_counted(void)
{
    for (int layer = 0; layer < LAYERS; layer++)
        if (is_used(&rests[layer].tally))
            return true;
    for (int number = 0; number < files_listed(); number++) {
        struct file *file = file_at(number);
        if (file != NULL && is_used(&file->tally))
            return true;
    }
    return false;
}

/* The path with the current folder before it where it is relative. Symbolic links stay as they are. */
void absolute_path(const char *path, char *buffer, size_t size)
{
    int saved = errno;
    size_t length = 0;
    if (*path != '/' && getcwd(buffer, size) != NULL) {
        while (path[0] == '.' && path[1] == '/')
            path += 2;
        length = strlen(buffer);
        if (length > 0 && length + 1 < size && buffer[length - 1] != '/')
            buffer[length++] = '/';
    }
    size_t rest = strlen(path);
    if (length + rest >= size)
        rest = size - length - 1;
    memcpy(buffer + length, path, rest);
    buffer[length + rest] = '\0';
    errno = saved;
}
