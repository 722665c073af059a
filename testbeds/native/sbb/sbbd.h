/* The burst buffer daemon: its state and what its parts offer each other.
 *
 * A write becomes one or two records (one for each stripe of its file that it touches). A record goes through
 *
 *     poller -> queue -> worker: copied into RAM -> RAM destager: appended to the log on flash
 *            -> flash destager: written to the target, marked as done in the log
 *
 * and is acknowledged when it is in RAM or when it is in the log, as the mode says. What was copied on stays as a clean
 * copy until room is needed or the cache is fuller than its threshold.
 *
 * Order: the records of a stripe are a list, the newest last. One flash destager at a time has a stripe and writes its
 * records in the order of the list, so an older write never replaces a newer one. A clean record overlaps no other record
 * of its stripe; that is why it may be dropped at any time.
 *
 * One lock guards all of it; data is copied, read and written without it.
 */
#ifndef SBBD_H
#define SBBD_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>

#include "protocol.h"

#define STRIPE SBB_SLICE
#define RECORD_COST 256 /* bytes of bookkeeping of a record, counted as part of the RAM cache */

struct settings {
    uint64_t rdma_pollers, workers, ram_destagers, flash_destagers;
    uint64_t ram_cache, ram_threshold_percent, flash_cache, flash_threshold_percent;
    bool acknowledge_in_ram;
    char folder[PATH_MAX], target[PATH_MAX];
};

struct request; /* serve.h */

struct file {
    uint64_t id, slot, inode;
    int64_t born_ns; /* with the inode number it names the file, also after a restart; 0 if unknown */
    dev_t device;
    int fd;
    char *path;
    unsigned registrations; /* by processes that have it open */
    unsigned uses;          /* by requests that are being answered */
    uint64_t records, dirty;   /* known of it; of these, not in the target */
    uint64_t queued, unlogged; /* of these, still on the way to the log; without a place there because it failed */
    unsigned draining;         /* stripes that are being written to the target */
    int error;              /* of the last attempt to write to the target */
    bool direct, closed_to_writes, closed_to_drains;
    struct timespec changed; /* st_ctim after our own last change */
    struct timespec modified; /* what st_mtim should be; guarded by times */
    pthread_mutex_t times, growth;
    LIST_HEAD(, stripe) stripes;
    LIST_ENTRY(file) by_id, by_inode;
};

TAILQ_HEAD(record_list, record);

struct stripe {
    struct file *file;
    uint64_t number;
    struct record_list dirty, clean;
    unsigned clean_records;
    bool draining, waiting; /* waiting: in the queue of the flash destagers */
    uint64_t waiting_since_ms;
    LIST_ENTRY(stripe) by_key, of_file;
    TAILQ_ENTRY(stripe) turn;
};

struct record {
    struct stripe *stripe;
    uint64_t offset, sequence;
    uint32_t length;
    bool ready; /* may be written to the target */
    bool done;  /* is in the target */
    bool appending, in_queue, dropped;
    unsigned pins; /* by readers and destagers: its copies must stay */
    char *ram;
    struct segment *segment;
    uint64_t place, data_place; /* of its header and its data in the segment */
    struct request *request; /* to be acknowledged */
    TAILQ_ENTRY(record) of_stripe, in_ram, of_segment, turn;
};

struct segment {
    uint64_t number, used;
    int fd;
    unsigned undone, pins, appending;
    bool unsynced, marked; /* has records, or marks, that are not on the device yet */
    struct record_list records;
    TAILQ_ENTRY(segment) order;
};

struct counters {
    uint64_t writes, written_bytes, drains, drained_bytes, reads, ram_read_bytes, flash_read_bytes;
    uint64_t ram_waits, flash_waits, recovered_bytes, target_errors;
};

struct state {
    struct settings settings;
    pthread_mutex_t lock;
    pthread_cond_t ram_work, flash_work, changed;
    uint64_t ram_used, sequence, dirty, instance;
    unsigned hurry; /* somebody waits for the flash destagers */
    int stuck; /* the error of the target, while every attempt fails */
    bool pending, stop_asked, stopping, ended;
    bool rescue; /* at the end the log may become larger than its limit */
    struct record_list ram_queue; /* to be appended to the log */
    struct record_list ram_clean; /* have a copy in RAM that may be dropped, the oldest first */
    TAILQ_HEAD(, stripe) flash_queue;
    TAILQ_HEAD(segment_list, segment) segments; /* the newest last: it is being filled */
    unsigned segment_count;
    struct counters counters;
    struct sbb_shared *shared;
    int shared_memory;
};

extern struct state state;

/* settings.c */
bool read_settings(struct settings *settings, int count, char **words, const char **action);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* files.c; all with the lock held unless it says otherwise */
void files_start(void);
struct file *file_of_descriptor(int fd, int *error); /* counts a registration; releases the lock meanwhile */
void file_check_unchanged(struct file *file, const struct stat *status);
struct file *file_by_id(uint64_t id);
struct file *file_by_inode(dev_t device, uint64_t inode);
void file_release(struct file *file); /* one registration less */
void file_free_if_unused(struct file *file);
void files_tidy(void);
void file_tell_slot(struct file *file);
void file_note_change(struct file *file); /* without the lock */
void file_set_modified(struct file *file, const struct timespec *when, bool write_through); /* without the lock */
void file_restore_modified(struct file *file);                                              /* without the lock */
int file_grow(struct file *file, uint64_t end, char last); /* without the lock; with file->growth */
int born_of(int fd, int64_t *born_ns);

/* cache.c; with the lock held */
void cache_start(void);
uint64_t now_ms(void);
void wait_in_hurry(void); /* for a change that flash destagers make */
int cache_reserve(uint64_t bytes, struct file *file); /* waits for room in RAM; 0 or an errno */
void cache_unreserve(uint64_t bytes);
struct record *cache_insert(struct file *file, uint64_t offset, uint32_t length, char *ram);
void cache_submit(struct record *record);
void cache_ready(struct record *record); /* it is in the log, or must go to the target without it */
void cache_finish(struct record *record); /* it is in the target */
void record_drop(struct record *record);
void record_pin(struct record *record);
void record_unpin(struct record *record);
void ram_evict_above(uint64_t bytes);
void stripe_enqueue(struct stripe *stripe);
void stripe_free_if_unused(struct stripe *stripe);
int cache_wait_flushed(struct file *file);
int cache_wait_logged(struct file *file);
void cache_close(struct file *file);
void cache_open(struct file *file);
void cache_discard(struct file *file);
void cache_drop_clean(struct file *file);
struct stripe *stripe_find(struct file *file, uint64_t number);

/* log.c */
void log_start(void);
uint64_t log_size(const struct record *record);
bool log_reserve(struct record *record, bool beyond_limit);   /* with the lock; false: no room */
void log_forget(struct record *record);                        /* with the lock: its place cannot be used */
int log_append(struct record *record);                        /* without the lock; 0 or an errno */
void log_mark_done(struct record *record);                    /* without the lock, pinned */
int log_read(struct record *record, uint32_t from, uint32_t length, char *to); /* without the lock, pinned */
void log_remove_above(uint64_t bytes);                        /* with the lock */
int log_sync(bool marks);                                     /* with the lock; releases it meanwhile */
void log_remove_all(void);
void pending_set(bool pending); /* with the lock */
uint64_t pending_instance(void);

/* recover.c */
bool recover(void); /* false: something is left in the log */

/* destage.c */
void *ram_destager(void *unused);
void *flash_destager(void *unused);

/* reading.c */
int cache_read(struct file *file, uint64_t offset, uint32_t length, char *to, uint64_t *got); /* with the lock */

#endif
