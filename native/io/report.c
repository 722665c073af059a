/* The counters as JSON, one file for each process; also in _exit(), before exec() and in a signal handler. */
#define _GNU_SOURCE
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NAMES = 10000 };

static char folder[PATH_MAX], program[PATH_MAX], host[256];
static char own_name[PATH_MAX]; /* chosen when the report is first written */
static uint64_t start_ns;
static long rank, ranks = 1;
static pid_t owner;
static bool is_forked;

static long number_in(const char *const *names, long otherwise)
{
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text != NULL && *text >= '0' && *text <= '9')
            return strtol(text, NULL, 10);
    }
    return otherwise;
}

bool is_first_rank(void)
{
    static const char *const RANK[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
    return (rank = number_in(RANK, 0)) == 0;
}

const char *count_folder(void)
{
    return folder;
}

bool is_own_process(void)
{
    return getpid() == owner;
}

/* ---- content ---- */

static void put_tally(enum layer layer, const struct tally *tally)
{
    put("\"opens\": ");
    put_number(tally->opens);
    put_field("reads", tally->reads);
    put_field("writes", tally->writes);
    put_field("read_bytes", tally->read_bytes);
    put_field("write_bytes", tally->write_bytes);
    put_time("read_s", tally->read_ns);
    put_time("write_s", tally->write_ns);
    put_time("other_s", tally->other_ns);
    put_field("seeks", tally->seeks);
    put_field("syncs", tally->syncs);
    put_field("sequential_reads", tally->sequential_reads);
    put_field("sequential_writes", tally->sequential_writes);
    put_field("smallest_write", tally->smallest_write);
    put_field("largest_write", tally->largest_write);
    if (layer != POSIX) {
        put_field("collective_reads", tally->collective_reads);
        put_field("collective_writes", tally->collective_writes);
        put_field("independent_reads", tally->reads - tally->collective_reads);
        put_field("independent_writes", tally->writes - tally->collective_writes);
    }
    if (layer == HDF5)
        put_field("datasets", tally->datasets);
    put_sizes("read_sizes", tally->read_sizes);
    put_sizes("write_sizes", tally->write_sizes);
}

static void sum_up(struct tally *total, const struct tally *one)
{
    uint64_t smallest = total->smallest_write, largest = total->largest_write;
    if (one->writes > 0 && (total->writes == 0 || one->smallest_write < smallest))
        smallest = one->smallest_write;
    if (one->largest_write > largest)
        largest = one->largest_write;
    uint64_t *sums = (uint64_t *)total;
    const uint64_t *counts = (const uint64_t *)one;
    for (size_t i = 0; i < sizeof *total / sizeof *sums; i++)
        sums[i] += counts[i];
    total->smallest_write = smallest;
    total->largest_write = largest;
}

static const char *const LAYER[LAYERS] = {"posix", "mpiio", "hdf5"};

static void put_layers(void)
{
    put(", \"layers\": {");
    for (int layer = 0; layer < LAYERS; layer++) {
        struct tally total = scaled(-1 - layer, &rest_of((enum layer)layer)->tally);
        for (int number = 0; number < files_listed(); number++) {
            const struct file *file = file_at(number);
            if (file != NULL && file->layer == (enum layer)layer) {
                struct tally whole = scaled(number, &file->tally);
                sum_up(&total, &whole);
            }
        }
        put(layer > 0 ? ", \"" : "\"");
        put(LAYER[layer]);
        put("\": {");
        put_tally((enum layer)layer, &total);
        put("}");
    }
    put("}");
}

static void put_files(void)
{
    bool first = true;
    put(", \"files\": [");
    for (int number = 0; number < files_listed(); number++) {
        const struct file *file = file_at(number);
        if (file == NULL || !is_used(&file->tally))
            continue;
        put(first ? "{\"path\": " : ", {\"path\": ");
        put_string(file->path);
        put(", \"layer\": \"");
        put(LAYER[file->layer]);
        put("\", ");
        struct tally whole = scaled(number, &file->tally);
        put_tally(file->layer, &whole);
        put_hexadecimal("order", file->digest.order);
        put_hexadecimal("operations", file->digest.sum);
        put(file->loop_bytes > 0 ? ", \"shortened\": true" : ""); /* written in a loop that was left early */
        if (file->loop_bytes > 0 && (file->tally.reads > file->loop_reads || file->loop_writer < 0))
            put(", \"reread\": true"); /* read after, or outside of, the loop that wrote it and was left early */
        put(file->number < 0 ? ", \"system\": true}" : "}");
        first = false;
    }
    put("]");
}

static bool rests_used(void)
{
    for (int layer = 0; layer < LAYERS; layer++)
        if (is_used(&rest_of((enum layer)layer)->tally))
            return true;
    return false;
}

static void put_outcomes(bool applied)
{
    bool first = true;
    for (int setting = 0; setting < SETTINGS; setting++) {
        struct outcome outcome = outcome_of((enum setting)setting);
        if (outcome.asked == NULL || (outcome.applied != NULL) != applied)
            continue;
        put(first ? "" : ", ");
        put_string(setting_name((enum setting)setting));
        put(": ");
        put_string(applied ? outcome.applied : outcome.reason);
        first = false;
    }
}

static void put_settings(void)
{
    put(", \"settings\": {\"applied\": {");
    put_outcomes(true);
    put("}, \"without_effect\": {");
    put_outcomes(false);
    put("}, \"unknown\": [");
    for (int i = 0; unknown_at(i) != NULL; i++) {
        put(i > 0 ? ", " : "");
        put_string(unknown_at(i));
    }
    put("]}, \"warnings\": [");
    for (int i = 0; i < warnings_kept(); i++) {
        put(i > 0 ? ", " : "");
        put_string(warning_at(i));
    }
    put("]");
}

static void put_report(void)
{
    put("{\"version\": 1, \"program\": ");
    put_string(program);
    put_field("pid", (uint64_t)owner);
    put(", \"host\": ");
    put_string(host);
    put_field("rank", (uint64_t)rank);
    put_field("ranks", (uint64_t)ranks);
    put_time("wall_s", now_ns() - start_ns);
    put_hexadecimal("order", process_digest()->order);
    put(threads_seen() ? ", \"threads\": true" : "");
    put(rests_used() ? ", \"unlisted\": true" : "");
    put_layers();
    put_files();
    put_settings();
    put_factors();
    put_loops();
    put("}\n");
}

/* ---- files ---- */

static void append(char *path, const char *text)
{
    size_t length = strlen(path);
    size_t room = PATH_MAX - 1 - length;
    size_t size = strlen(text) < room ? strlen(text) : room;
    memcpy(path + length, text, size);
    path[length + size] = '\0';
}

static void append_number(char *path, uint64_t number)
{
    char digits[24] = "";
    int at = (int)sizeof digits - 1;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    append(path, digits + at);
}

/* HOST-PID.json; HOST-PID-2.json where a program had that process number before it called exec(). */
static void name_report(char *path, int number)
{
    *path = '\0';
    append(path, folder);
    append(path, "/");
    append(path, host);
    append(path, "-");
    append_number(path, (uint64_t)owner);
    if (number > 1) {
        append(path, "-");
        append_number(path, (uint64_t)number);
    }
    append(path, ".json");
}

static bool publish(const char *written)
{
    if (*own_name != '\0')
        return rename(written, own_name) == 0;
    for (int number = 1; number < MOST_NAMES; number++) {
        name_report(own_name, number);
        if (link(written, own_name) == 0) {
            unlink(written);
            return true;
        }
        if (errno != EEXIST) /* a file system without hard links */
            return rename(written, own_name) == 0;
    }
    return false;
}

static void write_file(void)
{
    static char path[PATH_MAX]; /* not on the stack: a signal handler's may be small */
    *path = '\0';
    append(path, folder);
    append(path, "/.");
    append(path, host);
    append(path, "-");
    append_number(path, (uint64_t)owner);
    append(path, ".tmp");
    mkdir(folder, 0777);
    unlink(path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        return;
    start_json(fd);
    put_report();
    bool is_whole = end_json();
    syscall(SYS_close, fd);
    if (!is_whole || !publish(path))
        unlink(path);
}

static int writing;
static THREAD_LOCAL bool is_writer;

void write_report(bool even_if_empty)
{
    if (!counting || is_writer || !is_own_process() || ((!even_if_empty || is_forked) && !anything_counted()))
        return;
    int saved = errno;
    struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 1000 && __atomic_exchange_n(&writing, 1, __ATOMIC_ACQUIRE) != 0; i++)
        nanosleep(&pause, NULL); /* another thread writes it: a process must not end before that */
    is_writer = true;
    write_file();
    is_writer = false;
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
    errno = saved;
}

/* ---- start ---- */

static void forked(void)
{
    owner = getpid();
    is_forked = true;
    writing = 0;
    *own_name = '\0';
    start_ns = now_ns();
    if (counting) {
        clear_counters();
        clear_loops();
    }
}

void start_report(void)
{
    static const char *const RANKS[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    owner = getpid();
    start_ns = now_ns();
    is_first_rank();
    ranks = number_in(RANKS, 1);
    const char *wanted_folder = getenv("LUTHIER_IO_COUNT");
    pthread_atfork(NULL, NULL, forked);
    if (wanted_folder == NULL || *wanted_folder == '\0' || !tables_made())
        return;
    absolute_path(wanted_folder, folder, sizeof folder);
    if (*wanted_folder != '/') /* programs that this one starts may run in another folder */
        setenv("LUTHIER_IO_COUNT", folder, 1);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (gethostname(host, sizeof host - 1) != 0 || *host == '\0')
        strcpy(host, "localhost");
    for (char *at = host; *at != '\0'; at++)
        if (*at == '/')
            *at = '_';
    if (*host == '.')
        *host = '_';
    counting = true;
}
