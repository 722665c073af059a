/* The calls that write and read. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsbb.h"

#define AT_POSITION (-1)

static ssize_t total_of(const struct iovec *parts, int count)
{
    size_t total = 0;
    if (parts == NULL || count < 0 || count > IOV_MAX)
        return -1;
    for (int i = 0; i < count; i++) {
        total += parts[i].iov_len;
        if (parts[i].iov_len > SSIZE_MAX || total > SSIZE_MAX)
            return -1;
    }
    return (ssize_t)(total > 0x7ffff000 ? 0x7ffff000 : total); /* what the kernel does at most, too */
}

/* A part of the buffers, for a call that goes on to the C library. */
static ssize_t directly(int fd, const struct transfer *transfer, off64_t offset, bool append)
{
    struct iovec parts[64];
    int count = 0;
    size_t skip = transfer->skip;
    for (int i = 0; i < transfer->count && count < 64; i++) {
        size_t length = transfer->parts[i].iov_len;
        if (skip < length)
            parts[count++] = (struct iovec){(char *)transfer->parts[i].iov_base + skip, length - skip};
        skip = skip < length ? 0 : skip - length;
    }
    if (!transfer->writes)
        return REAL(preadv64)(fd, parts, count, offset);
    return append ? REAL(writev)(fd, parts, count) : REAL(pwritev64)(fd, parts, count, offset);
}

/* Move `total` bytes, slice by slice, until one is short. Returns how many, or -1 if none. */
static ssize_t move_data(int fd, struct known *known, struct transfer *transfer, size_t total, off64_t *offset, bool append)
{
    struct sbb_request request = {.operation = transfer->writes ? SBB_WRITE : SBB_READ,
                                  .flags = append ? SBB_APPEND : 0};
    struct sbb_answer answer;
    size_t done = 0;
    while (done < total) {
        transfer->skip = done;
        request.offset = (uint64_t)*offset;
        request.length = total - done < SBB_SLICE ? total - done : SBB_SLICE;
        enum outcome outcome = sbb_ask(fd, known, &request, &answer, transfer);
        ssize_t moved = -1;
        if (outcome == DONE)
            moved = (ssize_t)(transfer->writes ? request.length : answer.value);
        else if (outcome == BYPASS)
            moved = directly(fd, transfer, *offset, append);
        if (moved < 0)
            return done > 0 ? (ssize_t)done : -1;
        done += (size_t)moved;
        *offset = append && outcome == DONE ? (off64_t)answer.value + moved : *offset + moved;
        if (moved == 0 || (!transfer->writes && (uint64_t)moved < request.length))
            break;
        if (outcome == BYPASS && append)
            *offset = lseek64(fd, 0, SEEK_CUR);
    }
    return (ssize_t)done;
}

/* At the position of the descriptor, which all who share it move on by their own part. */
static ssize_t move_at_position(int fd, struct known *known, struct transfer *transfer, size_t total, bool append)
{
    if (append) {
        off64_t end = 0;
        ssize_t moved = move_data(fd, known, transfer, total, &end, true);
        if (moved > 0)
            lseek64(fd, end, SEEK_SET);
        return moved;
    }
    off64_t end = lseek64(fd, (off64_t)total, SEEK_CUR);
    if (end < 0)
        return -1;
    off64_t offset = end - (off64_t)total;
    ssize_t moved = move_data(fd, known, transfer, total, &offset, false);
    int saved = errno;
    if (moved < (ssize_t)total)
        lseek64(fd, (moved < 0 ? 0 : moved) - (off64_t)total, SEEK_CUR);
    errno = saved;
    return moved;
}

/* The kernel would refuse or shorten this write, and send a signal: let it. */
static bool exceeds_limit(int fd, ssize_t total, off64_t offset, int flags)
{
    struct rlimit limit;
    struct stat status;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return false;
    if ((flags & O_APPEND) && fstat(fd, &status) == 0)
        offset = status.st_size;
    else if (offset == AT_POSITION)
        offset = lseek64(fd, 0, SEEK_CUR);
    return offset < 0 || (rlim_t)offset + (rlim_t)total > limit.rlim_cur;
}

enum way { NOT_OURS, REFUSED, THROUGH };

/* Whether a call with these buffers goes through the buffer. */
static enum way way_of(int fd, struct known *known, ssize_t total, off64_t offset, bool writes, int *flags)
{
    if (total <= 0 || offset < AT_POSITION)
        return NOT_OURS; /* nothing to do, or invalid: the kernel says what */
    enum belongs belongs = sbb_file(fd, known);
    if (belongs != OURS)
        return belongs == BROKEN ? REFUSED : NOT_OURS;
    *flags = fcntl(fd, F_GETFL);
    int access_mode = *flags & O_ACCMODE;
    if (*flags < 0 || (*flags & O_PATH) || access_mode == (writes ? O_RDONLY : O_WRONLY))
        return NOT_OURS;
    if (!writes && !sbb_has_copies(known))
        return NOT_OURS;
    if (writes && exceeds_limit(fd, total, offset, *flags))
        return sbb_simple(fd, SBB_DIRECT) == FAILED ? REFUSED : NOT_OURS;
    return THROUGH;
}

