/* The destagers: from RAM to the log on flash, and from there to the target. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sbbd.h"
#include "serve.h"

#define BATCH 256   /* records that a flash destager takes at a time */
#define REST_MS 20 /* a stripe waits so long for more records, which are then written together */

/* ---- RAM to flash ---- */

/* Take the next record, with a place in the log; NULL at the end. The place comes first, so that a record that was taken
 * does not wait for anything. */
static struct record *take_record(void)
{
    for (uint64_t waited_for = 0;;) {
        struct record *record = TAILQ_FIRST(&state.ram_queue);
        if (record == NULL) {
            if (state.ended)
                return NULL;
            pthread_cond_wait(&state.ram_work, &state.lock);
        } else if (log_reserve(record, state.rescue)) {
            TAILQ_REMOVE(&state.ram_queue, record, turn);
            record->in_queue = false;
            record->appending = true;
            return record;
        } else if (state.stuck != 0 && record->request != NULL) { /* not acknowledged yet, and there is no room */
            request_part_ended(record, state.stuck);
            record_drop(record);
        } else {
            state.counters.flash_waits += record->sequence != waited_for;
            waited_for = record->sequence;
            wait_in_hurry();
        }
    }
}

void *ram_destager(void *unused)
{
    pthread_mutex_lock(&state.lock);
    for (struct record *record; (record = take_record()) != NULL;) {
        struct segment *segment = record->segment;
        if (segment != NULL) {
            pthread_mutex_unlock(&state.lock);
            int error = log_append(record);
            pthread_mutex_lock(&state.lock);
            segment->appending--;
            segment->unsynced = true;
            if (error != 0) {
                say("the log cannot be written: %s; data goes to the target directly", strerror(error));
                log_forget(record);
            }
        }
        record->appending = false;
        if (record->segment != NULL)
            request_part_ended(record, 0);
        cache_ready(record);
        ram_evict_above(state.settings.ram_cache * state.settings.ram_threshold_percent / 100);
    }
    pthread_mutex_unlock(&state.lock);
    return unused;
}

/* ---- flash to target ---- */

struct batch {
    struct record *records[BATCH];
    unsigned count;
    char *scratch; /* room for the data of all of them */
};

/* The oldest records of the stripe, up to the first that is not in the log yet: what is newer may overlap it. */
static void collect(struct stripe *stripe, struct batch *batch)
{
    size_t bytes = 0;
    struct record *record;
    batch->count = 0;
    TAILQ_FOREACH(record, &stripe->dirty, of_stripe) {
        bytes += record->length;
        if (!record->ready || batch->count == BATCH || bytes > SBB_SLICE)
            break;
        record_pin(record);
        batch->records[batch->count++] = record;
    }
}

static int write_parts(int fd, struct iovec *parts, int count, uint64_t offset)
{
    while (count > 0) {
        ssize_t written = pwritev(fd, parts, count, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        offset += (uint64_t)written;
        for (; count > 0 && (size_t)written >= parts->iov_len; parts++, count--)
            written -= (ssize_t)parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    return 0;
}

/* Write the records in their order; those that follow each other in the file in one call. */
static int write_batch(int fd, struct batch *batch)
{
    struct iovec parts[BATCH];
    char *room = batch->scratch;
    for (unsigned first = 0, i = 0; i < batch->count; i++) {
        struct record *record = batch->records[i];
        char *data = record->ram;
        if (data == NULL) {
            int error = log_read(record, 0, record->length, room);
            if (error != 0)
                return error;
            data = room;
            room += record->length;
        }
        parts[i - first] = (struct iovec){data, record->length};
        bool last = i + 1 == batch->count || batch->records[i + 1]->offset != record->offset + record->length;
        if (last) {
            int error = write_parts(fd, parts, (int)(i - first + 1), batch->records[first]->offset);
            if (error != 0)
                return error;
            first = i + 1;
        }
    }
    return 0;
}

/* Without the lock. The log gives data up only after the target has it on its device. */
static int drain(struct file *file, struct batch *batch)
{
    int error = write_batch(file->fd, batch);
    if (error == 0) {
        file_restore_modified(file);
        error = fdatasync(file->fd) != 0 ? errno : 0;
    }
    file_note_change(file);
    for (unsigned i = 0; error == 0 && i < batch->count; i++)
        if (batch->records[i]->segment != NULL)
            log_mark_done(batch->records[i]);
    return error;
}

static void finish_batch(struct batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++) {
        struct record *record = batch->records[i];
        state.counters.drained_bytes += record->length;
        request_part_ended(record, 0);
        cache_finish(record);
        record_unpin(record);
    }
    state.counters.drains++;
}

static void fail_batch(struct file *file, struct batch *batch, int error)
{
    if (file->error != error)
        say("%s: %s; the data stays in the log and is tried again", file->path, strerror(error));
    file->error = state.stuck = error;
    state.counters.target_errors++;
    for (unsigned i = 0; i < batch->count; i++) {
        request_part_ended(batch->records[i], error);
        record_unpin(batch->records[i]);
    }
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    pthread_mutex_lock(&state.lock);
}

static void drain_stripe(struct stripe *stripe, struct batch *batch)
{
    struct file *file = stripe->file;
    stripe->draining = true;
    file->draining++;
    collect(stripe, batch);
    pthread_mutex_unlock(&state.lock);
    int error = drain(file, batch);
    pthread_mutex_lock(&state.lock);
    if (error == 0) {
        file->error = state.stuck = 0;
        finish_batch(batch);
    } else {
        fail_batch(file, batch, error);
    }
    stripe->draining = false;
    file->draining--;
    stripe_enqueue(stripe);
    stripe_free_if_unused(stripe);
    file_free_if_unused(file);
    log_remove_above(state.settings.flash_cache * state.settings.flash_threshold_percent / 100);
    pthread_cond_broadcast(&state.changed);
}

/* The next stripe to write, NULL at the end. The first in the queue has waited longest. */
static struct stripe *take_stripe(void)
{
    for (;;) {
        struct stripe *stripe = TAILQ_FIRST(&state.flash_queue);
        uint64_t ripe_ms = stripe == NULL ? 0 : stripe->waiting_since_ms + REST_MS;
        if (stripe == NULL && state.ended)
            return NULL;
        if (stripe == NULL) {
            pthread_cond_wait(&state.flash_work, &state.lock);
        } else if (state.hurry == 0 && now_ms() < ripe_ms) {
            struct timespec until = {(time_t)(ripe_ms / 1000), (long)(ripe_ms % 1000 * 1000000)};
            pthread_cond_timedwait(&state.flash_work, &state.lock, &until);
        } else {
            TAILQ_REMOVE(&state.flash_queue, stripe, turn);
            stripe->waiting = false;
            if (!TAILQ_EMPTY(&state.flash_queue)) /* this one may have had the signals of several */
                pthread_cond_signal(&state.flash_work);
            return stripe;
        }
    }
}

void *flash_destager(void *unused)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL || (batch->scratch = malloc(SBB_SLICE)) == NULL)
        give_up("out of memory");
    pthread_mutex_lock(&state.lock);
    for (struct stripe *stripe; (stripe = take_stripe()) != NULL;)
        if (!stripe->file->closed_to_drains)
            drain_stripe(stripe, batch);
    pthread_mutex_unlock(&state.lock);
    free(batch->scratch);
    free(batch);
    return unused;
}
