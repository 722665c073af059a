/* What clients can ask for. Each operation is called with the lock held and answers its request, now or later. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "serve.h"

static void answer(struct request *request, int error)
{
    request->answer.error = error;
    request_answer(request);
}

/* ---- connecting, files ---- */

/* The daemon gives the slice its size, for a client may be under RLIMIT_FSIZE. The client cannot shrink it later, so to
 * use it never fails. */
static int hello(struct request *request)
{
    if (request->fd < 0 || request->connection->slice != NULL || ftruncate(request->fd, SBB_SLICE) != 0
        || fcntl(request->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return EINVAL;
    char *slice = mmap(NULL, SBB_SLICE, PROT_READ | PROT_WRITE, MAP_SHARED, request->fd, 0);
    if (slice == MAP_FAILED)
        return errno;
    request->connection->slice = slice;
    request->answer.flags = state.settings.acknowledge_in_ram ? SBB_RAM_MODE : 0;
    return 0;
}

static int register_file(struct request *request)
{
    int error;
    struct file *file = request->fd < 0 ? NULL : file_of_descriptor(request->fd, &error);
    if (file == NULL)
        return request->fd < 0 ? EMFILE : error == EBADF ? EIO : error; /* EBADF means something else to clients */
    if (!session_remember(request->connection->session, file->id)) {
        file_release(file);
        return ENOMEM;
    }
    request->answer.file = file->id;
    request->answer.slot = file->slot;
    return 0;
}

static int release_file(struct request *request, struct file *file)
{
    int error = state.settings.acknowledge_in_ram ? cache_wait_logged(file) : file->error;
    if (session_forget(request->connection->session, file->id))
        file_release(file);
    return error;
}

/* ---- writing ---- */

struct writing {
    struct file *file;
    uint64_t offset, length;
    const char *data;
    struct record *records[2];
    char *copies[2];
    unsigned count;
};

static uint32_t part_length(const struct writing *writing, uint64_t at)
{
    uint64_t left = writing->offset + writing->length - at, room = STRIPE - at % STRIPE;
    return (uint32_t)(left < room ? left : room);
}

static void undo_copies(struct writing *writing)
{
    uint64_t at = writing->offset;
    for (unsigned i = 0; i < writing->count; i++) {
        uint32_t length = part_length(writing, at);
        free(writing->copies[i]);
        cache_unreserve(length + RECORD_COST);
        at += length;
    }
    writing->count = 0;
}

/* Copy the data into RAM, a part for each stripe. With the lock, which it releases meanwhile. */
static int copy_in(struct writing *writing)
{
    int error = 0;
    for (uint64_t at = writing->offset; error == 0 && at < writing->offset + writing->length;) {
        uint32_t length = part_length(writing, at);
        error = cache_reserve(length + RECORD_COST, writing->file);
        if (error != 0)
            break;
        pthread_mutex_unlock(&state.lock);
        char *copy = malloc(length);
        if (copy != NULL)
            memcpy(copy, writing->data + (at - writing->offset), length);
        pthread_mutex_lock(&state.lock);
        writing->copies[writing->count++] = copy;
        error = copy == NULL ? ENOMEM : 0;
        at += length;
    }
    if (error != 0)
        undo_copies(writing);
    return error;
}

/* Put the copies into the index, unless the file is not buffered any more. */
static int insert(struct writing *writing)
{
    while (writing->file->closed_to_writes)
        pthread_cond_wait(&state.changed, &state.lock);
    if (writing->file->direct) {
        undo_copies(writing);
        return EAGAIN;
    }
    uint64_t at = writing->offset;
    for (unsigned i = 0; i < writing->count; i++) {
        uint32_t length = part_length(writing, at);
        writing->records[i] = cache_insert(writing->file, at, length, writing->copies[i]);
        if (writing->records[i] == NULL)
            give_up("out of memory");
        at += length;
    }
    return 0;
}

/* The size of the file and its time of change follow at once; what does not work is taken back. */
static int make_visible(struct writing *writing, uint64_t size)
{
    struct file *file = writing->file;
    uint64_t end = writing->offset + writing->length;
    pthread_mutex_unlock(&state.lock);
    int error = end > size ? file_grow(file, end, writing->data[writing->length - 1]) : 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    file_set_modified(file, &now, end <= size);
    file_note_change(file);
    pthread_mutex_lock(&state.lock);
    for (unsigned i = 0; error != 0 && i < writing->count; i++)
        record_drop(writing->records[i]);
    return error;
}

static int size_of(const struct file *file, uint64_t *size)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return errno;
    *size = (uint64_t)status.st_size;
    return 0;
}

/* With file->growth: nobody else changes the size by this daemon. */
static int insert_and_grow(struct writing *writing, bool append)
{
    uint64_t size = 0;
    int error = size_of(writing->file, &size);
    if (error == 0 && append) {
        writing->offset = size;
        error = copy_in(writing);
    }
    if (error == 0)
        error = insert(writing);
    else if (!append)
        undo_copies(writing);
    return error != 0 ? error : make_visible(writing, size);
}

static void write_file(struct request *request, struct file *file)
{
    const struct sbb_request *asked = &request->asked;
    struct writing writing = {file, asked->offset, asked->length, request->connection->slice, {0}, {0}, 0};
    bool append = (asked->flags & SBB_APPEND) != 0;
    int error = append ? 0 : copy_in(&writing);
    if (error == 0) {
        pthread_mutex_unlock(&state.lock);
        pthread_mutex_lock(&file->growth);
        pthread_mutex_lock(&state.lock);
        error = insert_and_grow(&writing, append);
        pthread_mutex_unlock(&file->growth);
    }
    request->answer.value = writing.offset;
    if (error != 0) {
        request->answer.flags = error == EAGAIN ? SBB_BYPASS : 0;
        answer(request, error == EAGAIN ? 0 : error);
        return;
    }
    state.counters.writes++;
    state.counters.written_bytes += writing.length;
    bool wait = !state.settings.acknowledge_in_ram;
    request->parts = wait ? writing.count : 0;
    for (unsigned i = 0; i < writing.count; i++) {
        writing.records[i]->request = wait ? request : NULL;
        cache_submit(writing.records[i]);
    }
    if (!wait)
        answer(request, 0);
}

/* ---- waiting, truncating ---- */

static int sync_file(struct request *request, struct file *file)
{
    int error = cache_wait_logged(file);
    request->answer.value = file->dirty > 0;
    return error != 0 || file->dirty == 0 ? error : log_sync(false);
}

static int flush(struct file *file, bool direct)
{
    cache_close(file);
    bool buffered = file->records > 0;
    int error = cache_wait_flushed(file);
    if (error == 0) {
        cache_drop_clean(file);
        file->direct = file->direct || direct;
        file_tell_slot(file);
        error = buffered ? log_sync(true) : 0;
    }
    cache_open(file);
    return error;
}

static int truncate_file(struct file *file, uint64_t wanted)
{
    uint64_t size = 0;
    cache_close(file);
    bool buffered = file->records > 0;
    int error = size_of(file, &size);
    if (error == 0 && wanted == 0)
        cache_discard(file);
    else if (error == 0 && wanted < size)
        error = cache_wait_flushed(file);
    if (error == 0 && wanted < size) {
        cache_drop_clean(file);
        error = buffered ? log_sync(true) : 0;
    }
    pthread_mutex_unlock(&state.lock);
    if (error == 0 && ftruncate(file->fd, (off_t)wanted) != 0)
        error = errno;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    file_set_modified(file, &now, false);
    file_note_change(file);
    pthread_mutex_lock(&state.lock);
    if (error == 0 && wanted == 0)
        file->error = 0;
    cache_open(file);
    return error;
}

static int set_times(const struct sbb_request *asked, struct file *file)
{
    struct timespec times[2] = {{asked->times[0], asked->times[1]}, {asked->times[2], asked->times[3]}};
    pthread_mutex_unlock(&state.lock);
    pthread_mutex_lock(&file->times);
    int error = futimens(file->fd, times) != 0 ? errno : 0;
    struct stat status;
    if (error == 0 && fstat(file->fd, &status) == 0)
        file->modified = status.st_mtim;
    pthread_mutex_unlock(&file->times);
    file_note_change(file);
    pthread_mutex_lock(&state.lock);
    return error;
}

/* ---- the daemon as a whole ---- */

static int drain_all(void)
{
    while (state.dirty > 0 && state.stuck == 0)
        wait_in_hurry();
    return state.dirty > 0 ? state.stuck : 0;
}

static void tell_status(struct request *request)
{
    const struct counters *c = &state.counters;
    int length = snprintf(
        request->connection->slice, SBB_SLICE,
        "{\"mode\": \"%s\", \"writes\": %llu, \"written_bytes\": %llu, \"drains\": %llu, \"drained_bytes\": %llu, "
        "\"reads\": %llu, \"ram_read_bytes\": %llu, \"flash_read_bytes\": %llu, \"ram_waits\": %llu, "
        "\"flash_waits\": %llu, \"recovered_bytes\": %llu, \"target_errors\": %llu, \"ram_used\": %llu, "
        "\"flash_segments\": %u, \"dirty_records\": %llu}\n",
        state.settings.acknowledge_in_ram ? "ram" : "flash", (unsigned long long)c->writes,
        (unsigned long long)c->written_bytes, (unsigned long long)c->drains, (unsigned long long)c->drained_bytes,
        (unsigned long long)c->reads, (unsigned long long)c->ram_read_bytes, (unsigned long long)c->flash_read_bytes,
        (unsigned long long)c->ram_waits, (unsigned long long)c->flash_waits,
        (unsigned long long)c->recovered_bytes, (unsigned long long)c->target_errors,
        (unsigned long long)state.ram_used, state.segment_count, (unsigned long long)state.dirty);
    request->answer.value = (uint64_t)length;
}

static int without_file(struct request *request)
{
    if (request->asked.operation == SBB_HELLO)
        return hello(request);
    if (request->connection->slice == NULL)
        return EPROTO;
    if (request->asked.operation == SBB_REGISTER)
        return register_file(request);
    if (request->asked.operation == SBB_DRAIN)
        return drain_all();
    if (request->asked.operation == SBB_STATUS)
        return tell_status(request), 0;
    if (request->asked.operation == SBB_STOP) {
        state.stop_asked = true;
        return 0;
    }
    return EPROTO;
}

static int with_file(struct request *request, struct file *file)
{
    const struct sbb_request *asked = &request->asked;
    switch (asked->operation) {
    case SBB_READ:
        return cache_read(file, asked->offset, (uint32_t)asked->length, request->connection->slice,
                          &request->answer.value);
    case SBB_SYNC:
        return sync_file(request, file);
    case SBB_FLUSH:
    case SBB_DIRECT:
        return flush(file, asked->operation == SBB_DIRECT);
    case SBB_TRUNCATE:
        return truncate_file(file, asked->offset);
    case SBB_TIMES:
        request->answer.value = 1;
        return set_times(asked, file);
    case SBB_RELEASE:
        return release_file(request, file);
    default:
        return EPROTO;
    }
}

void operate(struct request *request)
{
    const struct sbb_request *asked = &request->asked;
    bool moves_data = asked->operation == SBB_WRITE || asked->operation == SBB_READ;
    struct file *file = asked->operation == SBB_TIMES ? file_by_inode((dev_t)asked->offset, asked->file)
                                                      : file_by_id(asked->file);
    bool needs_file = asked->operation >= SBB_RELEASE && asked->operation <= SBB_TIMES;
    if (!needs_file) {
        answer(request, without_file(request));
    } else if (request->connection->slice == NULL || (moves_data && (asked->length == 0 || asked->length > SBB_SLICE))) {
        answer(request, EPROTO);
    } else if (file == NULL) {
        answer(request, asked->operation == SBB_TIMES ? 0 : EBADF);
    } else {
        file->uses++;
        int error = moves_data && state.stopping && !file->direct ? flush(file, true) : 0;
        if (error != 0 || (moves_data && file->direct)) {
            request->answer.flags = SBB_BYPASS;
            answer(request, error);
        } else if (asked->operation == SBB_WRITE)
            write_file(request, file);
        else
            answer(request, with_file(request, file));
        file->uses--;
        file_free_if_unused(file);
    }
}
