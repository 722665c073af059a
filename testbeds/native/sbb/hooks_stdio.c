/* The streams of the C library, which writes them from within itself, where no call can be intercepted.
 *
 * A stream of a file below the target is made a custom stream (fopencookie) that reads and writes by the calls of this
 * library. Streams that exist already (stdin, stdout, stderr) cannot be replaced: their files are not buffered. The C
 * library can neither reopen a custom stream nor use it for wide characters; a program that asks for that gets an ordinary
 * stream in its place, at the same address, and the file is not buffered from then on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "libsbb.h"

struct stream {
    int fd;
    FILE *file;
    FILE *donor; /* of the parts that an ordinary stream has and a custom one lacks; NULL while it is a custom one */
    struct stream *next;
};

static struct stream *streams; /* guarded by the lock of the library */

/* Take the stream out of the list; NULL if it is not there as one of this kind. */
static struct stream *take_out(const FILE *file, bool ordinary)
{
    sigset_t before;
    struct stream **at, *found;
    sbb_enter(&before);
    for (at = &streams; *at != NULL && ((*at)->file != file || ((*at)->donor != NULL) != ordinary); at = &(*at)->next)
        continue;
    found = *at;
    if (found != NULL)
        *at = found->next;
    sbb_leave(&before);
    return found;
}

static void put_in(struct stream *stream)
{
    sigset_t before;
    sbb_enter(&before);
    stream->next = streams;
    streams = stream;
    sbb_leave(&before);
}

/* A custom stream has no descriptor for the C library; -1 if it is none of ours. */
static int descriptor_of(const FILE *file)
{
    sigset_t before;
    int fd = -1;
    sbb_enter(&before);
    for (const struct stream *stream = streams; stream != NULL && fd < 0; stream = stream->next)
        if (stream->file == file && stream->donor == NULL)
            fd = stream->fd;
    sbb_leave(&before);
    return fd;
}

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
    struct stream *stream = cookie;
    take_out(stream->file, false);
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
    *stream = (struct stream){fd, file, NULL, NULL};
    file->_mode = 0; /* it may become one of wide characters: see below */
    if (mode[0] == 'a' && strchr(mode, '+') == NULL)
        lseek64(fd, 0, SEEK_END);
    put_in(stream);
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

/* A stream is opened that reads and writes this file from within the C library. What is buffered of it already goes to the
 * target first, because the stream may cut it off. */
static void leave_alone(const char *path)
{
    int saved = errno;
    int fd = path != NULL && sbb_active() && may_be_ours(path) ? REAL(open)(path, O_PATH | O_CLOEXEC) : -1;
    if (fd >= 0) {
        sbb_leave_unbuffered(fd);
        REAL(close)(fd);
    }
    errno = saved;
}

#define OPENS(name)                                                     \
    EXPORT FILE *name(const char *path, const char *mode)               \
    {                                                                   \
        if (!sbb_active() || (is_plain_mode(mode) && !may_be_ours(path))) \
            return REAL(name)(path, mode);                              \
        if (is_plain_mode(mode))                                        \
            return fopen_through(path, mode);                           \
        leave_alone(path);                                              \
        FILE *file = REAL(name)(path, mode);                            \
        leave_alone(path);                                              \
        return file;                                                    \
    }
OPENS(fopen)
OPENS(fopen64)

