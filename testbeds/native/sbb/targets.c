/* Settings of the library: what is below the target, and what the daemon's folder tells. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quantity.h"
#include "libsbb.h"

static char target[PATH_MAX];
static size_t target_length;
static dev_t target_device;
static char folder[PATH_MAX];
static uint64_t timeout_s = 60, wait_s;
static _Atomic(pid_t) owner; /* 0: the library does nothing */
static atomic_bool said, met;

void *sbb_next(_Atomic(void *) *found, const char *name)
{
    void *function = atomic_load_explicit(found, memory_order_acquire);
    if (function == NULL) {
        int saved = errno;
        function = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(found, function, memory_order_release);
        errno = saved;
    }
    return function;
}

/* A child of vfork shares this memory but not the descriptors: it must leave the connections alone. */
bool sbb_active(void)
{
    pid_t process = atomic_load_explicit(&owner, memory_order_relaxed);
    return process != 0 && process == getpid();
}

/* After a fork: the child may use the library, too. */
void sbb_own(void)
{
    if (atomic_load(&owner) != 0)
        atomic_store(&owner, getpid());
}

const char *sbb_folder(void)
{
    return folder;
}

uint64_t sbb_timeout_s(void)
{
    return timeout_s;
}

uint64_t sbb_wait_s(void)
{
    return wait_s;
}

bool sbb_on_target_device(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_dev == target_device;
}

bool sbb_path_below_target(const char *path)
{
    return strncmp(path, target, target_length) == 0 && path[target_length] == '/';
}

void sbb_say_once(const char *text)
{
    if (!atomic_exchange(&said, true))
        dprintf(STDERR_FILENO, "libsbb: %s\n", text);
}

bool sbb_pending(void)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/pending", folder);
    return access(path, F_OK) == 0 || (met && errno != ENOENT && errno != ENOTDIR);
}

/* This process, or the one that it was forked from, has used the daemon. */
void sbb_met(void)
{
    met = true;
}

/* ---- start ---- */

static bool read_target(const char *path)
{
    struct stat status;
    if (path[0] != '/' || realpath(path, target) == NULL || stat(target, &status) != 0 || !S_ISDIR(status.st_mode)) {
        dprintf(STDERR_FILENO, "libsbb: SBB_TARGET: '%.200s' is not the absolute path of a folder; not buffered\n", path);
        return false;
    }
    target_length = strlen(target);
    target_device = status.st_dev;
    return true;
}

static bool read_seconds(const char *name, uint64_t *seconds)
{
    const char *text = getenv(name);
    if (text == NULL || parse_quantity(text, 0, 1000000, seconds))
        return true;
    dprintf(STDERR_FILENO, "libsbb: %s: '%.40s' is not a number of seconds; not buffered\n", name, text);
    return false;
}

void sbb_start(void)
{
    const char *where = getenv("SBB_FOLDER"), *what = getenv("SBB_TARGET");
    if (what == NULL || *what == '\0')
        return;
    if (where == NULL || where[0] != '/' || strlen(where) >= sizeof folder) {
        dprintf(STDERR_FILENO, "libsbb: SBB_FOLDER must be the absolute path of the daemon's folder; not buffered\n");
        return;
    }
    strcpy(folder, where);
    if (read_target(what) && read_seconds("SBB_TIMEOUT_S", &timeout_s) && read_seconds("SBB_WAIT_S", &wait_s)
        && links_start())
        atomic_store(&owner, getpid());
}
