/* The files that this process has registered with the daemon, and requests about them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsbb.h"

#define FILES 1024 /* a file that hashes to a taken place takes it over */
#define TRIES 8    /* for a file that the daemon does not know any more */

static struct known files[FILES];

static struct known *place_of(dev_t device, ino_t inode)
{
    return &files[((uint64_t)inode * 31 + (uint64_t)device) % FILES];
}

static bool look_up(const struct stat *status, struct known *known)
{
    sigset_t before;
    sbb_enter(&before);
    const struct known *place = place_of(status->st_dev, status->st_ino);
    bool found = place->used && place->device == status->st_dev && place->inode == status->st_ino;
    if (found)
        *known = *place;
    sbb_leave(&before);
    return found;
}

/* Returns what was there before, to be released. */
static struct known put(const struct known *known)
{
    sigset_t before;
    sbb_enter(&before);
    struct known *place = place_of(known->device, known->inode), old = *place;
    *place = *known;
    sbb_leave(&before);
    return old;
}

static void forget(const struct known *known)
{
    sigset_t before;
    sbb_enter(&before);
    struct known *place = place_of(known->device, known->inode);
    if (place->used && place->file == known->file && place->instance == known->instance)
        place->used = false;
    sbb_leave(&before);
}

static void mark(const struct known *known, bool mapped, bool broken)
{
    sigset_t before;
    sbb_enter(&before);
    struct known *place = place_of(known->device, known->inode);
    if (place->used && place->file == known->file && place->instance == known->instance) {
        place->mapped = place->mapped || mapped;
        place->broken = place->broken || broken;
    }
    sbb_leave(&before);
}

void registry_forget_all(void)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].used)
            files[i].used = false;
}

static bool below_target(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return sbb_path_below_target(path);
}

/* ---- registering ---- */

static void release(const struct known *known)
{
    struct link *link = link_take();
    if (link == NULL)
        return;
    const struct sbb_request request = {.operation = SBB_RELEASE, .file = known->file};
    struct sbb_answer answer;
    if (link->instance != known->instance || link_ask(link, &request, -1, &answer) == 0)
        link_give(link);
    else
        link_break(link);
}

/* No daemon can be asked. It is safe to use the file directly only if all that was acknowledged is in the target. */
static enum belongs without_daemon(void)
{
    if (sbb_pending()) {
        sbb_say_once(errno == EACCES ? "the user of this process may not ask the daemon in SBB_FOLDER; start it as that user"
                                     : "the daemon is gone and has data that is not in SBB_TARGET yet; start sbbd again "
                                       "to recover it");
        errno = EIO;
        return BROKEN;
    }
    sbb_say_once("no daemon answers in SBB_FOLDER; files are written directly");
    return OTHER;
}

static enum belongs register_file(int fd, const struct stat *status, struct known *known)
{
    struct link *link = link_take();
    if (link == NULL)
        return without_daemon();
    const struct sbb_request request = {.operation = SBB_REGISTER};
    struct sbb_answer answer;
    int error = link_ask(link, &request, fd, &answer);
    if (error != 0) {
        link_break(link);
        return without_daemon();
    }
    *known = (struct known){.device = status->st_dev, .inode = status->st_ino, .file = answer.file,
                            .instance = answer.instance, .used = true, .ram = link->ram};
    known->word = &link->shared->words[answer.slot % SBB_SLOTS];
    link_give(link);
    if (answer.error != 0) /* for example a file that the daemon may not write to */
        return OTHER;
    struct known old = put(known);
    bool same = old.device == known->device && old.inode == known->inode && old.file == known->file;
    if (old.used && (!same || old.instance == known->instance)) /* `same`: two threads registered it */
        release(&old);
    return OURS;
}

enum belongs sbb_file(int fd, struct known *known)
{
    struct stat status;
    if (!sbb_active())
        return OTHER;
    int saved = errno;
    if (fstat(fd, &status) != 0 || !sbb_on_target_device(&status)) {
        errno = saved;
        return OTHER;
    }
    enum belongs belongs = OURS;
    if (look_up(&status, known)) {
        if (known->broken) {
            errno = EIO;
            return BROKEN;
        }
    } else {
        belongs = below_target(fd) ? register_file(fd, &status, known) : OTHER;
    }
    if (belongs != BROKEN)
        errno = saved;
    return belongs;
}

