/* What the files of libluthier_io.so share. docs/io.md describes the library for its users.
 *
 * The wrapped calls may come from signal handlers, from many threads, before main() and while the process ends. So
 * after the start nothing here allocates memory or waits for a lock: counters are added to atomically, the tables of
 * files have a fixed size, and the report is formatted without the C library's stdio. */
#ifndef LUTHIER_IO_H
#define LUTHIER_IO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec"))) /* needs no memory at first use */

/* ---- counters (counters.c) ---- */

enum layer { POSIX, MPIIO, HDF5, LAYERS };
enum { SIZE_BUCKETS = 10, LISTED_FILES = 1000 };

/* Numbers that one call changes are beside each other, so that it touches few lines of the processor's cache. */
struct tally {
    uint64_t reads, read_bytes, read_ns, next_read, sequential_reads, collective_reads, read_sizes[SIZE_BUCKETS];
    uint64_t writes, write_bytes, write_ns, next_write, sequential_writes, collective_writes, smallest_write,
        largest_write, write_sizes[SIZE_BUCKETS];
    uint64_t opens, other_ns, seeks, syncs, datasets;
}; /* next_read, next_write: where the last read and the last write ended */

/* Operations as they are summed up in digests. DETAIL is no operation of its own, but something about the next one. */
enum operation { OPENED, CLOSED, READ, WRITTEN, SOUGHT, SYNCED, DETAIL };

/* `order` depends on the order of operations, `sum` does not. */
struct digest {
    uint64_t order, sum;
};

struct file {
    struct tally tally __attribute__((aligned(64)));
    struct digest digest;
    enum layer layer;
    int number;    /* of the files that take part in the digest of the process, in the order they came; -1 for others */
    bool filled;   /* set last */
    bool parallel; /* opened through MPI-IO by HDF5 */
    uint64_t loop_bytes, buffered; /* written in a reduced loop; in the buffer of its stream when the loop began */
    double loop_factor;            /* of that loop */
    uint64_t last;                 /* the last operation */
    uint64_t loop_reads;           /* in that loop, and before the first one */
    int loop_writer;               /* the loop that wrote; -1 if several did, or another one read */
    uint64_t hash;
    char path[PATH_MAX];
};

extern bool counting; /* set once, before main() */
extern char __libc_single_threaded __attribute__((weak));

