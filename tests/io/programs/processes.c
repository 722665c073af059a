/* Ways to start, end and share files that a library inside the process must survive, for the tests of native/io.
 *
 *     processes PIECE FILE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, OPERATIONS = 2000, BYTES = 100 };

static const char *path;
static _Thread_local char data[BYTES];

static int open_file(int flags)
{
    int fd = open(path, flags | O_CREAT, 0666);
    if (fd < 0)
        exit(1);
    return fd;
}

static void put(int fd)
{
    if (write(fd, data, BYTES) != BYTES)
        exit(1);
}

static void wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(3);
}

static void *write_pieces(void *number)
{
    int fd = open_file(O_RDWR);
    for (int i = 0; i < OPERATIONS; i++) {
        off_t place = ((off_t)(intptr_t)number * OPERATIONS + i) * BYTES;
        if (pwrite(fd, data, BYTES, place) != BYTES || pread(fd, data, BYTES, place) != BYTES)
            exit(1);
    }
    close(fd);
    return NULL;
}

static void threads(void)
{
    pthread_t started[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&started[i], NULL, write_pieces, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
}

/* Parent and child write; each counts its own. */
static void fork_one(void)
{
    int fd = open_file(O_WRONLY | O_TRUNC);
    for (int i = 0; i < 3; i++)
        put(fd);
    pid_t child = fork();
    if (child == 0) {
        put(fd);
        _exit(0);
    }
    wait_for(child);
}