bool sbb_known(int fd, struct known *known)
{
    struct stat status;
    int saved = errno;
    bool found = sbb_active() && fstat(fd, &status) == 0 && sbb_on_target_device(&status) && look_up(&status, known);
    errno = saved;
    return found;
}

/* True if the daemon may hold data of the file that the target does not have, or not yet. */
bool sbb_has_copies(const struct known *known)
{
    uint64_t word = atomic_load(known->word);
    return word >= SBB_COPY || !link_alive(known->instance);
}

/* ---- requests ---- */

static enum outcome fail(const struct known *known, const char *why)
{
    mark(known, false, true);
    sbb_say_once(why);
    errno = EIO;
    return FAILED;
}

/* The daemon is gone. Wait for it to come back if that is wanted; DONE: try again, it is there. */
static enum outcome lost(const struct known *known)
{
    for (uint64_t waited = 0; sbb_pending() && waited < 20 * sbb_wait_s(); waited++) {
        struct link *link = known->ram ? NULL : link_take();
        if (link != NULL) {
            link_give(link);
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    struct link *link = link_take();
    if (link != NULL) {
        link_give(link);
        return DONE;
    }
    if (sbb_pending())
        return fail(known, "the daemon has died; start sbbd again to recover what it had acknowledged on flash");
    forget(known);
    sbb_say_once("the daemon has ended; files are written directly");
    return BYPASS;
}

/* Register the file again: the daemon has forgotten it, or it is another one, which has recovered the log of the first. */
static enum outcome renew(int fd, struct known *known, bool restarted)
{
    if (known->ram && restarted)
        return fail(known, "the daemon was started again and has lost what the old one held in RAM");
    forget(known);
    enum belongs belongs = sbb_file(fd, known);
    return belongs == OURS ? DONE : belongs == BROKEN ? FAILED : BYPASS;
}

/* By the kernel, which answers a wrong address with EFAULT, as read and write do. Some sandboxes forbid it. */
static bool copy_checked(char *slice, char *theirs, size_t size, bool writes)
{
    const struct iovec ours = {slice, size}, other = {theirs, size};
    ssize_t copied = writes ? process_vm_readv(getpid(), &ours, 1, &other, 1, 0)
                            : process_vm_writev(getpid(), &ours, 1, &other, 1, 0);
    if (copied < 0 && errno != EFAULT) {
        memcpy(writes ? slice : theirs, writes ? theirs : slice, size);
        return true;
    }
    return copied == (ssize_t)size;
}

/* Copy between the slice and the buffers of the program, from byte `skip` of these on. False: they are not readable. */
static bool transfer_copy(const struct transfer *transfer, char *slice, size_t length)
{
    size_t skip = transfer->skip;
    for (int i = 0; i < transfer->count && length > 0; i++) {
        size_t room = transfer->parts[i].iov_len;
        if (skip >= room) {
            skip -= room;
            continue;
        }
        size_t size = room - skip < length ? room - skip : length;
        char *theirs = (char *)transfer->parts[i].iov_base + skip;
        if (!copy_checked(slice, theirs, size, transfer->writes))
            return false;
        slice += size;
        length -= size;
        skip = 0;
    }
    return true;
}

/* 0 or an errno of the connection itself. */
static int ask_once(struct link *link, const struct sbb_request *request, struct sbb_answer *answer,
                    const struct transfer *transfer)
{
    bool writes = transfer != NULL && transfer->writes, reads = transfer != NULL && !writes;
    bool copied = !writes || transfer_copy(transfer, link->slice, request->length);
    int error = copied ? link_ask(link, request, -1, answer) : 0;
    if (error == 0 && copied && reads && answer->error == 0 && answer->value <= request->length)
        copied = transfer_copy(transfer, link->slice, answer->value);
    if (!copied)
        *answer = (struct sbb_answer){.error = EFAULT};
    return error;
}

static enum outcome conclude(const struct sbb_answer *answer)
{
    if (answer->error != 0) {
        errno = answer->error;
        return FAILED;
    }
    return answer->flags & SBB_BYPASS ? BYPASS : DONE;
}

enum outcome sbb_ask(int fd, struct known *known, struct sbb_request *request, struct sbb_answer *answer,
                     const struct transfer *transfer)
{
    for (int i = 0; i < TRIES; i++) {
        struct link *link = link_take();
        bool renewed = link != NULL && link->instance != known->instance;
        request->file = known->file;
        int error = link == NULL ? EPIPE : renewed ? 0 : ask_once(link, request, answer, transfer);
        if (link != NULL)
            (error == 0 ? link_give : link_break)(link);
        if (error == ETIMEDOUT)
            return fail(known, "the daemon does not answer (SBB_TIMEOUT_S)");
        if (error == 0 && !renewed && answer->error != EBADF)
            return conclude(answer);
        enum outcome outcome = error != 0 ? lost(known) : renew(fd, known, renewed);
        if (outcome != DONE)
            return outcome;
    }
    return fail(known, "the daemon has forgotten a file several times");
}

/* ---- what the hooks need ---- */

enum outcome sbb_simple(int fd, uint32_t operation)
{
    struct known known;
    enum belongs belongs = sbb_file(fd, &known);
    if (belongs != OURS)
        return belongs == BROKEN ? FAILED : BYPASS;
    struct sbb_request request = {.operation = operation};
    struct sbb_answer answer;
    return sbb_ask(fd, &known, &request, &answer, NULL);
}

enum outcome sbb_flush_if_copied(int fd)
{
    struct known known;
    enum belongs belongs = sbb_file(fd, &known);
    if (belongs != OURS)
        return belongs == BROKEN ? FAILED : BYPASS;
    return sbb_has_copies(&known) ? sbb_simple(fd, SBB_FLUSH) : DONE;
}

/* The file is mapped, which outlives the descriptor: it stays unbuffered until the process ends. */
void sbb_keep_registered(int fd)
{
    struct known known;
    if (sbb_known(fd, &known))
        mark(&known, true, false);
}

/* Something that cannot be followed writes to this file from now on. */
void sbb_leave_unbuffered(int fd)
{
    if (sbb_simple(fd, SBB_DIRECT) == DONE)
        sbb_keep_registered(fd);
}

/* The C library writes to these from within itself, as stdin, stdout and stderr. */
int sbb_standard(int fd)
{
    int saved = errno;
    if (fd >= 0 && fd <= 2)
        sbb_leave_unbuffered(fd);
    errno = saved;
    return fd;
}

void sbb_standard_all(void)
{
    for (int fd = 0; fd <= 2; fd++)
        sbb_standard(fd);
}

int sbb_release(int fd)
{
    struct known known;
    if (!sbb_known(fd, &known) || (known.mapped && !known.broken))
        return 0;
    if (known.broken) {
        forget(&known);
        return EIO;
    }
    struct sbb_request request = {.operation = SBB_RELEASE};
    struct sbb_answer answer;
    forget(&known);
    struct link *link = link_take();
    if (link == NULL || link->instance != known.instance) {
        if (link != NULL)
            link_give(link);
        bool gone = known.ram ? atomic_load(known.word) >= SBB_COPY : link == NULL && sbb_pending();
        return gone ? EIO : 0;
    }
    request.file = known.file;
    int error = link_ask(link, &request, -1, &answer);
    (error == 0 ? link_give : link_break)(link);
    if (error != 0)
        return error == ETIMEDOUT || sbb_pending() ? EIO : 0;
    return answer.error == EBADF ? 0 : answer.error;
}

bool sbb_times(const struct stat *status, const struct timespec times[2], int *error)
{
    if (!sbb_active() || !sbb_on_target_device(status))
        return false;
    struct link *link = link_take();
    if (link == NULL)
        return false;
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    const struct timespec *wanted = times == NULL ? now : times;
    const struct sbb_request request = {
        .operation = SBB_TIMES,
        .file = status->st_ino,
        .offset = status->st_dev,
        .times = {wanted[0].tv_sec, wanted[0].tv_nsec, wanted[1].tv_sec, wanted[1].tv_nsec},
    };
    struct sbb_answer answer;
    bool asked = link_ask(link, &request, -1, &answer) == 0;
    (asked ? link_give : link_break)(link);
    *error = asked ? answer.error : 0;
    return asked && answer.value == 1;
}
