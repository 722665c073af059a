/* The calls of the operating system that open, read, write and close files. */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "next.h"

/* Programs built with _FORTIFY_SOURCE call these; the headers do not declare them to everybody. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

#define CALLS(X) \
    X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64) X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2) \
    X(read) X(pread) X(pread64) X(readv) X(preadv) X(preadv64) X(preadv2) X(preadv64v2) \
    X(__read_chk) X(__pread_chk) X(__pread64_chk) \
    X(write) X(pwrite) X(pwrite64) X(writev) X(pwritev) X(pwritev64) X(pwritev2) X(pwritev64v2) \
    X(sendfile) X(sendfile64) X(copy_file_range) \
    X(lseek) X(lseek64) X(fsync) X(fdatasync) X(close) X(dup2) X(dup3) X(close_range) X(closefrom)

#define DECLARE(name) static __typeof__(&name) next_##name;
CALLS(DECLARE)

#define CALL(name, ...) (NEXT(name) != NULL ? next_##name(__VA_ARGS__) : (errno = ENOSYS, (__typeof__(name(__VA_ARGS__)))-1))

void find_posix(void)
{
#define FIND(name) (void)NEXT(name);
    CALLS(FIND)
}

int64_t kernel_position(int fd)
{
    return CALL(lseek64, fd, 0, SEEK_CUR);
}

ssize_t plain_write(int fd, const void *data, size_t size)
{
    return CALL(write, fd, data, size);
}

/* ---- opening ---- */

/* A child made by vfork() shares the memory of its parent, but not its descriptors. */
void note_open(int fd, uint64_t start_ns)
{
    if (fd < 0 || !counting || !is_own_process())
        return;
    forget(fd, fd);
    struct file *file = file_of(fd);
    if (file != NULL) {
        add(&file->tally.opens, 1);
        note(file, OPENED, fcntl(fd, F_GETFL), 0); /* the way it can be used: O_APPEND, O_DIRECT, O_SYNC, ... */
        count_other(file, start_ns);
    }
}

static int opened(int fd, uint64_t start_ns)
{
    note_open(fd, start_ns);
    return fd;
}

#define START (counting ? now_ns() : 0)
#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

EXPORT int open(const char *path, int flags, ...)
{
    MODE(flags, mode)
    uint64_t start_ns = START;
    SWITCHED(AT_FDCWD, path, use_of_flags(flags));
    return opened(CALL(open, path, flags, mode), start_ns);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE(flags, mode)
    uint64_t start_ns = START;
    SWITCHED(AT_FDCWD, path, use_of_flags(flags));
    return opened(CALL(open64, path, flags, mode), start_ns);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags, mode)
    uint64_t start_ns = START;
    SWITCHED(folder, path, use_of_flags(flags));
    return opened(CALL(openat, folder, path, flags, mode), start_ns);
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    MODE(flags, mode)
    uint64_t start_ns = START;
    SWITCHED(folder, path, use_of_flags(flags));
    return opened(CALL(openat64, folder, path, flags, mode), start_ns);
}

#define OPENS(name, parameters, base, use, ...) \
    EXPORT int name parameters \
    { \
        uint64_t start_ns = START; \
        SWITCHED(base, path, use); \
        return opened(CALL(name, __VA_ARGS__), start_ns); \
    }
OPENS(creat, (const char *path, mode_t mode), AT_FDCWD, REPLACE, path, mode)
OPENS(creat64, (const char *path, mode_t mode), AT_FDCWD, REPLACE, path, mode)
OPENS(__open_2, (const char *path, int flags), AT_FDCWD, use_of_flags(flags), path, flags)
OPENS(__open64_2, (const char *path, int flags), AT_FDCWD, use_of_flags(flags), path, flags)
OPENS(__openat_2, (int folder, const char *path, int flags), folder, use_of_flags(flags), folder, path, flags)
OPENS(__openat64_2, (int folder, const char *path, int flags), folder, use_of_flags(flags), folder, path, flags)

