/* After a crash: write what is in the log to the target.
 *
 * A file is found by its path, inode number and time of creation; if it was renamed, by a search of the target. Data of a
 * file that is not there any more is kept in FOLDER/orphans: it was acknowledged, so it is not for us to delete it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"

struct found {
    struct log_header header;
    const char *path, *data;
};

static struct found *founds;
static size_t found_count, found_room;

/* ---- reading the log ---- */

static void remember(const struct log_header *header, const char *path, const char *data)
{
    if (found_count == found_room) {
        found_room = found_room == 0 ? 1024 : 2 * found_room;
        founds = realloc(founds, found_room * sizeof *founds);
        if (founds == NULL)
            give_up("out of memory");
    }
    founds[found_count++] = (struct found){*header, path, data};
}

/* The size of the valid record at this place, 0 if there is none. */
static uint64_t examine(const char *log, uint64_t size, uint64_t place, const struct segment_header *segment)
{
    struct log_header header;
    if (size - place < sizeof header)
        return 0;
    memcpy(&header, log + place, sizeof header);
    uint64_t whole = sizeof header + header.path_length + (uint64_t)header.length;
    if (header.magic != LOG_MAGIC || header.instance != segment->instance || header.segment != segment->number
        || header.place != place || header.path_length >= PATH_MAX || whole > size - place)
        return 0;
    const char *path = log + place + sizeof header, *data = path + header.path_length;
    if (header.crc != log_header_crc(&header, path) || header.data_crc != crc32c(0, data, header.length))
        return 0;
    if (header.done != LOG_DONE)
        remember(&header, path, data);
    return whole;
}

/* The segment stays mapped: the records point into it. */
static void read_segment(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        give_up("%s/log/%s: %s", state.settings.folder, name, strerror(errno));
    uint64_t size = (uint64_t)status.st_size;
    const char *log = size < LOG_ALIGN ? NULL : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (log == MAP_FAILED)
        give_up("%s/log/%s: %s", state.settings.folder, name, strerror(errno));
    struct segment_header segment = {0};
    if (log != NULL)
        memcpy(&segment, log, sizeof segment);
    if (segment.magic != SEGMENT_MAGIC)
        return; /* it was being created: no record was acknowledged in it */
    for (uint64_t place = LOG_ALIGN; place < size;) {
        uint64_t whole = examine(log, size, place, &segment);
        place += whole == 0 ? LOG_ALIGN : (whole + LOG_ALIGN - 1) / LOG_ALIGN * LOG_ALIGN;
    }
}

/* ---- finding the files ---- */

static bool is_the_file(int fd, const struct log_header *header)
{
    struct stat status;
    int64_t born_ns;
    return fstat(fd, &status) == 0 && status.st_ino == header->inode && born_of(fd, &born_ns) == 0
           && born_ns == header->born_ns;
}

static int open_if_same(const char *path, const struct log_header *header)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && !is_the_file(fd, header)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

static const struct log_header *wanted; /* by the search */
static char wanted_path[PATH_MAX];

static int compare_inode(const char *path, const struct stat *status, int kind, struct FTW *unused)
{
    (void)unused;
    if (kind != FTW_F || status->st_ino != wanted->inode || strlen(path) >= sizeof wanted_path)
        return 0;
    int fd = open_if_same(path, wanted);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd >= 0)
        close(fd);
    strcpy(wanted_path, path);
    return 1;
}

static int open_orphan(const struct log_header *header, const char *path)
{
    char folder[PATH_MAX + 16], name[PATH_MAX + 512];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%s/orphans", state.settings.folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return -1;
    snprintf(name, sizeof name, "%s/%.200s.%llu", folder, slash == NULL ? path : slash + 1,
             (unsigned long long)header->inode);
    say("%s was deleted; what was written to it last is kept in %s", path, name);
    return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int open_file(const struct found *found, char *path)
{
    memcpy(path, found->path, found->header.path_length);
    path[found->header.path_length] = '\0';
    int fd = open_if_same(path, &found->header);
    if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EISDIR))
        return fd;
    wanted = &found->header;
    int result = nftw(state.settings.target, compare_inode, 32, FTW_PHYS);
    if (result < 0)
        return -1;
    if (result == 1) {
        strcpy(path, wanted_path);
        return open_if_same(wanted_path, &found->header);
    }
    return open_orphan(&found->header, path);
}

/* ---- writing ---- */

static int by_file(const void *left, const void *right)
{
    const struct log_header *a = &((const struct found *)left)->header, *b = &((const struct found *)right)->header;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    if (a->born_ns != b->born_ns)
        return a->born_ns < b->born_ns ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static bool write_found(int fd, const struct found *found)
{
    const struct log_header *header = &found->header;
    for (uint32_t done = 0; done < header->length;) {
        ssize_t written = pwrite(fd, found->data + done, header->length - done, (off_t)(header->offset + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        done += (uint32_t)written;
    }
    state.counters.recovered_bytes += header->length;
    return true;
}

/* Write the records of one file, the oldest first. Its time of change stays that of the write. */
static bool recover_file(const struct found *first, size_t count)
{
    char path[PATH_MAX];
    struct stat status = {0};
    int fd = open_file(first, path);
    bool written = fd >= 0 && fstat(fd, &status) == 0;
    for (size_t i = 0; written && i < count; i++)
        written = write_found(fd, first + i);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status.st_mtim};
    if (written)
        futimens(fd, times);
    written = written && fsync(fd) == 0;
    if (!written)
        say("%s: %s; the data stays in the log", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return written;
}

static bool is_segment(const char *name)
{
    return name[0] != '.' && strspn(name, "0123456789") == strlen(name);
}

bool recover(void)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/log", state.settings.folder);
    DIR *log = opendir(path);
    if (log == NULL)
        give_up("%s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(log)) != NULL;)
        if (is_segment(entry->d_name))
            read_segment(dirfd(log), entry->d_name);
    if (found_count > 0)
        qsort(founds, found_count, sizeof *founds, by_file);
    bool complete = true;
    for (size_t first = 0, after; first < found_count; first = after) {
        for (after = first + 1; after < found_count; after++)
            if (founds[after].header.inode != founds[first].header.inode
                || founds[after].header.born_ns != founds[first].header.born_ns)
                break;
        complete = recover_file(founds + first, after - first) && complete;
    }
    rewinddir(log);
    for (struct dirent *entry; complete && (entry = readdir(log)) != NULL;)
        if (is_segment(entry->d_name))
            unlinkat(dirfd(log), entry->d_name, 0);
    closedir(log);
    free(founds);
    if (found_count > 0 && complete)
        say("recovered %llu bytes from the log", (unsigned long long)state.counters.recovered_bytes);
    return complete;
}
