/* Copies of files, and paths as texts, for memory.c. */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool is_below(const char *path, const char *start)
{
    size_t length = strlen(start);
    return length > 0 && strncmp(path, start, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Without // and /./, and /../ as if there were no symbolic links. */
void tidy(char *path)
{
    char *out = path;
    for (const char *at = path; *at != '\0';) {
        const char *name = at + 1, *end = strchrnul(name, '/');
        size_t length = (size_t)(end - name);
        if (length == 2 && name[0] == '.' && name[1] == '.') {
            while (out > path && *--out != '/')
                continue;
        } else if (length > 0 && !(length == 1 && *name == '.')) {
            memmove(out, at, length + 1);
            out += length + 1;
        }
        at = end;
    }
    if (out == path)
        *out++ = '/';
    *out = '\0';
}

static bool copy_data(int from, int to)
{
    static const size_t SIZE = 1 << 20;
    char *buffer = malloc(SIZE);
    ssize_t got = buffer == NULL ? -1 : 1;
    while (got > 0 && (got = syscall(SYS_read, from, buffer, SIZE)) > 0)
        for (ssize_t done = 0, written = 0; done < got; done += written)
            if ((written = syscall(SYS_write, to, buffer + done, (size_t)(got - done))) <= 0) {
                got = -1;
                break;
            }
    free(buffer);
    return got == 0;
}

/* Copy a file, at once: under another name first, then renamed. Several processes may do so. */
bool copy_file(const char *from, const char *to, bool with_data, bool may_replace)
{
    char temporary[PATH_MAX];
    struct stat status;
    if (snprintf(temporary, sizeof temporary, "%s.%d-%p~", to, (int)getpid(), (void *)&temporary) >= PATH_MAX)
        return false;
    int in = (int)syscall(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : (int)syscall(SYS_openat, AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = out >= 0 && (!with_data || copy_data(in, out)) && fstat(in, &status) == 0
                && fchmod(out, status.st_mode & 07777) == 0;
    if (good) {
        struct timespec times[2] = {status.st_atim, status.st_mtim};
        futimens(out, times);
    }
    int saved = errno;
    if (in >= 0)
        syscall(SYS_close, in);
    if (out >= 0)
        syscall(SYS_close, out);
    if (good && may_replace)
        good = rename(temporary, to) == 0;
    else if (good && link(temporary, to) != 0 && errno != EEXIST)
        good = false;
    if (out >= 0 && !(good && may_replace))
        unlink(temporary);
    errno = good ? errno : saved;
    return good;
}