/* ---- reading and writing ---- */

/* A call on fd: counted by `count` if fd stands for a file. `offset` may use `got`. */
#define TRANSFERS(name, parameters, count, offset, ...) \
    EXPORT ssize_t name parameters \
    { \
        struct file *file = counting ? file_of(fd) : NULL; \
        if (file == NULL) \
            return CALL(name, __VA_ARGS__); \
        uint64_t start_ns = now_ns(); \
        ssize_t got = CALL(name, __VA_ARGS__); \
        count(file, offset, got, start_ns); \
        return got; \
    }
#define AT_POSITION advance(fd, got)
#define AT_EITHER (offset == -1 ? advance(fd, got) : (int64_t)offset) /* the calls with flags use the position for -1 */
typedef const struct iovec *parts_t;

TRANSFERS(read, (int fd, void *buffer, size_t size), count_read, AT_POSITION, fd, buffer, size)
TRANSFERS(readv, (int fd, parts_t parts, int count), count_read, AT_POSITION, fd, parts, count)
TRANSFERS(pread, (int fd, void *buffer, size_t size, off_t offset), count_read, offset, fd, buffer, size, offset)
TRANSFERS(pread64, (int fd, void *buffer, size_t size, off64_t offset), count_read, offset, fd, buffer, size, offset)
TRANSFERS(preadv, (int fd, parts_t parts, int count, off_t offset), count_read, offset, fd, parts, count, offset)
TRANSFERS(preadv64, (int fd, parts_t parts, int count, off64_t offset), count_read, offset, fd, parts, count, offset)
TRANSFERS(preadv2, (int fd, parts_t parts, int count, off_t offset, int flags), count_read, AT_EITHER,
          fd, parts, count, offset, flags)
TRANSFERS(preadv64v2, (int fd, parts_t parts, int count, off64_t offset, int flags), count_read, AT_EITHER,
          fd, parts, count, offset, flags)
TRANSFERS(__read_chk, (int fd, void *buffer, size_t size, size_t room), count_read, AT_POSITION,
          fd, buffer, size, room)
TRANSFERS(__pread_chk, (int fd, void *buffer, size_t size, off_t offset, size_t room), count_read, offset,
          fd, buffer, size, offset, room)
TRANSFERS(__pread64_chk, (int fd, void *buffer, size_t size, off64_t offset, size_t room), count_read, offset,
          fd, buffer, size, offset, room)

TRANSFERS(write, (int fd, const void *data, size_t size), count_write, AT_POSITION, fd, data, size)
TRANSFERS(writev, (int fd, parts_t parts, int count), count_write, AT_POSITION, fd, parts, count)
TRANSFERS(pwrite, (int fd, const void *data, size_t size, off_t offset), count_write, offset, fd, data, size, offset)
TRANSFERS(pwrite64, (int fd, const void *data, size_t size, off64_t offset), count_write, offset,
          fd, data, size, offset)
TRANSFERS(pwritev, (int fd, parts_t parts, int count, off_t offset), count_write, offset, fd, parts, count, offset)
TRANSFERS(pwritev64, (int fd, parts_t parts, int count, off64_t offset), count_write, offset,
          fd, parts, count, offset)
TRANSFERS(pwritev2, (int fd, parts_t parts, int count, off_t offset, int flags), count_write, AT_EITHER,
          fd, parts, count, offset, flags)
TRANSFERS(pwritev64v2, (int fd, parts_t parts, int count, off64_t offset, int flags), count_write, AT_EITHER,
          fd, parts, count, offset, flags)

/* ---- copying inside the kernel: a read of one file and a write of the other ---- */

static void count_end(int fd, const off64_t *offset, ssize_t got, uint64_t start_ns,
                      void (*count)(struct file *, int64_t, ssize_t, uint64_t))
{
    struct file *file = file_of(fd);
    if (file != NULL)
        count(file, offset == NULL ? advance(fd, got) : *offset - (got > 0 ? got : 0), got, start_ns);
}