static inline uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void add(uint64_t *counter, uint64_t amount)
{
    if (&__libc_single_threaded != NULL && __libc_single_threaded)
        *counter += amount;
    else
        __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static inline uint64_t get(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void set(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

bool tables_made(void);
struct file *file_named(enum layer layer, const char *path); /* never NULL: files beyond the limit share one record */
int files_listed(void);
struct file *known_file(enum layer layer, const char *path); /* NULL if it was not used yet */
struct file *file_at(int number);                            /* NULL while another thread fills it */
struct file *rest_of(enum layer layer);                      /* the record that such files share */
void count_read(struct file *file, int64_t offset, ssize_t got, uint64_t start_ns);
void count_write(struct file *file, int64_t offset, ssize_t got, uint64_t start_ns);
void count_other(struct file *file, uint64_t start_ns);
void note(struct file *file, enum operation operation, int64_t offset, uint64_t size); /* adds to the digests */
const struct digest *process_digest(void);
bool threads_seen(void); /* operations came from several threads: their order means nothing */
void clear_counters(void);
bool is_used(const struct tally *tally);
bool anything_counted(void);
void absolute_path(const char *path, char *buffer, size_t size);
bool is_system(const char *path); /* not a file of the program */

/* Files behind descriptors (descriptors.c). */
struct file *file_of(int fd); /* NULL: not counted (no regular file, or counting is off) */
struct file *known_file_of(int fd); /* NULL also if fd was not used yet */
void forget(int first, int last);
int64_t advance(int fd, ssize_t size); /* moves the known position of fd; returns where it was */
void set_position(int fd, int64_t position);
void note_open(int fd, uint64_t start_ns); /* wrap_posix.c */
int64_t kernel_position(int fd);
ssize_t plain_write(int fd, const void *data, size_t size);

/* ---- settings (settings.c, xml.c) ---- */

enum setting {
    ALIGNMENT_THRESHOLD, ALIGNMENT, SIEVE_BUFFER, CHUNK, CHUNK_CACHE_BYTES, CHUNK_CACHE_SLOTS, CHUNK_CACHE_W0,
    METADATA_BLOCK, METADATA_CACHE, FILL_TIME, ALLOC_TIME, COLLECTIVE_METADATA, TRANSFER,
    CB_NODES, CB_BUFFER_SIZE, ROMIO_DS_READ, ROMIO_DS_WRITE, ROMIO_CB_READ, ROMIO_CB_WRITE,
    STRIPING_FACTOR, STRIPING_UNIT, SETTINGS
};
#define FIRST_HINT CB_NODES /* this and the following are hints of MPI-IO, the others properties of HDF5 */
enum { DIMENSIONS = 32, VALUES = 64, TEXT = 80, WARNINGS = 32, WARNING = 300 };

struct value {
    enum setting setting;
    char text[TEXT]; /* as it was given */
    char file[256];  /* only files whose names end so; "" for all */
    uint64_t number; /* of a word: which of the words that are allowed */
    double fraction;
    int rank;
    uint64_t shape[DIMENSIONS];
};

void read_settings(void);
void take_setting(const char *name, const char *text, const char *file);
void read_xml(const char *path);
const char *setting_name(enum setting setting);
extern uint32_t asked; /* a bit for each setting that has a value: calls ask for many that have none */
_Static_assert(SETTINGS <= 32, "a bit for each setting");
const struct value *find_wanted(enum setting setting, const char *path);
static inline const struct value *wanted(enum setting setting, const char *path) /* NULL: not asked for */
{
    return (asked >> setting & 1) != 0 ? find_wanted(setting, path) : NULL;
}
bool any_wanted(enum setting first, enum setting last);
bool by_file(void); /* some setting holds for certain files only */
void mark_applied(const struct value *value);
bool is_applied(const struct value *value); /* and no other value of the setting since */
void mark_inert(enum setting setting, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void conclude_settings(void);
void print_warnings(void); /* those kept back so far, and from now on each at once */
void remember_stderr(void);

struct outcome {
    const char *asked, *applied, *reason; /* texts; asked and applied are NULL if it was not */
};
struct outcome outcome_of(enum setting setting);
int warnings_kept(void);
const char *warning_at(int number);
const char *unknown_at(int number); /* NULL after the last */

/* ---- files in memory (memory.c) ---- */

void start_memory(void);
const char *original_path(const char *path); /* what a path in the memory folder stands for */

/* ---- loops of reduced kernels (loops.c) ---- */

struct loop_counts {
    uint64_t layer[LAYERS][3]; /* operations, bytes read, bytes written */
    uint64_t marks[LAYERS];    /* change with every operation, closing included; of an iteration: 1 if they did */
};
struct loop_record {
    uint64_t entries, iterations, pattern; /* iterations of the first entry, and which of them made I/O */
    int outer, last;                       /* the loop around it, 0 if there is none; its last run */
    bool is_same, overflown;               /* every entry makes I/O in the same iterations; more runs than are recorded */
};
struct loop_run { /* iterations of the first entry: first, first + stride, ... each did `done` */
    int loop;
    uint64_t first, stride, count;
    struct loop_counts done;
};
#define LOOP_CALL "luthier:"
enum { LOOP_MODE = 0x6c70 };       /* of access(): an event of a loop, not a file */
void loop_event(const char *text); /* errno may change */
void start_loops(void);
void clear_loops(void);
bool deferred_begins(const struct file *file); /* a call of HDF5 that may write what a loop left; then: */
void deferred_ends(struct file *file);
void late_time(struct file *file, uint64_t elapsed_ns); /* the system writes when it closes or flushes what a loop left */
struct tally scaled(int number, const struct tally *counted);
double factor_of_loop(int number); /* 0: it did not run, or is whole; -1: no such number */
const struct loop_record *loop_at(int number); /* NULL after the last */
const struct loop_run *loop_run_at(int number);
void put_factors(void); /* loops_report.c: into the report */
void put_loops(void);
void each_stream(void (*visit)(struct file *file, size_t output, size_t room)); /* wrap_stdio.c: with output in its buffer */
void stream_before_loop(struct file *file, size_t output, size_t room);
void stream_in_loop(struct file *file, size_t output, size_t room);

/* ---- report (report.c) ---- */

void start_library(void); /* once: by the constructor, or by that of libluthier_io_mpi.so */
void start_report(void);
void write_report(bool even_if_empty); /* safe in signal handlers */
bool is_first_rank(void);              /* of an MPI program; true without MPI */
const char *count_folder(void);        /* "" without counting */
bool is_own_process(void);             /* false in a child made by vfork() */

/* ---- the parts that wrap calls ---- */

void find_posix(void);
void find_stdio(void);
void find_process(void);
void find_hdf5_work(void);
void count_streams_at_exit(void);
void catch_fatal_signals(void);
bool hdf5_was_used(void);
bool mpi_was_used(void);
bool hdf5_is_static(void);

/* What libluthier_io_mpi.so uses of this library. */
struct luthier_io {
    int version;
    bool counting;
    struct file *(*file_named)(enum layer, const char *);
    void (*absolute_path)(const char *, char *, size_t);
    const struct value *(*wanted)(enum setting, const char *);
    const char *(*setting_name)(enum setting);
    bool (*any_wanted)(enum setting, enum setting);
    void (*mark_applied)(const struct value *);
    void (*mark_inert)(enum setting, const char *, ...);
    void (*used_mpi)(void);
    void (*count_read)(struct file *, int64_t, ssize_t, uint64_t);
    void (*count_write)(struct file *, int64_t, ssize_t, uint64_t);
    void (*count_other)(struct file *, uint64_t);
    void (*note)(struct file *, enum operation, int64_t, uint64_t);
    void (*conclude)(void); /* warnings and report */
};
EXPORT const struct luthier_io *luthier_io_interface(void);

#endif