/* True if the call was carried out, with its result. */
static bool through(int fd, const struct iovec *parts, int count, off64_t offset, bool writes, ssize_t *result)
{
    struct known known;
    struct transfer transfer = {parts, count, 0, writes};
    int flags = 0, cancel;
    ssize_t total = total_of(parts, count);
    enum way way = way_of(fd, &known, total, offset, writes, &flags);
    if (way != THROUGH) {
        *result = -1;
        return way == REFUSED;
    }
    pthread_testcancel(); /* the program may rely on these calls to be points of cancellation */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    bool append = writes && (flags & O_APPEND);
    if (offset == AT_POSITION)
        *result = move_at_position(fd, &known, &transfer, (size_t)total, append);
    else
        *result = move_data(fd, &known, &transfer, (size_t)total, &offset, append);
    if (writes && *result > 0 && (flags & O_DSYNC) && sbb_simple(fd, SBB_SYNC) == FAILED)
        *result = -1;
    pthread_setcancelstate(cancel, NULL);
    return true;
}

#define ONE(buffer, size) (&(struct iovec){(void *)(uintptr_t)(buffer), size}), 1
#define SEVERAL(parts, count) parts, count
#define OR_REAL(fd, parts, offset, writes, name, ...)          \
    ssize_t result;                                            \
    if (through(fd, parts, offset, writes, &result))           \
        return result;                                         \
    return REAL(name)(__VA_ARGS__)

/* ---- writing ---- */

EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
    OR_REAL(fd, ONE(buffer, size), AT_POSITION, true, write, fd, buffer, size);
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
    OR_REAL(fd, ONE(buffer, size), offset == -1 ? -2 : offset, true, pwrite, fd, buffer, size, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset)
{
    OR_REAL(fd, ONE(buffer, size), offset == -1 ? -2 : offset, true, pwrite64, fd, buffer, size, offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    OR_REAL(fd, SEVERAL(parts, count), AT_POSITION, true, writev, fd, parts, count);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    OR_REAL(fd, SEVERAL(parts, count), offset == -1 ? -2 : offset, true, pwritev, fd, parts, count, offset);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    OR_REAL(fd, SEVERAL(parts, count), offset == -1 ? -2 : offset, true, pwritev64, fd, parts, count, offset);
}

/* With flags the call is left to the kernel, on a file that is not buffered from then on. -1 is the position here. */
EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    ssize_t result;
    if (flags == 0 && through(fd, parts, count, offset, true, &result))
        return result;
    if (flags != 0 && sbb_simple(fd, SBB_DIRECT) == FAILED)
        return -1;
    return REAL(pwritev2)(fd, parts, count, offset, flags);
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    ssize_t result;
    if (flags == 0 && through(fd, parts, count, offset, true, &result))
        return result;
    if (flags != 0 && sbb_simple(fd, SBB_DIRECT) == FAILED)
        return -1;
    return REAL(pwritev64v2)(fd, parts, count, offset, flags);
}

/* ---- reading ---- */

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    OR_REAL(fd, ONE(buffer, size), AT_POSITION, false, read, fd, buffer, size);
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    OR_REAL(fd, ONE(buffer, size), offset == -1 ? -2 : offset, false, pread, fd, buffer, size, offset);
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
    OR_REAL(fd, ONE(buffer, size), offset == -1 ? -2 : offset, false, pread64, fd, buffer, size, offset);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    OR_REAL(fd, SEVERAL(parts, count), AT_POSITION, false, readv, fd, parts, count);
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    OR_REAL(fd, SEVERAL(parts, count), offset == -1 ? -2 : offset, false, preadv, fd, parts, count, offset);
}

EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    OR_REAL(fd, SEVERAL(parts, count), offset == -1 ? -2 : offset, false, preadv64, fd, parts, count, offset);
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    OR_REAL(fd, SEVERAL(parts, count), offset, false, preadv2, fd, parts, count, offset, flags);
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    OR_REAL(fd, SEVERAL(parts, count), offset, false, preadv64v2, fd, parts, count, offset, flags);
}

/* Programs built with _FORTIFY_SOURCE call these; the headers do not declare them to everybody. */
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    ssize_t result;
    if (size <= room && through(fd, ONE(buffer, size), AT_POSITION, false, &result))
        return result;
    return REAL(__read_chk)(fd, buffer, size, room);
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room)
{
    ssize_t result;
    if (size <= room && through(fd, ONE(buffer, size), offset == -1 ? -2 : offset, false, &result))
        return result;
    return REAL(__pread_chk)(fd, buffer, size, offset, room);
}

EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room)
{
    ssize_t result;
    if (size <= room && through(fd, ONE(buffer, size), offset == -1 ? -2 : offset, false, &result))
        return result;
    return REAL(__pread64_chk)(fd, buffer, size, offset, room);
}

/* ---- asynchronous calls: on files that are not buffered from then on ---- */

#define ASYNCHRONOUS(name, block_t)                                                          \
    EXPORT int name(struct block_t *block)                                                  \
    {                                                                                       \
        return sbb_simple(block->aio_fildes, SBB_DIRECT) == FAILED ? -1 : REAL(name)(block); \
    }
ASYNCHRONOUS(aio_write, aiocb)
ASYNCHRONOUS(aio_write64, aiocb64)
ASYNCHRONOUS(aio_read, aiocb)
ASYNCHRONOUS(aio_read64, aiocb64)

#define ASYNCHRONOUS_LIST(name, block_t)                                                     \
    EXPORT int name(int mode, struct block_t *const blocks[], int count, struct sigevent *event) \
    {                                                                                       \
        for (int i = 0; i < count; i++)                                                     \
            if (blocks[i] != NULL && sbb_simple(blocks[i]->aio_fildes, SBB_DIRECT) == FAILED) \
                return -1;                                                                  \
        return REAL(name)(mode, blocks, count, event);                                      \
    }
ASYNCHRONOUS_LIST(lio_listio, aiocb)
ASYNCHRONOUS_LIST(lio_listio64, aiocb64)
