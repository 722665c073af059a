/* The files of the target that the daemon holds open. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sbbd.h"

#define BUCKETS 8192

static LIST_HEAD(, file) by_id[BUCKETS], by_inode[BUCKETS];
static uint64_t last_id;
static uint64_t free_slots[SBB_SLOTS], free_slot_count;

void files_start(void)
{
    for (uint64_t slot = SBB_SLOTS; slot-- > 0;)
        free_slots[free_slot_count++] = slot;
}

struct file *file_by_id(uint64_t id)
{
    struct file *file;
    LIST_FOREACH(file, &by_id[id % BUCKETS], by_id)
        if (file->id == id)
            return file;
    return NULL;
}

struct file *file_by_inode(dev_t device, uint64_t inode)
{
    struct file *file;
    LIST_FOREACH(file, &by_inode[inode % BUCKETS], by_inode)
        if (file->inode == inode && file->device == device)
            return file;
    return NULL;
}

/* When a file was created: an inode number may be used again, so it does not name a file alone. */
int born_of(int fd, int64_t *born_ns)
{
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0)
        return errno;
    bool known = (status.stx_mask & STATX_BTIME) != 0;
    *born_ns = known ? status.stx_btime.tv_sec * INT64_C(1000000000) + status.stx_btime.tv_nsec : 0;
    return 0;
}

static bool below_target(const char *path)
{
    size_t length = strlen(state.settings.target);
    return strncmp(path, state.settings.target, length) == 0 && path[length] == '/';
}

/* A description of our own: it does not append, and it can be read and written whatever the program may do. */
static struct file *file_open(int fd, const struct stat *status, int *error)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    struct file *file = calloc(1, sizeof *file);
    if (file == NULL || !below_target(path)) {
        free(file);
        *error = file == NULL ? ENOMEM : EXDEV;
        return NULL;
    }
    file->fd = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY);
    *error = file->fd < 0 ? errno : born_of(file->fd, &file->born_ns);
    file->path = strdup(path);
    if (*error != 0 || file->path == NULL) {
        if (file->fd >= 0)
            close(file->fd);
        free(file->path);
        free(file);
        return NULL;
    }
    file->inode = status->st_ino;
    file->device = status->st_dev;
    file->changed = status->st_ctim;
    file->modified = status->st_mtim;
    pthread_mutex_init(&file->times, NULL);
    pthread_mutex_init(&file->growth, NULL);
    LIST_INIT(&file->stripes);
    return file;
}

static void file_close(struct file *file)
{
    close(file->fd);
    pthread_mutex_destroy(&file->times);
    pthread_mutex_destroy(&file->growth);
    free(file->path);
    free(file);
}

/* Somebody who does not use the buffer has changed the file: clean copies of it are out of date. */
void file_check_unchanged(struct file *file, const struct stat *status)
{
    if (status->st_ctim.tv_sec != file->changed.tv_sec || status->st_ctim.tv_nsec != file->changed.tv_nsec) {
        cache_drop_clean(file);
        file->changed = status->st_ctim;
    }
}

static void file_add(struct file *file)
{
    file->id = ++last_id;
    file->slot = free_slots[--free_slot_count];
    LIST_INSERT_HEAD(&by_id[file->id % BUCKETS], file, by_id);
    LIST_INSERT_HEAD(&by_inode[file->inode % BUCKETS], file, by_inode);
    file_tell_slot(file);
}

struct file *file_of_descriptor(int fd, int *error)
{
    struct stat status;
    *error = fstat(fd, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
    if (*error != 0)
        return NULL;
    struct file *file = file_by_inode(status.st_dev, status.st_ino);
    if (file == NULL) {
        pthread_mutex_unlock(&state.lock);
        struct file *opened = file_open(fd, &status, error);
        pthread_mutex_lock(&state.lock);
        file = file_by_inode(status.st_dev, status.st_ino); /* somebody else may have been faster */
        if (opened == NULL)
            return NULL;
        if (file != NULL || free_slot_count == 0) {
            file_close(opened);
            *error = ENFILE;
        } else {
            file = opened;
            file_add(file);
        }
        if (file == NULL)
            return NULL;
    }
    file_check_unchanged(file, &status);
    *error = 0;
    file->registrations++;
    return file;
}

void file_tell_slot(struct file *file)
{
    uint64_t word = file->records * SBB_COPY + (file->direct ? SBB_DIRECT_BIT : 0);
    atomic_store(&state.shared->words[file->slot], word);
}

void file_free_if_unused(struct file *file)
{
    if (file->registrations > 0 || file->uses > 0 || file->records > 0 || file->draining > 0)
        return;
    LIST_REMOVE(file, by_id);
    LIST_REMOVE(file, by_inode);
    atomic_store(&state.shared->words[file->slot], 0);
    free_slots[free_slot_count++] = file->slot;
    file_close(file);
}

static bool is_deleted(const struct file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && status.st_nlink == 0;
}

/* Nobody can see a file that is deleted and closed, so nothing of it needs to be written. */
static void forget_deleted(struct file *file)
{
    if (file->registrations == 0 && file->uses == 0 && file->records > 0 && is_deleted(file)) {
        file->uses++;
        cache_close(file);
        cache_discard(file);
        cache_open(file);
        file->uses--;
    }
}

void file_release(struct file *file)
{
    if (file->registrations > 0)
        file->registrations--;
    file_free_if_unused(file);
}

/* Once a second: close files that were deleted after they had been closed, so that their space becomes free. */
void files_tidy(void)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct file *file = LIST_FIRST(&by_id[i]);
        while (file != NULL) {
            uint64_t id = file->id;
            forget_deleted(file); /* may release the lock for a moment */
            file = file_by_id(id);
            struct file *after = file == NULL ? NULL : LIST_NEXT(file, by_id);
            if (file != NULL)
                file_free_if_unused(file);
            file = after;
        }
    }
}

void file_note_change(struct file *file)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return;
    pthread_mutex_lock(&state.lock);
    struct timespec now = status.st_ctim, *known = &file->changed;
    if (now.tv_sec > known->tv_sec || (now.tv_sec == known->tv_sec && now.tv_nsec > known->tv_nsec))
        *known = now;
    pthread_mutex_unlock(&state.lock);
}

void file_set_modified(struct file *file, const struct timespec *when, bool write_through)
{
    pthread_mutex_lock(&file->times);
    file->modified = *when;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *when};
    if (write_through)
        futimens(file->fd, times);
    pthread_mutex_unlock(&file->times);
}

/* To write to the target late must not look like a change at that time. */
void file_restore_modified(struct file *file)
{
    pthread_mutex_lock(&file->times);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file->modified};
    futimens(file->fd, times);
    pthread_mutex_unlock(&file->times);
}

/* Let the file have its size at once, so that everybody sees it: write its last byte, which is never less than what is
 * there (ftruncate could cut off what somebody else has just appended). It also finds out about a full or read-only
 * target early. */
int file_grow(struct file *file, uint64_t end, char last)
{
    ssize_t written;
    do
        written = pwrite(file->fd, &last, 1, (off_t)(end - 1));
    while (written < 0 && errno == EINTR);
    return written == 1 ? 0 : errno;
}
