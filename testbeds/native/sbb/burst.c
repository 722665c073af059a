/* burst: an application that computes and writes checkpoints in turn.
 *
 *     burst [--processes N] [--bursts N] [--bytes SIZE] [--block SIZE] [--compute-ms N] FOLDER
 *     burst --check [the same options] FOLDER
 *
 * In each burst every process writes SIZE bytes to a file of its own, in blocks, and waits until they are safe (fsync).
 * Prints the seconds of the bursts without the computing, or with --check how many bytes of the files are wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "quantity.h"

#define PROCESSES 256

static uint64_t processes = 4, bursts = 3, bytes = 16u << 20, block = 256u << 10, compute_ms = 500;

struct shared {
    pthread_barrier_t barrier;
    double seconds;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "burst: %s: %s\n", what, strerror(errno));
    _exit(1);
}

/* Different bytes for every process, burst and place. */
static void fill(unsigned char *data, uint64_t process, uint64_t burst, uint64_t at)
{
    uint64_t seed = (process << 40) ^ (burst << 32) ^ at;
    for (uint64_t i = 0; i < block; i += 8) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(data + i, &seed, block - i < 8 ? block - i : 8);
    }
}

static void path_of(char *path, size_t room, const char *folder, uint64_t process, uint64_t burst)
{
    snprintf(path, room, "%s/checkpoint-%llu-%llu", folder, (unsigned long long)burst, (unsigned long long)process);
}

static void write_checkpoint(const char *path, const unsigned char *data)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        stop(path);
    for (uint64_t at = 0; at < bytes; at += block) {
        uint64_t length = bytes - at < block ? bytes - at : block;
        if (write(fd, data + at, length) != (ssize_t)length)
            stop(path);
    }
    if (fsync(fd) != 0 || close(fd) != 0)
        stop(path);
}

static void compute(void)
{
    volatile double value = 1;
    for (double end = now() + 1e-3 * (double)compute_ms; now() < end;)
        for (int i = 0; i < 10000; i++)
            value = value * 1.0000001 + 1e-9;
}

static void run_process(struct shared *shared, const char *folder, uint64_t process)
{
    unsigned char *data = malloc(bytes + block);
    if (data == NULL)
        stop("memory");
    for (uint64_t burst = 0; burst < bursts; burst++) {
        char path[4096];
        path_of(path, sizeof path, folder, process, burst);
        for (uint64_t at = 0; at < bytes; at += block)
            fill(data + at, process, burst, at);
        if (process == 0) /* one is enough: the others wait, as for a slow neighbour */
            compute();
        pthread_barrier_wait(&shared->barrier);
        double start = now();
        write_checkpoint(path, data);
        pthread_barrier_wait(&shared->barrier);
        if (process == 0)
            shared->seconds += now() - start;
    }
    free(data);
}

static int run(const char *folder)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attributes;
    if (shared == MAP_FAILED || pthread_barrierattr_init(&attributes) != 0
        || pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) != 0
        || pthread_barrier_init(&shared->barrier, &attributes, (unsigned)processes) != 0)
        stop("barrier");
    pid_t children[PROCESSES];
    for (uint64_t process = 0; process < processes; process++) {
        children[process] = fork();
        if (children[process] < 0)
            stop("fork");
        if (children[process] == 0) {
            run_process(shared, folder, process);
            _exit(0);
        }
    }
    bool failed = false;
    for (uint64_t i = 0; i < processes; i++) {
        int status = 0;
        wait(&status);
        for (uint64_t child = 0; status != 0 && !failed && child < processes; child++)
            kill(children[child], SIGKILL); /* the others wait at a barrier that nobody will reach */
        failed = failed || status != 0;
    }
    if (failed)
        return 1;
    printf("{\"seconds\": %.6f, \"bytes\": %llu}\n", shared->seconds, (unsigned long long)(processes * bursts * bytes));
    return 0;
}

static uint64_t wrong_in(const char *path, uint64_t process, uint64_t burst, unsigned char *right, unsigned char *found)
{
    uint64_t wrong = 0;
    int fd = open(path, O_RDONLY);
    for (uint64_t at = 0; at < bytes; at += block) {
        uint64_t length = bytes - at < block ? bytes - at : block;
        ssize_t got = fd < 0 ? 0 : pread(fd, found, length, (off_t)at);
        fill(right, process, burst, at);
        for (uint64_t i = 0; i < length; i++)
            wrong += (ssize_t)i >= got || right[i] != found[i];
    }
    if (fd >= 0)
        close(fd);
    return wrong;
}

static int check(const char *folder)
{
    unsigned char *right = malloc(block), *found = malloc(block);
    uint64_t wrong = 0;
    if (right == NULL || found == NULL)
        stop("memory");
    for (uint64_t process = 0; process < processes; process++)
        for (uint64_t burst = 0; burst < bursts; burst++) {
            char path[4096];
            path_of(path, sizeof path, folder, process, burst);
            wrong += wrong_in(path, process, burst, right, found);
        }
    printf("{\"wrong_bytes\": %llu}\n", (unsigned long long)wrong);
    free(right);
    free(found);
    return wrong != 0;
}

int main(int count, char **words)
{
    const struct option options[] = {
        {"processes", required_argument, NULL, 'p'}, {"bursts", required_argument, NULL, 'n'},
        {"bytes", required_argument, NULL, 's'},     {"block", required_argument, NULL, 'b'},
        {"compute-ms", required_argument, NULL, 'c'}, {"check", no_argument, NULL, 'k'}, {0},
    };
    bool checks = false, valid = true;
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        uint64_t *value = option == 'p' ? &processes : option == 'n' ? &bursts : option == 's' ? &bytes
                        : option == 'b' ? &block : &compute_ms;
        if (option == 'k')
            checks = true;
        else
            valid = valid && option != '?' && parse_quantity(optarg, option == 'c' ? 0 : 1, UINT64_C(1) << 32, value);
    }
    if (!valid || processes > PROCESSES || optind + 1 != count) {
        fprintf(stderr, "usage: burst [--processes N] [--bursts N] [--bytes SIZE] [--block SIZE] [--compute-ms N] "
                        "[--check] FOLDER\n");
        return 2;
    }
    return checks ? check(words[optind]) : run(words[optind]);
}
