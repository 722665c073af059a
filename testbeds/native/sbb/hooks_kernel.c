/* The calls by which the kernel itself uses the data of files: it must be in the target first. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "libsbb.h"

/* ---- mapping and looking for holes ---- */

#ifndef __SANITIZE_THREAD__ /* its runtime maps memory before it can follow calls */
static bool prepare_mapping(int fd, int flags)
{
    if ((flags & MAP_ANONYMOUS) || fd < 0)
        return true;
    if ((flags & MAP_TYPE) == MAP_PRIVATE)
        return sbb_flush_if_copied(fd) != FAILED;
    if (sbb_simple(fd, SBB_DIRECT) == FAILED)
        return false;
    sbb_keep_registered(fd);
    return true;
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return prepare_mapping(fd, flags) ? REAL(mmap)(address, length, protection, flags, fd, offset) : MAP_FAILED;
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
    return prepare_mapping(fd, flags) ? REAL(mmap64)(address, length, protection, flags, fd, offset) : MAP_FAILED;
}
#endif

EXPORT off_t lseek(int fd, off_t offset, int whence)
{
    if ((whence == SEEK_DATA || whence == SEEK_HOLE) && sbb_flush_if_copied(fd) == FAILED)
        return -1;
    return REAL(lseek)(fd, offset, whence);
}

EXPORT off64_t lseek64(int fd, off64_t offset, int whence)
{
    if ((whence == SEEK_DATA || whence == SEEK_HOLE) && sbb_flush_if_copied(fd) == FAILED)
        return -1;
    return REAL(lseek64)(fd, offset, whence);
}

static bool is_ours(int fd)
{
    struct known known;
    return sbb_file(fd, &known) != OTHER;
}

/* ---- copying ---- */

/* By reading and writing pieces of at most `room` bytes. */
static ssize_t copy_pieces(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, char *piece, size_t room)
{
    size_t done = 0;
    while (done < size) {
        size_t part = size - done < room ? size - done : room;
        ssize_t got = from_offset != NULL ? pread64(from, piece, part, *from_offset) : read(from, piece, part);
        ssize_t written = got <= 0            ? got
                          : to_offset != NULL ? pwrite64(to, piece, (size_t)got, *to_offset)
                                              : write(to, piece, (size_t)got);
        if (from_offset == NULL && got > 0 && written < got)
            lseek64(from, (written > 0 ? written : 0) - got, SEEK_CUR); /* only what was written counts as read */
        if (written <= 0)
            return done > 0 ? (ssize_t)done : written;
        if (from_offset != NULL)
            *from_offset += written;
        if (to_offset != NULL)
            *to_offset += written;
        done += (size_t)written;
    }
    return (ssize_t)done;
}

/* Into a buffered file, at offsets or, where they are NULL, at the positions. A thread may have a small stack, and a
 * signal handler cannot use malloc(). */
static ssize_t copy_buffered(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size)
{
    char few[4096], *piece = MAP_FAILED;
    size_t room = size < SBB_SLICE ? size : SBB_SLICE;
    if (room > sizeof few)
        piece = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED)
        return copy_pieces(from, from_offset, to, to_offset, size, few, sizeof few);
    ssize_t done = copy_pieces(from, from_offset, to, to_offset, size, piece, room);
    int saved = errno;
    munmap(piece, room);
    errno = saved;
    return done;
}

/* What the kernel refuses to copy into; true and errno. */
static bool refused(int to, int error_of_append)
{
    int flags = fcntl(to, F_GETFL);
    errno = flags < 0 || (flags & O_ACCMODE) == O_RDONLY ? EBADF : error_of_append;
    return flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_APPEND) != 0;
}

static bool is_same_file(int from, int to)
{
    struct stat one, other;
    return fstat(from, &one) == 0 && fstat(to, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Within one file, the kernel knows which ranges overlap. */
EXPORT ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
    struct stat status;
    bool plain = flags == 0 && fstat(from, &status) == 0 && S_ISREG(status.st_mode) && !is_same_file(from, to);
    if (plain && is_ours(to))
        return refused(to, EBADF) ? -1 : copy_buffered(from, from_offset, to, to_offset, size);
    if (sbb_simple(to, SBB_DIRECT) == FAILED || sbb_flush_if_copied(from) == FAILED)
        return -1;
    return REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
}

static ssize_t send_buffered(int to, int from, off64_t *offset, size_t size)
{
    return refused(to, EINVAL) ? -1 : copy_buffered(from, offset, to, NULL, size);
}

EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    if (is_ours(to))
        return send_buffered(to, from, offset, size);
    return sbb_flush_if_copied(from) == FAILED ? -1 : REAL(sendfile)(to, from, offset, size);
}

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    if (is_ours(to))
        return send_buffered(to, from, offset, size);
    return sbb_flush_if_copied(from) == FAILED ? -1 : REAL(sendfile64)(to, from, offset, size);
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
    if (sbb_simple(to, SBB_DIRECT) == FAILED || sbb_flush_if_copied(from) == FAILED)
        return -1;
    return REAL(splice)(from, from_offset, to, to_offset, size, flags);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0 && sbb_simple(fd, SBB_FLUSH) == FAILED)
        return -1;
    return REAL(fallocate)(fd, mode, offset, length);
}

EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0 && sbb_simple(fd, SBB_FLUSH) == FAILED)
        return -1;
    return REAL(fallocate64)(fd, mode, offset, length);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    if ((request == FICLONE || request == FICLONERANGE) && is_ours(fd)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (request == FICLONE && sbb_flush_if_copied((int)(intptr_t)argument) == FAILED)
        return -1;
    if (request == FICLONERANGE && argument != NULL
        && sbb_flush_if_copied((int)((struct file_clone_range *)argument)->src_fd) == FAILED)
        return -1;
    if (request == FS_IOC_FIEMAP && sbb_flush_if_copied(fd) == FAILED)
        return -1;
    return REAL(ioctl)(fd, request, argument);
}
