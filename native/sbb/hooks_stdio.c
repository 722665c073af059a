/* The streams of the C library, which writes them from within itself, where no call can be intercepted.
 *
 * A stream of a file below the target is made a custom stream (fopencookie) that reads and writes by the calls of this
 * library. Streams that exist already (stdin, stdout, stderr) cannot be replaced: their files are not buffered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsbb.h"

struct stream {
    int fd;
    FILE *file;
    struct stream *next;
};

static struct stream *streams; /* guarded by the lock of the library */

static ssize_t read_stream(void *cookie, char *buffer, size_t size)
{
    return read(((struct stream *)cookie)->fd, buffer, size);
}

/* An error is 0 here, not -1. */
static ssize_t write_stream(void *cookie, const char *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(((struct stream *)cookie)->fd, buffer + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return (ssize_t)done;
}

static int seek_stream(void *cookie, off64_t *offset, int whence)
{
    off64_t place = lseek64(((struct stream *)cookie)->fd, *offset, whence);
    if (place < 0)
        return -1;
    *offset = place;
    return 0;
}

static int close_stream(void *cookie)
{
    struct stream *stream = cookie, **at;
    sigset_t before;
    sbb_enter(&before);
    for (at = &streams; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    sbb_leave(&before);
    int result = close(stream->fd);
    free(stream);
    return result;
}

/* NULL and errno if that fails. */
static FILE *open_stream(int fd, const char *mode)
{
    struct stream *stream = malloc(sizeof *stream);
    const cookie_io_functions_t functions = {read_stream, write_stream, seek_stream, close_stream};
    FILE *file = stream == NULL ? NULL : fopencookie(stream, mode, functions);
    if (file == NULL) {
        free(stream);
        return NULL;
    }
    sigset_t before;
    sbb_enter(&before);
    *stream = (struct stream){fd, file, streams};
    streams = stream;
    sbb_leave(&before);
    return file;
}

static int flags_of(const char *mode)
{
    int flags = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    flags |= strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    size_t plain = strcspn(mode, ",");
    flags |= memchr(mode, 'x', plain) != NULL ? O_EXCL : 0;
    flags |= memchr(mode, 'e', plain) != NULL ? O_CLOEXEC : 0;
    return flags;
}

static bool is_plain_mode(const char *mode)
{
    return mode != NULL && strchr("rwa", mode[0]) != NULL && mode[0] != '\0' && strchr(mode, ',') == NULL;
}

/* The file that a stream would be opened for is below the target, or would be if it existed. */
static bool may_be_ours(const char *path)
{
    struct stat status;
    int saved = errno;
    bool maybe = stat(path, &status) == 0;
    if (!maybe) { /* the folder that it would be created in */
        char folder[4096];
        const char *slash = strrchr(path, '/');
        size_t length = slash == NULL ? 0 : (size_t)(slash - path);
        if (length < sizeof folder) {
            memcpy(folder, path, length);
            folder[length] = '\0';
            maybe = stat(slash == NULL ? "." : length == 0 ? "/" : folder, &status) == 0;
        }
        status.st_mode = (status.st_mode & ~S_IFMT) | S_IFREG;
    }
    errno = saved;
    return maybe && sbb_on_target_device(&status);
}

static FILE *fopen_through(const char *path, const char *mode)
{
    int fd = open(path, flags_of(mode), 0666);
    if (fd < 0)
        return NULL;
    struct known known;
    FILE *file = sbb_file(fd, &known) == OTHER ? REAL(fdopen)(fd, mode) : open_stream(fd, mode);
    if (file == NULL) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    if (!sbb_active() || !is_plain_mode(mode) || !may_be_ours(path))
        return REAL(fopen)(path, mode);
    return fopen_through(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    if (!sbb_active() || !is_plain_mode(mode) || !may_be_ours(path))
        return REAL(fopen64)(path, mode);
    return fopen_through(path, mode);
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
    struct known known;
    if (!sbb_active() || !is_plain_mode(mode) || sbb_file(fd, &known) == OTHER)
        return REAL(fdopen)(fd, mode);
    int flags = fcntl(fd, F_GETFL), wanted = flags_of(mode);
    bool fits = (flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == (wanted & O_ACCMODE);
    if (flags < 0 || !fits)
        return REAL(fdopen)(fd, mode); /* fails, and says why */
    if ((wanted & O_APPEND) && !(flags & O_APPEND))
        fcntl(fd, F_SETFL, flags | O_APPEND);
    return open_stream(fd, mode);
}

/* An existing stream gets another file, which is not buffered: its writes cannot be seen. What is buffered of it already
 * goes to the target first, because the stream may cut it off. */
static void leave_alone(const char *path)
{
    int saved = errno;
    int fd = path != NULL && sbb_active() && may_be_ours(path) ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        sbb_simple(fd, SBB_DIRECT);
        sbb_keep_registered(fd);
        REAL(close)(fd);
    }
    errno = saved;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    leave_alone(path);
    FILE *file = REAL(freopen)(path, mode, stream);
    leave_alone(path);
    return file;
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    leave_alone(path);
    FILE *file = REAL(freopen64)(path, mode, stream);
    leave_alone(path);
    return file;
}

/* Custom streams have no descriptor for the C library. */
static int descriptor_of(FILE *file)
{
    sigset_t before;
    int fd = -1;
    sbb_enter(&before);
    for (const struct stream *stream = streams; stream != NULL && fd < 0; stream = stream->next)
        if (stream->file == file)
            fd = stream->fd;
    sbb_leave(&before);
    return fd;
}

EXPORT int fileno(FILE *file)
{
    int fd = sbb_active() ? descriptor_of(file) : -1;
    return fd >= 0 ? fd : REAL(fileno)(file);
}

EXPORT int fileno_unlocked(FILE *file)
{
    int fd = sbb_active() ? descriptor_of(file) : -1;
    return fd >= 0 ? fd : REAL(fileno_unlocked)(file);
}

/* ---- start ---- */

__attribute__((constructor)) static void start(void)
{
    int saved = errno;
    sbb_start();
    for (int fd = 0; fd <= 2; fd++) {
        struct known known;
        if (sbb_file(fd, &known) == OURS && sbb_simple(fd, SBB_DIRECT) == DONE)
            sbb_keep_registered(fd);
    }
    errno = saved;
}
