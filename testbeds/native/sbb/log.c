/* The log on flash: segments FOLDER/log/NUMBER, each a sequence of records.
 *
 * A record is a header, the path of its file, and the data, and begins at a multiple of ALIGN. Several destagers append
 * at a time, so after a crash there may be gaps between valid records; recovery looks at every multiple of ALIGN. The
 * header holds its own place and a number drawn at the start, so data that looks like a header is not taken for one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crc.h"
#include "log.h"

static char log_folder[PATH_MAX + 8];
static uint64_t segment_bytes, last_number;
static bool folder_unsynced;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + LOG_ALIGN - 1) / LOG_ALIGN * LOG_ALIGN;
}

uint64_t log_size(const struct record *record)
{
    return round_up(sizeof(struct log_header) + strlen(record->stripe->file->path) + record->length);
}

void log_start(void)
{
    snprintf(log_folder, sizeof log_folder, "%s/log", state.settings.folder);
    if (mkdir(log_folder, 0700) != 0 && errno != EEXIST)
        give_up("%s: %s", log_folder, strerror(errno));
    segment_bytes = round_up(state.settings.flash_cache / 16);
    if (segment_bytes < 2 * SBB_SLICE)
        segment_bytes = 2 * SBB_SLICE;
    if (segment_bytes > 64 * SBB_SLICE)
        segment_bytes = 64 * SBB_SLICE;
}

/* ---- segments ---- */

static void path_of(uint64_t number, char *path, size_t room)
{
    snprintf(path, room, "%s/%020llu", log_folder, (unsigned long long)number);
}

static void segment_remove(struct segment *segment)
{
    struct record *record, *after;
    for (record = TAILQ_FIRST(&segment->records); record != NULL; record = after) {
        after = TAILQ_NEXT(record, of_segment);
        TAILQ_REMOVE(&segment->records, record, of_segment);
        record->segment = NULL;
        if (record->ram == NULL)
            record_drop(record);
    }
    char path[PATH_MAX + 64];
    path_of(segment->number, path, sizeof path);
    unlink(path);
    close(segment->fd);
    TAILQ_REMOVE(&state.segments, segment, order);
    state.segment_count--;
    free(segment);
}

static bool is_removable(const struct segment *segment)
{
    return segment->undone == 0 && segment->pins == 0 && segment->appending == 0;
}

/* The oldest segment of which everything is in the target, but for the one that is being filled. */
static struct segment *removable(void)
{
    struct segment *segment;
    TAILQ_FOREACH(segment, &state.segments, order)
        if (is_removable(segment) && TAILQ_NEXT(segment, order) != NULL)
            return segment;
    return NULL;
}

void log_remove_above(uint64_t bytes)
{
    struct segment *segment;
    while (state.segment_count * segment_bytes > bytes && (segment = removable()) != NULL)
        segment_remove(segment);
}

void log_remove_all(void)
{
    struct segment *segment, *after;
    for (segment = TAILQ_FIRST(&state.segments); segment != NULL; segment = after) {
        after = TAILQ_NEXT(segment, order);
        if (is_removable(segment))
            segment_remove(segment);
    }
}

static int write_segment_header(int fd, uint64_t number)
{
    char block[LOG_ALIGN] = {0};
    struct segment_header header = {.magic = SEGMENT_MAGIC, .instance = state.instance, .number = number};
    memcpy(block, &header, sizeof header);
    return pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block ? 0 : -1;
}

/* The names of new segments and of the file `pending` must survive a loss of power, too. */
static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static struct segment *segment_create(void)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL)
        return NULL;
    char path[PATH_MAX + 64];
    segment->number = ++last_number;
    path_of(segment->number, path, sizeof path);
    segment->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (segment->fd < 0 || write_segment_header(segment->fd, segment->number) != 0) {
        say("%s: %s; data goes to the target directly", path, strerror(errno));
        if (segment->fd >= 0) {
            close(segment->fd);
            unlink(path);
        }
        free(segment);
        return NULL;
    }
    folder_unsynced = true;
    segment->used = LOG_ALIGN;
    TAILQ_INIT(&segment->records);
    TAILQ_INSERT_TAIL(&state.segments, segment, order);
    state.segment_count++;
    return segment;
}

/* ---- appending ---- */

