/* The calls that open, close and cut files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsbb.h"

/* ---- opening ---- */

/* True if opening this with O_TRUNC would cut off what the daemon is about to write. */
static bool cuts_target_file(int folder, const char *path, int flags)
{
    struct stat status;
    int saved = errno;
    bool cuts = (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH) && sbb_active()
                && fstatat(folder, path, &status, 0) == 0 && sbb_on_target_device(&status);
    errno = saved;
    return cuts;
}

static enum outcome truncate_through(int fd, off64_t size)
{
    struct known known;
    enum belongs belongs = sbb_file(fd, &known);
    struct rlimit limit;
    if (belongs != OURS)
        return belongs == BROKEN ? FAILED : BYPASS;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && (rlim_t)size > limit.rlim_cur) /* the kernel refuses it, with a signal */
        return sbb_simple(fd, SBB_DIRECT) == FAILED ? FAILED : BYPASS;
    struct sbb_request request = {.operation = SBB_TRUNCATE, .offset = (uint64_t)size};
    struct sbb_answer answer;
    return sbb_ask(fd, &known, &request, &answer, NULL);
}

/* After an open without O_TRUNC: do what it would have done. */
static int truncate_opened(int fd)
{
    if (fd < 0)
        return fd;
    enum outcome outcome = truncate_through(fd, 0);
    if (outcome == BYPASS)
        outcome = REAL(ftruncate64)(fd, 0) == 0 ? DONE : FAILED;
    if (outcome == FAILED) {
        int error = errno;
        REAL(close)(fd);
        errno = error;
        return -1;
    }
    return fd;
}

#define MODE_OF(flags)                            \
    mode_t mode = 0;                              \
    if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list more;                             \
        va_start(more, flags);                    \
        mode = (mode_t)va_arg(more, int);         \
        va_end(more);                             \
    }

#define OPEN(folder, path, flags, name, ...)                     \
    if (cuts_target_file(folder, path, flags)) {                 \
        (flags) &= ~O_TRUNC;                                     \
        return sbb_standard(truncate_opened(REAL(name)(__VA_ARGS__))); \
    }                                                            \
    return sbb_standard(REAL(name)(__VA_ARGS__))

EXPORT int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    OPEN(AT_FDCWD, path, flags, open, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    OPEN(AT_FDCWD, path, flags, open64, path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags)
    OPEN(folder, path, flags, openat, folder, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags)
    OPEN(folder, path, flags, openat64, folder, path, flags, mode);
}

EXPORT int creat(const char *path, mode_t mode)
{
    return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
    return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
    OPEN(AT_FDCWD, path, flags, __open_2, path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
    OPEN(AT_FDCWD, path, flags, __open64_2, path, flags);
}

EXPORT int __openat_2(int folder, const char *path, int flags)
{
    OPEN(folder, path, flags, __openat_2, folder, path, flags);
}

EXPORT int __openat64_2(int folder, const char *path, int flags)
{
    OPEN(folder, path, flags, __openat64_2, folder, path, flags);
}

/* ---- closing, copying of descriptors ---- */

/* The kernel itself reads a program that is started, so it must be in the target as soon as it may be executed. */
void sbb_flush_program(int fd)
{
    struct stat status;
    struct known known;
    int saved = errno;
    if (sbb_known(fd, &known) && fstat(fd, &status) == 0 && (status.st_mode & 0111) != 0)
        sbb_flush_if_copied(fd);
    errno = saved;
}

/* Close a descriptor of our own (O_PATH: to close another kind would end locks of the program). Unless the program used the
 * file before, it does not use it now. */
static void close_path(int fd, bool used)
{
    if (!used)
        sbb_release(fd);
    REAL(close)(fd);
}

static void flush_program_at(int folder, const char *path)
{
    struct stat status;
    int saved = errno;
    bool maybe = sbb_active() && fstatat(folder, path, &status, 0) == 0 && sbb_on_target_device(&status)
                 && (status.st_mode & 0111) != 0;
    int fd = maybe ? REAL(openat)(folder, path, O_PATH | O_CLOEXEC) : -1;
    if (fd >= 0) {
        struct known known;
        bool used = sbb_known(fd, &known);
        sbb_flush_if_copied(fd);
        close_path(fd, used);
    }
    errno = saved;
}

EXPORT int chmod(const char *path, mode_t mode)
{
    int result = REAL(chmod)(path, mode);
    if (result == 0)
        flush_program_at(AT_FDCWD, path);
    return result;
}

EXPORT int fchmodat(int folder, const char *path, mode_t mode, int flags)
{
    int result = REAL(fchmodat)(folder, path, mode, flags);
    if (result == 0)
        flush_program_at(folder, path);
    return result;
}

EXPORT int fchmod(int fd, mode_t mode)
{
    int result = REAL(fchmod)(fd, mode);
    if (result == 0)
        sbb_flush_program(fd);
    return result;
}

EXPORT int close(int fd)
{
    if (!sbb_active())
        return REAL(close)(fd);
    if (sbb_is_internal(fd)) { /* the program does not know it, and closes everything */
        errno = EBADF;
        return -1;
    }
    sbb_flush_program(fd);
    int error = sbb_release(fd);
    int result = REAL(close)(fd);
    if (result != 0 || error == 0)
        return result;
    errno = error;
    return -1;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int mine;
    while (sbb_active() && first <= last && (mine = sbb_lowest_internal((int)first)) >= 0 && (unsigned)mine <= last) {
        if ((unsigned)mine > first && REAL(close_range)(first, (unsigned)mine - 1, flags) != 0)
            return -1;
        first = (unsigned)mine + 1;
    }
    return first > last ? 0 : REAL(close_range)(first, last, flags);
}

EXPORT void closefrom(int first)
{
    close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0);
}

