/* After a crash: write what is in the log to the target.
 *
 * A file is found by its path, inode number and time of creation; if it was renamed, by a search of the target. Data of a
 * file that is not there any more is kept in FOLDER/orphans: it was acknowledged, so it is not for us to delete it.
 *
 * Nothing in FOLDER/log is believed without its checksum. What was left out is told in one line; files that are no
 * segments of this log are kept in FOLDER/left-out.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

struct found {
    struct log_header header;
    char *path;
};

static struct found *founds;
static size_t found_count, found_room;
static int log_fd; /* of the folder */
static struct {
    uint64_t records, bytes, files;
    char first[PATH_MAX]; /* the file of the first record, if that is known */
} left_out;

/* ---- reading the log ---- */

static void remember(const struct log_header *header, const char *path)
{
    char *copy = strdup(path);
    if (found_count == found_room) {
        found_room = found_room == 0 ? 1024 : 2 * found_room;
        founds = realloc(founds, found_room * sizeof *founds);
    }
    if (copy == NULL || founds == NULL)
        give_up("out of memory");
    founds[found_count++] = (struct found){*header, copy};
}

/* False at the end of the file, and where the device cannot read it. */
static bool read_whole(int fd, void *to, size_t size, uint64_t place)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)(place + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* The data of a record, or NULL if it is not what was written. */
static const char *data_of(int fd, const struct log_header *header)
{
    static char data[SBB_SLICE];
    uint64_t place = header->place + sizeof *header + header->path_length;
    bool whole = header->length <= sizeof data && read_whole(fd, data, header->length, place)
                 && header->data_crc == crc32c(0, data, header->length);
    return whole ? data : NULL;
}

static void leave_out(const char *path, uint64_t bytes)
{
    if (left_out.records++ == 0)
        snprintf(left_out.first, sizeof left_out.first, "%s", path);
    left_out.bytes += bytes;
}

static bool is_empty(const char *block, size_t size)
{
    while (size > 0 && *block == '\0')
        block++, size--;
    return size == 0;
}

/* Look at the record at this place and return its size, 0 if its header is not valid. Whether the data is in the target
 * already stands outside of the checksum, and has two values only. */
static uint64_t examine(int fd, uint64_t place, uint64_t instance, uint64_t number)
{
    struct log_header header;
    char path[PATH_MAX];
    if (!read_whole(fd, &header, sizeof header, place) || header.magic != LOG_MAGIC || header.instance != instance
        || header.segment != number || header.place != place || header.path_length >= sizeof path
        || !read_whole(fd, path, header.path_length, place + sizeof header)
        || header.crc != log_header_crc(&header, path))
        return 0;
    path[header.path_length] = '\0';
    if (header.done == 0 && data_of(fd, &header) != NULL)
        remember(&header, path);
    else if (header.done != LOG_DONE)
        leave_out(path, header.length);
    return sizeof header + header.path_length + (uint64_t)header.length;
}

/* Returns how many valid records it has. What is not valid counts once, up to the next valid one. */
static unsigned read_records(int fd, uint64_t size, uint64_t instance, uint64_t number)
{
    char block[LOG_ALIGN];
    unsigned count = 0;
    bool lost = false;
    for (uint64_t place = LOG_ALIGN; place < size;) {
        uint64_t whole = examine(fd, place, instance, number);
        size_t rest = size - place < sizeof block ? size - place : sizeof block;
        if (whole == 0 && !lost && !(read_whole(fd, block, rest, place) && is_empty(block, rest))) {
            lost = true;
            leave_out("", 0);
        } else if (whole != 0) {
            lost = false;
            count++;
        }
        place += whole == 0 ? LOG_ALIGN : (whole + LOG_ALIGN - 1) / LOG_ALIGN * LOG_ALIGN;
    }
    return count;
}

/* False if the file is no segment of this log. `instance` is that of the daemon that wrote the log, or 0. */
static bool read_segment(const char *name, uint64_t instance)
{
    struct stat status;
    struct segment_header header = {0};
    char canonical[32];
    uint64_t number = strtoull(name, NULL, 10);
    snprintf(canonical, sizeof canonical, "%020llu", (unsigned long long)number);
    int fd = openat(log_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || strcmp(name, canonical) != 0) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool titled = read_whole(fd, &header, sizeof header, 0);
    bool created = titled && !is_empty((const char *)&header, sizeof header); /* else it was being created */
    bool matches = header.magic == SEGMENT_MAGIC && header.number == number;
    if (instance == 0)
        instance = header.instance;
    matches = matches && header.instance == instance;
    uint64_t before = left_out.records;
    unsigned count = !created ? 0 : read_records(fd, (uint64_t)status.st_size, instance, number);
    close(fd);
    if (created && !matches && count == 0)
        left_out.records = before; /* they are somebody else's */
    return !created || matches || count > 0;
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
    strcpy(path, found->path);
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
    char name[32];
    snprintf(name, sizeof name, "%020llu", (unsigned long long)header->segment);
    int segment = openat(log_fd, name, O_RDONLY | O_CLOEXEC);
    const char *data = segment < 0 ? NULL : data_of(segment, header);
    if (segment >= 0)
        close(segment);
    if (data == NULL) { /* it was valid a moment ago */
        leave_out(found->path, header->length);
        return true;
    }
    for (uint32_t done = 0; done < header->length;) {
        ssize_t written = pwrite(fd, data + done, header->length - done, (off_t)(header->offset + done));
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

/* ---- the whole ---- */

static void keep_foreign(const char *name)
{
    char folder[PATH_MAX + 16], path[PATH_MAX + 300];
    snprintf(folder, sizeof folder, "%s/left-out", state.settings.folder);
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/%.250s", folder, name);
    int failed = renameat2(log_fd, name, AT_FDCWD, path, RENAME_NOREPLACE);
    for (int i = 1; failed != 0 && errno == EEXIST && i < 10000; i++) { /* an earlier one of that name */
        snprintf(path, sizeof path, "%s/%.250s.%d", folder, name, i);
        failed = renameat2(log_fd, name, AT_FDCWD, path, RENAME_NOREPLACE);
    }
    left_out.files++;
    if (failed != 0) /* it would be in the way of a new segment */
        give_up("%s/log/%s: is not part of the log, and cannot be moved to %s: %s; move it away", state.settings.folder,
                name, path, strerror(errno));
}

static void tell_left_out(void)
{
    const char *of = left_out.first[0] == '\0' ? "" : ", the first of ";
    if (left_out.records + left_out.files > 0)
        say("left out of the log: %llu records that are damaged or were not finished (%llu bytes or more%s%s), and %llu "
            "files that are not part of it and are kept in %s/left-out",
            (unsigned long long)left_out.records, (unsigned long long)left_out.bytes, of, left_out.first,
            (unsigned long long)left_out.files, state.settings.folder);
}

static void read_log(uint64_t instance)
{
    struct dirent **names;
    int count = scandirat(log_fd, ".", &names, NULL, alphasort);
    if (count < 0)
        give_up("%s/log: %s", state.settings.folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !read_segment(name, instance))
            keep_foreign(name);
        free(names[i]);
    }
    free(names);
}

static void remove_segments(void)
{
    DIR *log = fdopendir(dup(log_fd));
    if (log == NULL)
        give_up("%s/log: %s", state.settings.folder, strerror(errno));
    rewinddir(log);
    for (struct dirent *entry; (entry = readdir(log)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(log_fd, entry->d_name, 0);
    closedir(log);
}

bool recover(void)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/log", state.settings.folder);
    log_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log_fd < 0)
        give_up("%s: %s", path, strerror(errno));
    read_log(pending_instance());
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
    tell_left_out();
    if (complete)
        remove_segments();
    close(log_fd);
    if (found_count > 0 && complete)
        say("recovered %llu bytes from the log", (unsigned long long)state.counters.recovered_bytes);
    for (size_t i = 0; i < found_count; i++)
        free(founds[i].path);
    free(founds);
    return complete;
}