EXPORT FILE *fdopen(int fd, const char *mode)
{
    struct known known;
    if (!sbb_active() || sbb_file(fd, &known) == OTHER)
        return REAL(fdopen)(fd, mode);
    if (!is_plain_mode(mode)) {
        sbb_leave_unbuffered(fd);
        return REAL(fdopen)(fd, mode);
    }
    int flags = fcntl(fd, F_GETFL), wanted = flags_of(mode);
    bool fits = (flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == (wanted & O_ACCMODE);
    if (flags < 0 || !fits)
        return REAL(fdopen)(fd, mode); /* fails, and says why */
    if ((wanted & O_APPEND) && !(flags & O_APPEND))
        fcntl(fd, F_SETFL, flags | O_APPEND);
    return open_stream(fd, mode);
}

/* ---- ordinary streams in the place of custom ones ---- */

/* Gives the stream what only ordinary ones have. A stream that is not made for a file gives it away. */
static bool become_ordinary(FILE *file)
{
    int fd = descriptor_of(file);
    FILE *donor = fd < 0 ? NULL : REAL(fopen)("/dev/null", "re");
    struct stream *stream = donor == NULL ? NULL : take_out(file, false);
    if (stream == NULL)
        return false;
    REAL(close)(donor->_fileno);
    donor->_fileno = -1;
    file->_wide_data = donor->_wide_data;
    file->_fileno = fd;
    stream->donor = donor;
    put_in(stream);
    return true;
}

/* After its end as a custom stream the C library closes the descriptor from within itself. */
static void let_go(int fd)
{
    sbb_flush_program(fd);
    sbb_release(fd);
}

static FILE *reopen(FILE *(*next)(const char *, const char *, FILE *), const char *path, const char *mode, FILE *stream)
{
    bool ours = sbb_active() && stream != NULL && descriptor_of(stream) >= 0;
    int fd = ours ? descriptor_of(stream) : stream != NULL ? REAL(fileno)(stream) : -1;
    if (ours)
        fflush(stream);
    if (ours && !become_ordinary(stream))
        return NULL;
    if (path == NULL)
        sbb_leave_unbuffered(fd);
    else if (ours)
        let_go(fd);
    leave_alone(path);
    FILE *file = next(path, mode, stream);
    leave_alone(path);
    return file;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    return reopen(REAL(freopen), path, mode, stream);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    return reopen(REAL(freopen64), path, mode, stream);
}

EXPORT int fclose(FILE *file)
{
    struct stream *stream = sbb_active() ? take_out(file, true) : NULL;
    if (stream != NULL && file->_fileno >= 0) {
        fflush(file);
        let_go(file->_fileno);
    }
    int result = REAL(fclose)(file);
    if (stream != NULL) {
        int saved = errno;
        REAL(fclose)(stream->donor);
        free(stream);
        errno = saved;
    }
    return result;
}

/* ---- wide characters: the first such call decides what a stream is used for ---- */

static void may_become_wide(FILE *file)
{
    int fd = file->_mode == 0 && sbb_active() ? descriptor_of(file) : -1;
    if (fd < 0)
        return;
    sbb_leave_unbuffered(fd);
    if (!become_ordinary(file))
        file->_mode = -1; /* without the parts for it, the call has to fail */
}

EXPORT int fwide(FILE *stream, int mode)
{
    if (mode > 0)
        may_become_wide(stream);
    return REAL(fwide)(stream, mode);
}

/* For programs built with _FORTIFY_SOURCE. */
int __vfwprintf_chk(FILE *stream, int flag, const wchar_t *format, va_list more);
wchar_t *__fgetws_chk(wchar_t *text, size_t room, int size, FILE *stream);
wchar_t *__fgetws_unlocked_chk(wchar_t *text, size_t room, int size, FILE *stream);

#define WIDE(type, name, parameters, ...)   \
    EXPORT type name parameters             \
    {                                       \
        may_become_wide(stream);            \
        return REAL(name)(__VA_ARGS__);     \
    }
WIDE(wint_t, fputwc, (wchar_t wide, FILE *stream), wide, stream)
WIDE(wint_t, putwc, (wchar_t wide, FILE *stream), wide, stream)
WIDE(wint_t, fputwc_unlocked, (wchar_t wide, FILE *stream), wide, stream)
WIDE(wint_t, putwc_unlocked, (wchar_t wide, FILE *stream), wide, stream)
WIDE(int, fputws, (const wchar_t *text, FILE *stream), text, stream)
WIDE(int, fputws_unlocked, (const wchar_t *text, FILE *stream), text, stream)
WIDE(wint_t, fgetwc, (FILE *stream), stream)
WIDE(wint_t, getwc, (FILE *stream), stream)
WIDE(wint_t, fgetwc_unlocked, (FILE *stream), stream)
WIDE(wint_t, getwc_unlocked, (FILE *stream), stream)
WIDE(wint_t, ungetwc, (wint_t wide, FILE *stream), wide, stream)
WIDE(wchar_t *, fgetws, (wchar_t *text, int size, FILE *stream), text, size, stream)
WIDE(wchar_t *, fgetws_unlocked, (wchar_t *text, int size, FILE *stream), text, size, stream)
WIDE(wchar_t *, __fgetws_chk, (wchar_t *text, size_t room, int size, FILE *stream), text, room, size, stream)
WIDE(wchar_t *, __fgetws_unlocked_chk, (wchar_t *text, size_t room, int size, FILE *stream), text, room, size, stream)
WIDE(int, vfwprintf, (FILE *stream, const wchar_t *format, va_list more), stream, format, more)
WIDE(int, __vfwprintf_chk, (FILE *stream, int flag, const wchar_t *format, va_list more), stream, flag, format, more)

#define WITH_MORE(call)             \
    {                               \
        va_list more;               \
        va_start(more, format);     \
        int result = call;          \
        va_end(more);               \
        return result;              \
    }

EXPORT int fwprintf(FILE *stream, const wchar_t *format, ...) WITH_MORE(vfwprintf(stream, format, more))
int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...);
EXPORT int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...)
    WITH_MORE(__vfwprintf_chk(stream, flag, format, more))

/* The headers give fwscanf one of the other names, depending on the standard of C that the program is written for. */
#define SCANS(number, list_name, name)                                                                  \
    int list_##number(FILE *stream, const wchar_t *format, va_list more) __asm__(list_name);            \
    EXPORT int list_##number(FILE *stream, const wchar_t *format, va_list more)                         \
    {                                                                                                   \
        static _Atomic(void *) found;                                                                   \
        may_become_wide(stream);                                                                        \
        return ((__typeof__(&list_##number))sbb_next(&found, list_name))(stream, format, more);         \
    }                                                                                                   \
    int scan_##number(FILE *stream, const wchar_t *format, ...) __asm__(name);                          \
    EXPORT int scan_##number(FILE *stream, const wchar_t *format, ...) WITH_MORE(list_##number(stream, format, more))
SCANS(1989, "vfwscanf", "fwscanf")
SCANS(1999, "__isoc99_vfwscanf", "__isoc99_fwscanf")
SCANS(2023, "__isoc23_vfwscanf", "__isoc23_fwscanf")

/* ---- descriptors ---- */

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
    sbb_standard_all();
    errno = saved;
}