/* Its time counts once: as that of the write, if what is written is a file. */
static ssize_t copied(int from, const off64_t *read_at, int to, const off64_t *written_at, ssize_t got,
                      uint64_t start_ns)
{
    if (counting) {
        int error = errno;
        count_end(from, read_at, got, file_of(to) == NULL ? start_ns : now_ns(), count_read);
        count_end(to, written_at, got, start_ns, count_write);
        errno = error;
    }
    return got;
}

EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    uint64_t start_ns = START;
    ssize_t got = CALL(sendfile, to, from, offset, size);
    off64_t read_at = offset == NULL ? 0 : *offset;
    return copied(from, offset == NULL ? NULL : &read_at, to, NULL, got, start_ns);
}

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    uint64_t start_ns = START;
    ssize_t got = CALL(sendfile64, to, from, offset, size);
    return copied(from, offset, to, NULL, got, start_ns);
}

EXPORT ssize_t copy_file_range(int from, off64_t *read_at, int to, off64_t *written_at, size_t size, unsigned flags)
{
    uint64_t start_ns = START;
    ssize_t got = CALL(copy_file_range, from, read_at, to, written_at, size, flags);
    return copied(from, read_at, to, written_at, got, start_ns);
}

/* ---- positions and flushing ---- */

static int64_t sought(int fd, struct file *file, int64_t position, uint64_t start_ns)
{
    add(&file->tally.seeks, 1);
    note(file, SOUGHT, position, 0);
    count_other(file, start_ns);
    if (position >= 0)
        set_position(fd, position);
    return position;
}

EXPORT off_t lseek(int fd, off_t offset, int whence)
{
    struct file *file = file_of(fd);
    uint64_t start_ns = file == NULL ? 0 : now_ns();
    off_t position = CALL(lseek, fd, offset, whence);
    return file == NULL ? position : (off_t)sought(fd, file, position, start_ns);
}

EXPORT off64_t lseek64(int fd, off64_t offset, int whence)
{
    struct file *file = file_of(fd);
    uint64_t start_ns = file == NULL ? 0 : now_ns();
    off64_t position = CALL(lseek64, fd, offset, whence);
    return file == NULL ? position : (off64_t)sought(fd, file, position, start_ns);
}

#define SYNCS(name) \
    EXPORT int name(int fd) \
    { \
        struct file *file = file_of(fd); \
        uint64_t start_ns = file == NULL ? 0 : now_ns(); \
        int result = CALL(name, fd); \
        if (file != NULL) { \
            add(&file->tally.syncs, 1); \
            note(file, SYNCED, result, 0); \
            count_other(file, start_ns); \
        } \
        return result; \
    }
SYNCS(fsync)
SYNCS(fdatasync)

/* ---- closing ---- */

/* A number is forgotten before it is given back, for another thread may get it at once. */
EXPORT int close(int fd)
{
    struct file *file = known_file_of(fd); /* daemons close numbers by the thousand */
    uint64_t start_ns = file == NULL ? 0 : now_ns();
    forget(fd, fd);
    int result = CALL(close, fd);
    if (file != NULL) {
        note(file, CLOSED, 0, 0);
        count_other(file, start_ns);
    }
    return result;
}

EXPORT int dup2(int old, int fd)
{
    forget(fd, fd);
    int result = CALL(dup2, old, fd);
    forget(fd, fd);
    return result;
}

EXPORT int dup3(int old, int fd, int flags)
{
    forget(fd, fd);
    int result = CALL(dup3, old, fd, flags);
    forget(fd, fd);
    return result;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (first <= INT_MAX)
        forget((int)first, last > INT_MAX ? INT_MAX : (int)last);
    return CALL(close_range, first, last, flags);
}

EXPORT void closefrom(int first)
{
    forget(first, INT_MAX);
    if (NEXT(closefrom) != NULL)
        next_closefrom(first);
}