/* A place for the record. True with no segment: there is room, but the log cannot be written. */
bool log_reserve(struct record *record, bool beyond_limit)
{
    struct segment *segment = TAILQ_LAST(&state.segments, segment_list);
    uint64_t bytes = log_size(record);
    if (segment == NULL || segment->used + bytes > segment_bytes) {
        if (!beyond_limit)
            log_remove_above(state.settings.flash_cache - segment_bytes);
        if (!beyond_limit && (state.segment_count + 1) * segment_bytes > state.settings.flash_cache)
            return false;
        segment = segment_create();
    }
    record->segment = segment;
    if (segment != NULL) {
        record->place = segment->used;
        record->data_place = record->place + sizeof(struct log_header) + strlen(record->stripe->file->path);
        segment->used += bytes;
        segment->undone++;
        segment->appending++;
        segment->pins += record->pins; /* by readers of the copy in RAM */
        TAILQ_INSERT_TAIL(&segment->records, record, of_segment);
    }
    return true;
}

void log_forget(struct record *record)
{
    TAILQ_REMOVE(&record->segment->records, record, of_segment);
    record->segment->undone--;
    record->segment->pins -= record->pins;
    record->segment = NULL;
}

static void fill_header(struct log_header *header, const struct record *record)
{
    const struct file *file = record->stripe->file;
    *header = (struct log_header){
        .magic = LOG_MAGIC,
        .instance = state.instance,
        .segment = record->segment->number,
        .place = record->place,
        .sequence = record->sequence,
        .inode = file->inode,
        .born_ns = file->born_ns,
        .offset = record->offset,
        .length = record->length,
        .path_length = (uint32_t)strlen(file->path),
        .data_crc = crc32c(0, record->ram, record->length),
    };
    header->crc = log_header_crc(header, file->path);
}

int log_append(struct record *record)
{
    struct log_header header;
    fill_header(&header, record);
    struct iovec parts[3] = {{&header, sizeof header},
                             {record->stripe->file->path, header.path_length},
                             {record->ram, record->length}};
    size_t left = sizeof header + header.path_length + record->length;
    uint64_t place = record->place;
    for (int first = 0; left > 0;) {
        ssize_t written = pwritev(record->segment->fd, parts + first, 3 - first, (off_t)place);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        left -= (size_t)written;
        place += (uint64_t)written;
        for (; first < 3 && (size_t)written >= parts[first].iov_len; first++)
            written -= (ssize_t)parts[first].iov_len;
        if (first < 3) {
            parts[first].iov_base = (char *)parts[first].iov_base + written;
            parts[first].iov_len -= (size_t)written;
        }
    }
    return 0;
}

/* From now on recovery leaves this record alone. */
void log_mark_done(struct record *record)
{
    const uint32_t done = LOG_DONE;
    uint64_t place = record->place + offsetof(struct log_header, done);
    if (pwrite(record->segment->fd, &done, sizeof done, (off_t)place) != (ssize_t)sizeof done)
        say("the log cannot be written: %s; after a crash data may be written to the target again", strerror(errno));
}

int log_read(struct record *record, uint32_t from, uint32_t length, char *to)
{
    uint64_t place = record->data_place + from;
    while (length > 0) {
        ssize_t got = pread(record->segment->fd, to, length, (off_t)place);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        to += got;
        place += (uint64_t)got;
        length -= (uint32_t)got;
    }
    return 0;
}

/* What was appended so far survives a loss of power; with `marks` also which records are done. */
int log_sync(bool marks)
{
    int error = 0;
    for (struct segment *segment = TAILQ_FIRST(&state.segments), *after; segment != NULL; segment = after) {
        if (segment->unsynced || (marks && segment->marked)) {
            segment->unsynced = segment->marked = false;
            segment->pins++;
            pthread_mutex_unlock(&state.lock);
            int failed = fdatasync(segment->fd) != 0 ? errno : 0;
            pthread_mutex_lock(&state.lock);
            segment->pins--;
            error = failed != 0 ? failed : error;
        }
        after = TAILQ_NEXT(segment, order);
    }
    if (folder_unsynced) {
        folder_unsynced = false;
        pthread_mutex_unlock(&state.lock);
        sync_folder(log_folder);
        sync_folder(state.settings.folder);
        pthread_mutex_lock(&state.lock);
    }
    return error;
}

static void path_of_pending(char *path, size_t room)
{
    snprintf(path, room, "%s/pending", state.settings.folder);
}

/* A file that tells clients whether the target is complete without this daemon, and the next daemon whose log it is. */
void pending_set(bool pending)
{
    char path[PATH_MAX + 16];
    path_of_pending(path, sizeof path);
    if (!pending) {
        unlink(path);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("%s: %s", path, strerror(errno));
    dprintf(fd, "%016llx\n", (unsigned long long)state.instance); /* without it recovery believes the segments */
    close(fd);
    folder_unsynced = true;
}

/* The instance of the daemon that has left data in the log; 0 if that is not known. */
uint64_t pending_instance(void)
{
    char path[PATH_MAX + 16], text[32] = "", *end = text;
    path_of_pending(path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    uint64_t instance = got == 17 ? strtoull(text, &end, 16) : 0;
    return end == text + 16 ? instance : 0;
}