/* A child that shares the parent's memory closes and opens descriptors, then runs a program or fails to. */
static void vfork_one(void)
{
    int fd = open_file(O_WRONLY | O_TRUNC);
    put(fd);
    for (int i = 0; i < 2; i++) {
        pid_t child = vfork();
        if (child == 0) {
            close(fd);
            open("/dev/null", O_WRONLY);
            if (i == 0)
                execl("/nonexistent/program", "program", (char *)NULL);
            else
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        wait_for(child);
    }
    put(fd);
}

static void spawn(void)
{
    pid_t child;
    char *arguments[] = {"sh", "-c", "exec cat \"$0\" > /dev/null", (char *)path, NULL};
    put(open_file(O_WRONLY | O_TRUNC));
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
        exit(1);
    wait_for(child);
    if (system("cat /dev/null") != 0)
        exit(1);
}

static void execute(void)
{
    put(open_file(O_WRONLY | O_TRUNC));
    execle("/bin/sh", "sh", "-c", "echo $word; exec cat \"$0\" > /dev/null", path, (char *)NULL,
           (char *const[]){"word=heard", getenv("LD_PRELOAD") ? "other=1" : "none=1", NULL});
    exit(1);
}

static void execute_list(void)
{
    put(open_file(O_WRONLY | O_TRUNC));
    execlp("nonexistent-program", "a", (char *)NULL);
    put(open_file(O_WRONLY));
    execlp("cat", "cat", path, (char *)NULL);
    exit(1);
}

/* As a daemon does: all descriptors closed, numbers 0 to 2 used for files. */
static void closes_all(void)
{
    int fd = open_file(O_WRONLY | O_TRUNC);
    put(fd);
    syscall(SYS_close_range, 0, 100, 0);
    if (open("/dev/null", O_RDWR) != 0 || open(path, O_WRONLY | O_APPEND) != 1 || open(path, O_WRONLY | O_APPEND) != 2)
        exit(1);
    put(2);
    close_range(1, 100, 0);
    if (open(path, O_WRONLY | O_APPEND) != 1 || dup2(1, 2) != 2)
        exit(1);
    put(2);
    closefrom(0);
}

static void ended_by(int number)
{
    put(open_file(O_WRONLY | O_TRUNC));
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        exit(4); /* the program must not see a handler that it has not set */
    if (number == SIGSEGV)
        *(volatile int *)0 = 1; /* NOLINT: on purpose */
    if (number == SIGABRT)
        abort();
    raise(number);
}
static void terminated(void) { ended_by(SIGTERM); }
static void aborted(void) { ended_by(SIGABRT); }
static void crashed(void) { ended_by(SIGSEGV); }

static volatile sig_atomic_t seen;
static void on_signal(int number)
{
    seen = number;
    int fd = open(path, O_WRONLY | O_APPEND);
    if (write(fd, data, 1) != 1)
        _exit(1);
    close(fd);
}

/* A handler of the program's own that uses files while others are opened and written. */
static void handler(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    close(open_file(O_WRONLY | O_TRUNC));
    if (signal(SIGUSR1, on_signal) != SIG_DFL || sigaction(SIGALRM, &action, &before) != 0
        || before.sa_handler != SIG_DFL)
        exit(4);
    for (int i = 0; i < OPERATIONS; i++) {
        int fd = open_file(O_WRONLY | O_APPEND);
        if (i % 100 == 0)
            raise(SIGUSR1);
        put(fd);
        close(fd);
    }
    if (seen != SIGUSR1 || signal(SIGUSR1, SIG_DFL) != on_signal)
        exit(4);
}

static void quick(void)
{
    put(open_file(O_WRONLY | O_TRUNC));
    quick_exit(0);
}

static void at_once(void)
{
    put(open_file(O_WRONLY | O_TRUNC));
    _exit(7);
}

/* One call of each kind, at places that are and are not in sequence. */
static void calls(void)
{
    int fd = open_file(O_RDWR | O_TRUNC);
    struct iovec parts[] = {{data, 10}, {data, 20}};
    write(fd, data, 50);           /* 0: in sequence */
    write(fd, data, 50);           /* 50: in sequence */
    writev(fd, parts, 2);          /* 100: in sequence */
    pwrite(fd, data, 100, 1000);   /* not */
    pwritev(fd, parts, 2, 1100);   /* in sequence */
    lseek(fd, 0, SEEK_SET);
    read(fd, data, 100);           /* 0: in sequence */
    readv(fd, parts, 2);           /* 100: in sequence */
    pread(fd, data, 10, 1000);     /* not */
    preadv(fd, parts, 2, 1010);    /* in sequence */
    fsync(fd);
    fdatasync(fd);
    int copy = dup(fd);
    close(fd);
    write(copy, data, 1);          /* through a copy, at 130 */
    close(copy);
    if (open("/nonexistent/file", O_RDONLY) >= 0 || errno != ENOENT || read(fd, data, 1) != -1 || errno != EBADF)
        exit(1);
}

/* What is in the buffer of a stream is written when the process exits; another file gets the number of a closed one. */
static void streams(void)
{
    char name[4096];
    FILE *stream = fopen(path, "w");
    fprintf(stream, "%0100d", 1);
    int fd = open("/dev/null", O_RDONLY);
    close(fd);
    snprintf(name, sizeof name, "%s.other", path);
    if (open(name, O_WRONLY | O_CREAT, 0666) != fd)
        exit(1);
    put(fd);
    close(fd);
    int ends[2];
    if (pipe(ends) != 0 || ends[0] != fd || write(ends[1], data, BYTES) != BYTES || read(fd, data, BYTES) != BYTES)
        exit(1);
}

static void many_files(void)
{
    char name[4096];
    for (int i = 0; i < 1500; i++) {
        snprintf(name, sizeof name, "%s%d", path, i);
        int fd = open(name, O_WRONLY | O_CREAT, 0666);
        put(fd);
        close(fd);
        unlink(name);
    }
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(void); } PIECES[] = {
        {"threads", threads}, {"fork", fork_one}, {"vfork", vfork_one}, {"spawn", spawn}, {"exec", execute},
        {"execlp", execute_list}, {"closes_all", closes_all}, {"terminated", terminated}, {"aborted", aborted},
        {"crashed", crashed}, {"handler", handler}, {"quick", quick}, {"at_once", at_once}, {"calls", calls},
        {"many_files", many_files}, {"streams", streams}};
    path = count > 2 ? arguments[2] : "";
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
        if (count == 3 && strcmp(arguments[1], PIECES[i].name) == 0) {
            PIECES[i].run();
            return 0;
        }
    return 2;
}
