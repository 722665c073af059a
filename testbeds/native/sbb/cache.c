/* The index of what is in RAM and on flash, and the room there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "sbbd.h"
#include "serve.h"

#define BUCKETS 16384
#define CLEAN_RECORDS 256 /* of one stripe: with more, to look through them costs more than it saves */

static LIST_HEAD(, stripe) stripes[BUCKETS];

void cache_start(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&state.flash_work, &attributes);
    pthread_condattr_destroy(&attributes);
    TAILQ_INIT(&state.ram_queue);
    TAILQ_INIT(&state.ram_clean);
    TAILQ_INIT(&state.flash_queue);
    TAILQ_INIT(&state.segments);
}

uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void wait_in_hurry(void)
{
    if (state.hurry++ == 0)
        pthread_cond_broadcast(&state.flash_work);
    pthread_cond_wait(&state.changed, &state.lock);
    state.hurry--;
}

/* ---- stripes ---- */

static uint64_t bucket_of(const struct file *file, uint64_t number)
{
    return (file->id * UINT64_C(0x9E3779B97F4A7C15) + number) % BUCKETS;
}

struct stripe *stripe_find(struct file *file, uint64_t number)
{
    struct stripe *stripe;
    LIST_FOREACH(stripe, &stripes[bucket_of(file, number)], by_key)
        if (stripe->file == file && stripe->number == number)
            return stripe;
    return NULL;
}

static struct stripe *stripe_get(struct file *file, uint64_t number)
{
    struct stripe *stripe = stripe_find(file, number);
    if (stripe == NULL && (stripe = calloc(1, sizeof *stripe)) != NULL) {
        stripe->file = file;
        stripe->number = number;
        TAILQ_INIT(&stripe->dirty);
        TAILQ_INIT(&stripe->clean);
        LIST_INSERT_HEAD(&stripes[bucket_of(file, number)], stripe, by_key);
        LIST_INSERT_HEAD(&file->stripes, stripe, of_file);
    }
    return stripe;
}

void stripe_free_if_unused(struct stripe *stripe)
{
    if (!TAILQ_EMPTY(&stripe->dirty) || !TAILQ_EMPTY(&stripe->clean) || stripe->draining)
        return;
    if (stripe->waiting)
        TAILQ_REMOVE(&state.flash_queue, stripe, turn);
    LIST_REMOVE(stripe, by_key);
    LIST_REMOVE(stripe, of_file);
    free(stripe);
}

/* Give the stripe to the flash destagers if its oldest record may be written. */
void stripe_enqueue(struct stripe *stripe)
{
    const struct record *oldest = TAILQ_FIRST(&stripe->dirty);
    if (oldest == NULL || !oldest->ready || stripe->draining || stripe->waiting || stripe->file->closed_to_drains)
        return;
    stripe->waiting = true;
    stripe->waiting_since_ms = now_ms();
    TAILQ_INSERT_TAIL(&state.flash_queue, stripe, turn);
    pthread_cond_signal(&state.flash_work);
}

/* ---- records ---- */

static void release_copies(struct record *record)
{
    if (record->ram != NULL) {
        free(record->ram);
        cache_unreserve(record->length + RECORD_COST);
    }
    free(record);
}

void record_pin(struct record *record)
{
    record->pins++;
    if (record->segment != NULL)
        record->segment->pins++;
}

void record_unpin(struct record *record)
{
    record->pins--;
    if (record->segment != NULL)
        record->segment->pins--;
    if (record->pins == 0 && record->dropped)
        release_copies(record);
}

static void set_dirty(struct record *record, bool dirty)
{
    uint64_t before = state.dirty;
    state.dirty = dirty ? before + 1 : before - 1;
    record->stripe->file->dirty += dirty ? 1 : (uint64_t)-1;
    if (dirty && !state.pending) { /* removed once a second, if nothing is dirty then */
        state.pending = true;
        pending_set(true);
    }
}