EXPORT int dup(int from)
{
    return sbb_standard(REAL(dup)(from));
}

EXPORT int dup2(int from, int to)
{
    if (sbb_active() && sbb_is_internal(to))
        sbb_vacate(to);
    return sbb_standard(REAL(dup2)(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    if (sbb_active() && sbb_is_internal(to))
        sbb_vacate(to);
    return sbb_standard(REAL(dup3)(from, to, flags));
}

/* ---- sizes and durability ---- */

static bool is_writable(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

#define TRUNCATE(fd, size, name)                                          \
    enum outcome outcome = (size) < 0 || !is_writable(fd) ? BYPASS : truncate_through(fd, size); \
    return outcome == BYPASS ? REAL(name)(fd, size) : outcome == DONE ? 0 : -1

EXPORT int ftruncate(int fd, off_t size)
{
    TRUNCATE(fd, size, ftruncate);
}

EXPORT int ftruncate64(int fd, off64_t size)
{
    TRUNCATE(fd, size, ftruncate64);
}

static int truncate_path(const char *path, off64_t size)
{
    struct stat status;
    int saved = errno;
    bool ours = size >= 0 && sbb_active() && stat(path, &status) == 0 && sbb_on_target_device(&status)
                && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
    int fd = ours ? REAL(open)(path, O_PATH | O_CLOEXEC) : -1;
    struct known known;
    bool used = fd >= 0 && sbb_known(fd, &known);
    enum outcome outcome = fd < 0 ? BYPASS : truncate_through(fd, size);
    int error = errno;
    if (fd >= 0)
        close_path(fd, used);
    errno = outcome == FAILED ? error : saved;
    return outcome == BYPASS ? REAL(truncate64)(path, size) : outcome == DONE ? 0 : -1;
}

EXPORT int truncate(const char *path, off_t size)
{
    return truncate_path(path, size);
}

EXPORT int truncate64(const char *path, off64_t size)
{
    return truncate_path(path, size);
}

/* What has left the buffer is safe already; the call that follows finds little to do then. */
static enum outcome sync_through(int fd)
{
    struct known known;
    enum belongs belongs = sbb_file(fd, &known);
    if (belongs != OURS)
        return belongs == BROKEN ? FAILED : BYPASS;
    struct sbb_request request = {.operation = SBB_SYNC};
    struct sbb_answer answer = {0};
    enum outcome outcome = sbb_ask(fd, &known, &request, &answer, NULL);
    return outcome == DONE && answer.value == 0 ? BYPASS : outcome;
}

EXPORT int fsync(int fd)
{
    enum outcome outcome = sync_through(fd);
    return outcome == BYPASS ? REAL(fsync)(fd) : outcome == DONE ? 0 : -1;
}

EXPORT int fdatasync(int fd)
{
    enum outcome outcome = sync_through(fd);
    return outcome == BYPASS ? REAL(fdatasync)(fd) : outcome == DONE ? 0 : -1;
}
