/* libsro.so: a prefetcher for small random reads, preloaded into unmodified programs.
 *
 * It follows the principle of the Small Read Optimizer (S. Robert, thesis, section 2.2): a file is divided into bins;
 * the last few reads of each file are remembered; once enough of them fall into one bin, the whole zone around the read
 * is loaded at once, in large requests, so that the next small reads there need not wait for the storage.
 *
 *     LD_PRELOAD=libsro.so SRO_PREFETCH_SIZE=4M ./program
 *
 *     SRO_SEQUENCE_LENGTH    how many of the last reads of a file are remembered       (100)
 *     SRO_DSC_BINSIZE        bytes of a bin                                            (1M)
 *     SRO_CLUSTER_THRESHOLD  reads in one bin, among those remembered, that trigger    (2)
 *     SRO_PREFETCH_SIZE      bytes of a zone                                           (20M)
 *     SRO_STATS              a file to which each process appends its counters as it exits
 *
 * Zones are loaded into the kernel's page cache by posix_fadvise, never into memory of our own. The program's calls go
 * to the C library unchanged, so that it reads what the kernel holds, whoever writes to the file. What this library
 * believes about a file is a guess that can cost time, never data: it may be wrong (two threads move a shared file
 * position, the kernel has dropped a zone again), and nothing has to be invalidated.
 *
 * read() may be called from signal handlers and by many threads. So nothing here allocates or waits after the start: a
 * file's record is guarded by a flag that is tried once, and a read that finds it taken goes unrecorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "quantity.h"

#define EXPORT __attribute__((visibility("default")))
#define FILES 256             /* files remembered at a time; one that hashes to a taken place takes it over */
#define ZONES 64              /* zones remembered as loaded, for each file */
#define REQUEST (128u * 1024) /* The kernel cuts a WILLNEED to the device's read-ahead, rarely set below 128 KiB. */

struct file {
    atomic_bool busy;
    bool used;
    dev_t device;
    ino_t inode;
    uint64_t next;         /* where the last read ended */
    uint64_t recorded;     /* reads recorded so far; the last sequence_length of them are in offsets */
    uint64_t loaded;       /* zones loaded so far; the last ZONES of them are in zones */
    uint64_t zones[ZONES]; /* numbered from 1, so that the 0 of an unused place is no zone */
    uint64_t *offsets;
};

static struct file files[FILES];
static atomic_bool active; /* set once, before main() */
static uint64_t sequence_length = 100, bin_size = 1 << 20, cluster_threshold = 2, prefetch_size = 20 << 20;

/* What SRO_STATS tells; see the table in docs/sro.md. */
static atomic_uint_fast64_t reads, sequential, covered, loads, loaded_bytes;
static char stats_path[PATH_MAX]; /* a copy: programs may overwrite their environment */

/* ---- loading ---- */

/* Ask for the zone, in pieces that the kernel does not cut. It queues them and goes on while its queue has room. */
static void load(int fd, uint64_t zone, uint64_t file_size)
{
    if (fcntl(fd, F_GETFL) & O_DIRECT) /* such reads pass the page cache by */
        return;
    uint64_t start = zone * prefetch_size;
    uint64_t end = file_size - start < prefetch_size ? file_size : start + prefetch_size;
    for (uint64_t at = start; at < end; at += REQUEST) {
        uint64_t length = end - at < REQUEST ? end - at : REQUEST;
        if (posix_fadvise64(fd, (off64_t)at, (off64_t)length, POSIX_FADV_WILLNEED) != 0)
            return;
    }
    atomic_fetch_add_explicit(&loads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&loaded_bytes, end - start, memory_order_relaxed);
}

/* ---- deciding ---- */

static bool is_loaded(const struct file *file, uint64_t zone)
{
    for (int i = 0; i < ZONES; i++)
        if (file->zones[i] == zone + 1)
            return true;
    return false;
}

/* How many of the remembered reads start in the bin of this offset. */
static uint64_t reads_in_bin(const struct file *file, uint64_t offset)
{
    uint64_t kept = file->recorded < sequence_length ? file->recorded : sequence_length;
    uint64_t bin_start = offset - offset % bin_size;
    uint64_t count = 0;
    for (uint64_t i = 0; i < kept; i++)
        count += file->offsets[i] - bin_start < bin_size; /* unsigned: offsets before the bin become huge */
    return count;
}