/* Take a record out of the index; its copies go when nobody uses them any more. */
void record_drop(struct record *record)
{
    struct stripe *stripe = record->stripe;
    if (record->done) {
        TAILQ_REMOVE(&stripe->clean, record, of_stripe);
        stripe->clean_records--;
    } else {
        TAILQ_REMOVE(&stripe->dirty, record, of_stripe);
        set_dirty(record, false);
    }
    if (record->in_queue)
        TAILQ_REMOVE(&state.ram_queue, record, turn);
    else if (record->ram != NULL && record->ready)
        TAILQ_REMOVE(&state.ram_clean, record, in_ram);
    stripe->file->queued -= record->ready ? 0 : 1;
    stripe->file->unlogged -= record->ready && !record->done && record->segment == NULL ? 1 : 0;
    if (record->segment != NULL) {
        TAILQ_REMOVE(&record->segment->records, record, of_segment);
        record->segment->undone -= record->done ? 0 : 1;
    }
    stripe->file->records--;
    file_tell_slot(stripe->file);
    record->dropped = true;
    if (record->pins == 0)
        release_copies(record);
    stripe_free_if_unused(stripe);
}

static bool overlap(const struct record *a, const struct record *b)
{
    return a->offset < b->offset + b->length && b->offset < a->offset + a->length;
}

/* Put a record in as the newest of its stripe. The stripe is given by the offset; the record may not leave it. */
struct record *cache_insert(struct file *file, uint64_t offset, uint32_t length, char *ram)
{
    struct record *record = calloc(1, sizeof *record);
    struct stripe *stripe = record == NULL ? NULL : stripe_get(file, offset / STRIPE);
    if (stripe == NULL) {
        free(record);
        return NULL;
    }
    record->stripe = stripe;
    record->offset = offset;
    record->length = length;
    record->ram = ram;
    record->sequence = ++state.sequence;
    TAILQ_INSERT_TAIL(&stripe->dirty, record, of_stripe);
    for (struct record *old = TAILQ_FIRST(&stripe->clean), *after; old != NULL; old = after) {
        after = TAILQ_NEXT(old, of_stripe);
        if (overlap(old, record))
            record_drop(old);
    }
    file->records++;
    file->queued++;
    set_dirty(record, true);
    file_tell_slot(file);
    return record;
}

void cache_submit(struct record *record)
{
    record->in_queue = true;
    TAILQ_INSERT_TAIL(&state.ram_queue, record, turn);
    pthread_cond_signal(&state.ram_work);
    if (record->stripe->file->closed_to_drains) /* somebody waits for it, to drop it */
        pthread_cond_broadcast(&state.changed);
}

void cache_ready(struct record *record)
{
    record->ready = true;
    record->stripe->file->queued--;
    record->stripe->file->unlogged += record->segment == NULL ? 1 : 0;
    TAILQ_INSERT_TAIL(&state.ram_clean, record, in_ram);
    stripe_enqueue(record->stripe);
    pthread_cond_broadcast(&state.changed);
}

/* The data of this record is in the target. It stays as a clean copy unless a newer record overlaps it. */
void cache_finish(struct record *record)
{
    struct stripe *stripe = record->stripe;
    bool covered = stripe->clean_records >= CLEAN_RECORDS;
    for (struct record *newer = TAILQ_NEXT(record, of_stripe); newer != NULL && !covered;
         newer = TAILQ_NEXT(newer, of_stripe))
        covered = overlap(newer, record);
    TAILQ_REMOVE(&stripe->dirty, record, of_stripe);
    TAILQ_INSERT_TAIL(&stripe->clean, record, of_stripe);
    stripe->clean_records++;
    set_dirty(record, false);
    record->done = true;
    if (record->segment != NULL) {
        record->segment->undone--;
        record->segment->marked = true;
    } else {
        stripe->file->unlogged--;
    }
    if (covered || (record->ram == NULL && record->segment == NULL))
        record_drop(record);
}

/* ---- room in RAM ---- */

