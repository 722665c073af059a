/* What the small programs share: `programs NAME` runs the one of that name in the current folder. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>

struct program {
    const char *name;
    void (*run)(void);
    struct program *next;
};
extern struct program *programs;
extern char **environ;

/* Defines a program and puts it into the list. */
#define PROGRAM(name_)                                                                          \
    static void name_(void);                                                                    \
    static struct program program_##name_ = {#name_, name_, NULL};                              \
    __attribute__((constructor)) static void add_##name_(void)                                  \
    {                                                                                           \
        program_##name_.next = programs;                                                        \
        programs = &program_##name_;                                                            \
    }                                                                                           \
    static void name_(void)

/* Prints a value, and the error if it is negative. */
#define SAY(call)                                                                               \
    do {                                                                                        \
        errno = 0;                                                                              \
        long long said_ = (long long)(call);                                                    \
        printf("%s = %lld%s%s\n", #call, said_, said_ < 0 ? " " : "", said_ < 0 ? strerrorname_np(errno) : ""); \
    } while (0)
#define SAY_TEXT(text) printf("%s: %s\n", #text, (text) == NULL ? "(null)" : (text))
#define SAY_OK(pointer) printf("%s: %s\n", #pointer, (pointer) != NULL ? "yes" : strerrorname_np(errno))

void put(const char *path, const char *text);    /* a new file with this text */
void fill(char *data, size_t size, unsigned seed);
void show(const char *path);                     /* size and content (a checksum if it is long) */
void show_fd(int fd);
int ended(pid_t child);                          /* its exit code, or the number of its signal plus 1000 */
int child_of(void (*body)(void));                /* runs in a child of fork(), which ends by exit(0) */

#endif
