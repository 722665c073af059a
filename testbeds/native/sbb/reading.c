/* Reading through the buffer: the target, then clean copies, then what is not in the target yet, the newest last. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sbbd.h"

struct pieces {
    struct record **records;
    size_t count, room;
    uint64_t start, end;
};

static bool add(struct pieces *pieces, struct record *record)
{
    if (record->offset >= pieces->end || record->offset + record->length <= pieces->start)
        return true;
    if (pieces->count == pieces->room) {
        size_t room = pieces->room == 0 ? 64 : 2 * pieces->room;
        struct record **more = realloc(pieces->records, room * sizeof *more);
        if (more == NULL)
            return false;
        pieces->records = more;
        pieces->room = room;
    }
    record_pin(record);
    pieces->records[pieces->count++] = record;
    return true;
}

static bool gather(struct file *file, struct pieces *pieces)
{
    for (uint64_t number = pieces->start / STRIPE; number <= (pieces->end - 1) / STRIPE; number++) {
        struct stripe *stripe = stripe_find(file, number);
        struct record *record;
        if (stripe == NULL)
            continue;
        TAILQ_FOREACH(record, &stripe->clean, of_stripe)
            if (!add(pieces, record))
                return false;
        TAILQ_FOREACH(record, &stripe->dirty, of_stripe)
            if (!add(pieces, record))
                return false;
    }
    return true;
}

/* True if the copies hold every byte, so that the target need not be read. */
static bool complete(const struct pieces *pieces)
{
    uint64_t at = pieces->start;
    for (bool moved = true; at < pieces->end && moved;) {
        moved = false;
        for (size_t i = 0; i < pieces->count; i++) {
            const struct record *record = pieces->records[i];
            if (record->offset <= at && at < record->offset + record->length) {
                at = record->offset + record->length;
                moved = true;
            }
        }
    }
    return at >= pieces->end;
}

static int read_target(int fd, const struct pieces *pieces, char *to)
{
    uint64_t at = pieces->start;
    memset(to, 0, pieces->end - pieces->start); /* for the part of a hole at the end that another process cuts off */
    while (at < pieces->end) {
        ssize_t got = pread(fd, to + (at - pieces->start), pieces->end - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        at += (uint64_t)got;
    }
    return 0;
}

static int copy_pieces(const struct pieces *pieces, char *to, uint64_t *from_ram, uint64_t *from_flash)
{
    for (size_t i = 0; i < pieces->count; i++) {
        struct record *record = pieces->records[i];
        uint64_t start = record->offset > pieces->start ? record->offset : pieces->start;
        uint64_t end = record->offset + record->length;
        end = end < pieces->end ? end : pieces->end;
        uint32_t skip = (uint32_t)(start - record->offset), length = (uint32_t)(end - start);
        if (record->ram != NULL) {
            memcpy(to + (start - pieces->start), record->ram + skip, length);
            *from_ram += length;
            continue;
        }
        int error = log_read(record, skip, length, to + (start - pieces->start));
        if (error != 0)
            return error;
        *from_flash += length;
    }
    return 0;
}

int cache_read(struct file *file, uint64_t offset, uint32_t length, char *to, uint64_t *got)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return errno;
    file_check_unchanged(file, &status);
    uint64_t size = (uint64_t)status.st_size;
    *got = offset >= size ? 0 : size - offset < length ? size - offset : length;
    if (*got == 0)
        return 0;
    struct pieces pieces = {.start = offset, .end = offset + *got};
    int error = gather(file, &pieces) ? 0 : ENOMEM;
    uint64_t from_ram = 0, from_flash = 0;
    pthread_mutex_unlock(&state.lock);
    if (error == 0 && !complete(&pieces))
        error = read_target(file->fd, &pieces, to);
    if (error == 0)
        error = copy_pieces(&pieces, to, &from_ram, &from_flash);
    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < pieces.count; i++)
        record_unpin(pieces.records[i]);
    free(pieces.records);
    state.counters.reads++;
    state.counters.ram_read_bytes += from_ram;
    state.counters.flash_read_bytes += from_flash;
    return error;
}