void cache_unreserve(uint64_t bytes)
{
    state.ram_used -= bytes;
    pthread_cond_broadcast(&state.changed);
}

static bool may_leave_ram(const struct record *record)
{
    return record->pins == 0 && (record->segment != NULL || record->done);
}

/* Remove copies from RAM, the oldest first, until no more than this is used. */
void ram_evict_above(uint64_t bytes)
{
    struct record *record, *after;
    for (record = TAILQ_FIRST(&state.ram_clean); record != NULL && state.ram_used > bytes; record = after) {
        after = TAILQ_NEXT(record, in_ram);
        if (!may_leave_ram(record))
            continue;
        if (record->segment == NULL) {
            record_drop(record);
            continue;
        }
        TAILQ_REMOVE(&state.ram_clean, record, in_ram);
        free(record->ram);
        record->ram = NULL;
        cache_unreserve(record->length + RECORD_COST);
    }
}

int cache_reserve(uint64_t bytes, struct file *file)
{
    uint64_t size = state.settings.ram_cache;
    for (bool waited = false;;) {
        if (file->error != 0)
            return file->error;
        if (state.ram_used + bytes > size)
            ram_evict_above(size - bytes);
        if (!file->closed_to_writes && state.ram_used + bytes <= size)
            break;
        if (state.stuck != 0)
            return state.stuck;
        state.counters.ram_waits += waited || file->closed_to_writes ? 0 : 1;
        waited = true;
        wait_in_hurry();
    }
    state.ram_used += bytes;
    return 0;
}

/* ---- waiting for a file ---- */

int cache_wait_flushed(struct file *file)
{
    while (file->dirty > 0 && file->error == 0)
        wait_in_hurry();
    return file->dirty > 0 ? file->error : 0;
}

int cache_wait_logged(struct file *file)
{
    while (file->queued + file->unlogged > 0 && file->error == 0)
        wait_in_hurry();
    return file->error;
}

void cache_drop_clean(struct file *file)
{
    struct stripe *stripe, *next_stripe;
    for (stripe = LIST_FIRST(&file->stripes); stripe != NULL; stripe = next_stripe) {
        next_stripe = LIST_NEXT(stripe, of_file);
        struct record *record, *after;
        for (record = TAILQ_FIRST(&stripe->clean); record != NULL; record = after) {
            after = TAILQ_NEXT(record, of_stripe);
            record_drop(record); /* the last one may take the stripe along */
        }
    }
}

/* Drop what is neither being appended nor written at this moment. */
static void drop_idle(struct stripe *stripe)
{
    struct record *record, *after;
    for (record = TAILQ_FIRST(&stripe->dirty); record != NULL; record = after) {
        after = TAILQ_NEXT(record, of_stripe);
        if (record->appending || !(record->ready || record->in_queue))
            continue;
        if (record->segment != NULL) /* or recovery would bring it back */
            log_mark_done(record), record->segment->marked = true;
        request_part_ended(record, 0);
        record_drop(record);
    }
}

/* Further writes wait from now on until cache_open. */
void cache_close(struct file *file)
{
    while (file->closed_to_writes)
        pthread_cond_wait(&state.changed, &state.lock);
    file->closed_to_writes = true;
}

void cache_open(struct file *file)
{
    file->closed_to_writes = false;
    pthread_cond_broadcast(&state.changed);
}

/* Everything that is buffered of the closed file is worthless: it is being truncated, or was deleted. */
void cache_discard(struct file *file)
{
    file->closed_to_drains = true;
    while (file->dirty > 0) {
        while (file->draining > 0)
            pthread_cond_wait(&state.changed, &state.lock);
        struct stripe *stripe, *after;
        for (stripe = LIST_FIRST(&file->stripes); stripe != NULL; stripe = after) {
            after = LIST_NEXT(stripe, of_file);
            drop_idle(stripe);
        }
        if (file->dirty > 0)
            pthread_cond_wait(&state.changed, &state.lock);
    }
    cache_drop_clean(file);
    file->closed_to_drains = false;
}
