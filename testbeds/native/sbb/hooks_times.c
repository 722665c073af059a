/* The calls that set the times of a file. They go to the daemon if it holds the file, because to write to the target
 * late must not change what the program has set. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>
#include <utime.h>

#include "libsbb.h"

/* True if the daemon has set the times, or failed to: then result and errno are set. */
static bool by_daemon(const struct stat *status, const struct timespec *times, int *result)
{
    int error, saved = errno;
    if (!sbb_times(status, times, &error)) {
        errno = saved;
        return false;
    }
    errno = error == 0 ? saved : error;
    *result = error == 0 ? 0 : -1;
    return true;
}

static bool of_descriptor(int fd, const struct timespec *times, int *result)
{
    struct stat status;
    int saved = errno;
    bool found = sbb_active() && fstat(fd, &status) == 0;
    errno = saved;
    return found && by_daemon(&status, times, result);
}

static bool of_path(int folder, const char *path, int flags, const struct timespec *times, int *result)
{
    struct stat status;
    int saved = errno;
    bool found = sbb_active() && path != NULL && fstatat(folder, path, &status, flags & AT_SYMLINK_NOFOLLOW) == 0;
    errno = saved;
    return found && by_daemon(&status, times, result);
}

static const struct timespec *from_timeval(const struct timeval times[2], struct timespec room[2])
{
    for (int i = 0; times != NULL && i < 2; i++)
        room[i] = (struct timespec){times[i].tv_sec, times[i].tv_usec * 1000};
    return times == NULL ? NULL : room;
}

EXPORT int futimens(int fd, const struct timespec times[2])
{
    int result;
    return of_descriptor(fd, times, &result) ? result : REAL(futimens)(fd, times);
}

EXPORT int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    int result;
    return of_path(folder, path, flags, times, &result) ? result : REAL(utimensat)(folder, path, times, flags);
}

EXPORT int futimes(int fd, const struct timeval times[2])
{
    int result;
    struct timespec room[2];
    return of_descriptor(fd, from_timeval(times, room), &result) ? result : REAL(futimes)(fd, times);
}

EXPORT int utimes(const char *path, const struct timeval times[2])
{
    int result;
    struct timespec room[2];
    return of_path(AT_FDCWD, path, 0, from_timeval(times, room), &result) ? result : REAL(utimes)(path, times);
}

EXPORT int lutimes(const char *path, const struct timeval times[2])
{
    int result;
    struct timespec room[2];
    return of_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, from_timeval(times, room), &result)
               ? result
               : REAL(lutimes)(path, times);
}

EXPORT int futimesat(int folder, const char *path, const struct timeval times[2])
{
    int result;
    struct timespec room[2];
    return of_path(folder, path, 0, from_timeval(times, room), &result) ? result
                                                                        : REAL(futimesat)(folder, path, times);
}

EXPORT int utime(const char *path, const struct utimbuf *times)
{
    int result;
    struct timespec room[2];
    if (times != NULL) {
        room[0] = (struct timespec){.tv_sec = times->actime};
        room[1] = (struct timespec){.tv_sec = times->modtime};
    }
    return of_path(AT_FDCWD, path, 0, times == NULL ? NULL : room, &result) ? result : REAL(utime)(path, times);
}
