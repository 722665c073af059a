/* exercise: reads through libsro from threads, forked children and a signal handler at once, and checks every byte.
 * `make sanitize` links it with the library, so that the sanitizers watch the library at work. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS (1u << 18) /* 2 MiB of 64-bit words; word number i is i * STRIDE */
#define STRIDE UINT64_C(0x9e3779b97f4a7c15)
#define THREADS 4
#define ROUNDS 3000

static char path[] = "/tmp/luthier-exercise-XXXXXX";
static int shared_fd;
static atomic_int wrong;

static void check(const uint64_t *words, ssize_t got, uint64_t first)
{
    if (got <= 0 || got % (ssize_t)sizeof *words != 0)
        wrong++;
    for (ssize_t i = 0; i < got / (ssize_t)sizeof *words; i++)
        if (words[i] != (first + (uint64_t)i) * STRIDE)
            wrong++;
}

/* One read at a word, in one of the ways there are. */
static void read_somehow(int fd, uint64_t word, unsigned way)
{
    uint64_t words[256];
    struct iovec parts[2] = {{words, 1024}, {words + 128, 1024}};
    off_t offset = (off_t)(word * sizeof *words);
    ssize_t got;
    switch (way % 4) {
    case 0: got = pread(fd, words, sizeof words, offset); break;
    case 1: got = preadv(fd, parts, 2, offset); break;
    case 2: got = lseek(fd, offset, SEEK_SET) < 0 ? -1 : read(fd, words, sizeof words); break;
    default: got = lseek(fd, offset, SEEK_SET) < 0 ? -1 : readv(fd, parts, 2); break;
    }
    check(words, got, word);
}

/* Half of the reads around a few hot spots, half anywhere. */
static void read_much(unsigned seed, int rounds)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < rounds; i++) {
        unsigned chance = (unsigned)rand_r(&seed);
        uint64_t spot = chance / 2 % 4 * (WORDS / 4) + chance % 4096;
        uint64_t word = chance % 2 ? (uint64_t)rand_r(&seed) % (WORDS - 256) : spot;
        read_somehow(fd, word, chance >> 8);
        if (i % 500 == 499) { /* the descriptor changes, the file does not */
            int other = dup(fd);
            close(fd);
            fd = other;
        }
    }
    close(fd);
}

static void *work(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            read_much(seed + 100, ROUNDS / 10);
            _exit(wrong != 0);
        }
        read_much(seed, ROUNDS / 4);
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            wrong++;
    }
    return NULL;
}

static void on_alarm(int signal)
{
    uint64_t words[8];
    uint64_t word = (uint64_t)signal * 1000;
    check(words, pread(shared_fd, words, sizeof words, (off_t)(word * sizeof *words)), word);
}

static void create(void)
{
    shared_fd = mkstemp(path);
    uint64_t words[1024];
    for (uint64_t first = 0; first < WORDS; first += 1024) {
        for (uint64_t i = 0; i < 1024; i++)
            words[i] = (first + i) * STRIDE;
        if (write(shared_fd, words, sizeof words) != sizeof words)
            abort();
    }
}

int main(void)
{
    create();
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    unlink(path);
    printf("%d wrong\n", (int)wrong);
    return wrong != 0;
}