/* Record one read of a file whose record is ours; true if the zone it starts in should be loaded now. */
static bool record(struct file *file, uint64_t offset, uint64_t size)
{
    bool in_sequence = offset == file->next;
    file->next = offset + size;
    if (in_sequence) { /* the kernel's own read-ahead sees to these */
        atomic_fetch_add_explicit(&sequential, 1, memory_order_relaxed);
        return false;
    }
    file->offsets[file->recorded++ % sequence_length] = offset;
    uint64_t zone = offset / prefetch_size;
    if (is_loaded(file, zone)) {
        atomic_fetch_add_explicit(&covered, 1, memory_order_relaxed);
        return false;
    }
    if (reads_in_bin(file, offset) < cluster_threshold)
        return false;
    file->zones[file->loaded++ % ZONES] = zone + 1;
    return true;
}

/* The place of a file in the table, emptied if another file had it. The caller holds its flag. */
static void claim(struct file *file, const struct stat *status)
{
    if (file->used && file->device == status->st_dev && file->inode == status->st_ino)
        return;
    file->used = true;
    file->device = status->st_dev;
    file->inode = status->st_ino;
    file->next = file->recorded = file->loaded = 0;
    memset(file->zones, 0, sizeof file->zones);
}

/* After a read of `size` bytes at `offset`. Which file a descriptor stands for is asked anew each time: that is cheaper
 * than it is to follow every way to open, copy, inherit and close one, and it cannot be out of date. */
static void observe(int fd, off64_t offset, ssize_t size)
{
    if (!active || size <= 0 || offset < 0 || (uint64_t)size >= bin_size)
        return;
    int saved = errno;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)offset < (uint64_t)status.st_size) {
        atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed);
        struct file *file = &files[((uint64_t)status.st_ino * 31 + (uint64_t)status.st_dev) % FILES];
        if (!atomic_exchange_explicit(&file->busy, true, memory_order_acquire)) {
            claim(file, &status);
            bool wanted = record(file, (uint64_t)offset, (uint64_t)size);
            atomic_store_explicit(&file->busy, false, memory_order_release);
            if (wanted)
                load(fd, (uint64_t)offset / prefetch_size, (uint64_t)status.st_size);
        }
    }
    errno = saved;
}

/* The same after a read at the file position, which has moved past what was read. Pipes have none: -1, and no more. */
static void observe_at_position(int fd, ssize_t size)
{
    if (!active || size <= 0 || (uint64_t)size >= bin_size)
        return;
    int saved = errno;
    off64_t position = lseek64(fd, 0, SEEK_CUR);
    errno = saved;
    observe(fd, position - size, size);
}

/* ---- the intercepted calls ---- */

/* Where each call goes on to. They are all looked up at the start, for dlsym() is not for signal handlers; only a
 * library that reads before our constructor has run makes a call look for itself. */
enum call {
    READ, READV, PREAD, PREAD64, PREADV, PREADV64, PREADV2, PREADV64V2, READ_CHK, PREAD_CHK, PREAD64_CHK, CALLS
};
static const char *const NAMES[CALLS] = {
    [READ] = "read",
    [READV] = "readv",
    [PREAD] = "pread",
    [PREAD64] = "pread64",
    [PREADV] = "preadv",
    [PREADV64] = "preadv64",
    [PREADV2] = "preadv2",
    [PREADV64V2] = "preadv64v2",
    [READ_CHK] = "__read_chk",
    [PREAD_CHK] = "__pread_chk",
    [PREAD64_CHK] = "__pread64_chk",
};
static _Atomic(void *) found[CALLS];

static void *next(enum call call)
{
    void *function = atomic_load_explicit(&found[call], memory_order_relaxed);
    if (function == NULL) {
        int saved = errno;
        function = dlsym(RTLD_NEXT, NAMES[call]);
        atomic_store_explicit(&found[call], function, memory_order_relaxed);
        errno = saved;
    }
    return function;
}

#define CALL_NEXT(call, name, ...) \
    (next(call) != NULL ? ((__typeof__(&name))next(call))(__VA_ARGS__) : (errno = ENOSYS, (ssize_t)-1))

/* Programs built with _FORTIFY_SOURCE call these; the headers do not declare them to everybody. */
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    ssize_t got = CALL_NEXT(READ, read, fd, buffer, size);
    observe_at_position(fd, got);
    return got;
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    ssize_t got = CALL_NEXT(READV, readv, fd, parts, count);
    observe_at_position(fd, got);
    return got;
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t got = CALL_NEXT(PREAD, pread, fd, buffer, size, offset);
    observe(fd, offset, got);
    return got;
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
    ssize_t got = CALL_NEXT(PREAD64, pread64, fd, buffer, size, offset);
    observe(fd, offset, got);
    return got;
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t got = CALL_NEXT(PREADV, preadv, fd, parts, count, offset);
    observe(fd, offset, got);
    return got;
}

EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    ssize_t got = CALL_NEXT(PREADV64, preadv64, fd, parts, count, offset);
    observe(fd, offset, got);
    return got;
}

/* These read at the file position if the offset is -1. */
EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    ssize_t got = CALL_NEXT(PREADV2, preadv2, fd, parts, count, offset, flags);
    if (offset == -1)
        observe_at_position(fd, got);
    else
        observe(fd, offset, got);
    return got;
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    ssize_t got = CALL_NEXT(PREADV64V2, preadv64v2, fd, parts, count, offset, flags);
    if (offset == -1)
        observe_at_position(fd, got);
    else
        observe(fd, offset, got);
    return got;
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    ssize_t got = CALL_NEXT(READ_CHK, __read_chk, fd, buffer, size, room);
    observe_at_position(fd, got);
    return got;
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room)
{
    ssize_t got = CALL_NEXT(PREAD_CHK, __pread_chk, fd, buffer, size, offset, room);
    observe(fd, offset, got);
    return got;
}

EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room)
{
    ssize_t got = CALL_NEXT(PREAD64_CHK, __pread64_chk, fd, buffer, size, offset, room);
    observe(fd, offset, got);
    return got;
}

/* ---- start and end ---- */

/* False, and one line on stderr, if the variable is set to something that is no number in its range. */
static bool set(const char *name, uint64_t high, uint64_t *value)
{
    const char *text = getenv(name);
    if (text == NULL || parse_quantity(text, 1, high, value))
        return true;
    size_t length = strcspn(text, "\n");
    dprintf(STDERR_FILENO,
            "libsro: %s: '%.*s' is not a whole number from 1 to %llu (4096, 64k, 1M); prefetching is off\n",
            name, (int)(length < 40 ? length : 40), text, (unsigned long long)high);
    return false;
}

static bool set_all(void)
{
    const uint64_t largest = UINT64_C(1) << 40;
    return set("SRO_SEQUENCE_LENGTH", 100000, &sequence_length) && set("SRO_DSC_BINSIZE", largest, &bin_size)
           && set("SRO_CLUSTER_THRESHOLD", 100000, &cluster_threshold)
           && set("SRO_PREFETCH_SIZE", largest, &prefetch_size);
}

/* A forked child starts afresh: a thread that is not there any more may have been in the middle of a record. Places
 * that were never used are left alone, for to write to a page is to copy it. */
static void start_afresh(void)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].used || files[i].busy)
            files[i].used = files[i].busy = false;
    reads = sequential = covered = loads = loaded_bytes = 0;
}

__attribute__((constructor)) static void start(void)
{
    int saved = errno;
    for (int call = 0; call < CALLS; call++)
        next((enum call)call);
    const char *path = getenv("SRO_STATS");
    if (path != NULL && strlen(path) < sizeof stats_path)
        strcpy(stats_path, path);
    if (set_all() && pthread_atfork(NULL, NULL, start_afresh) == 0) {
        /* Address space only: a page is taken when a file first needs it. */
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        size_t length = FILES * sequence_length * sizeof(uint64_t);
        uint64_t *offsets = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);
        for (uint64_t i = 0; i < FILES && offsets != MAP_FAILED; i++)
            files[i].offsets = offsets + i * sequence_length;
        active = offsets != MAP_FAILED;
    }
    errno = saved;
}

/* One line for each process, written in one piece so that those of several processes do not mix. */
__attribute__((destructor)) static void finish(void)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = active && *stats_path != '\0' ? open(stats_path, flags, 0666) : -1;
    if (fd < 0)
        return;
    char line[256];
    int length = snprintf(line, sizeof line,
        "{\"pid\": %ld, \"reads\": %llu, \"sequential\": %llu, \"covered\": %llu, "
        "\"loads\": %llu, \"loaded_bytes\": %llu}\n",
        (long)getpid(), (unsigned long long)reads, (unsigned long long)sequential, (unsigned long long)covered,
        (unsigned long long)loads, (unsigned long long)loaded_bytes);
    if (write(fd, line, (size_t)length) < 0) {
        /* Nobody is left to be told. */
    }
    close(fd);
}
