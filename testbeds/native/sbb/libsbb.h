/* libsbb.so: writes of unmodified programs to files below SBB_TARGET go to the burst buffer daemon.
 *
 *     SBB_FOLDER=/fast/sbb SBB_TARGET=/slow LD_PRELOAD=libsbb.so ./program
 *
 *     SBB_FOLDER     the folder of the daemon
 *     SBB_TARGET     the folder on slow storage, as it was given to the daemon
 *     SBB_TIMEOUT_S  after so many seconds without a sign of life of the daemon a call fails with EIO   (60)
 *     SBB_WAIT_S     how long a call waits for a killed daemon to be started again, in mode flash        (0)
 *
 * Files are opened, renamed and deleted by the program itself; only data goes through the daemon, which sets the size of
 * a file at once. So names, sizes and times are right for everybody. Which file a descriptor stands for is asked anew for
 * each call: that is cheaper than to follow every way to open, copy, inherit and close one, and cannot be out of date.
 */
#ifndef LIBSBB_H
#define LIBSBB_H

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "protocol.h"

#define EXPORT __attribute__((visibility("default")))

/* The function that a call goes on to. */
void *sbb_next(_Atomic(void *) *found, const char *name);
#define REAL(name)                                              \
    (__extension__({                                            \
        static _Atomic(void *) found_;                          \
        (__typeof__(&name))sbb_next(&found_, #name);            \
    }))

/* ---- targets.c: settings ---- */

void sbb_start(void);
bool sbb_active(void); /* settings are valid, and this process may use them */
void sbb_own(void);
const char *sbb_folder(void);
uint64_t sbb_timeout_s(void);
uint64_t sbb_wait_s(void);
bool sbb_on_target_device(const struct stat *status); /* a regular file there */
bool sbb_path_below_target(const char *path);
void sbb_say_once(const char *text);
bool sbb_pending(void); /* the daemon is or was there and has, or may have, data that is not in the target */
void sbb_met(void);

/* ---- client.c: connections ---- */

struct link {
    int socket;
    char *slice;
    struct sbb_shared *shared;
    uint64_t instance;
    bool busy, ram; /* ram: the mode of the daemon */
};

bool links_start(void);
void sbb_enter(sigset_t *before); /* the lock of pool and registry, with all signals blocked */
void sbb_leave(const sigset_t *before);
struct link *link_take(void); /* NULL: no daemon */
void link_give(struct link *link);
void link_break(struct link *link);
bool link_alive(uint64_t instance);
int link_ask(struct link *link, const struct sbb_request *request, int passed, struct sbb_answer *answer);
bool sbb_is_internal(int fd);
int sbb_lowest_internal(int from);
void sbb_vacate(int fd); /* move a descriptor of ours out of the way */

/* ---- registry.c: files ---- */

struct known {
    dev_t device;
    ino_t inode;
    uint64_t file, instance;
    _Atomic uint64_t *word;
    bool used, mapped, ram, broken;
};

/* Buffers of the program, from byte `skip` on; the length is that of the request. */
struct transfer {
    const struct iovec *parts;
    int count;
    size_t skip;
    bool writes;
};

enum belongs { OTHER, OURS, BROKEN };
enum outcome { DONE, BYPASS, FAILED }; /* FAILED: errno is set */

enum belongs sbb_file(int fd, struct known *known);      /* registers the file if necessary */
bool sbb_known(int fd, struct known *known);             /* only if it is registered */
enum outcome sbb_ask(int fd, struct known *known, struct sbb_request *request, struct sbb_answer *answer,
                     const struct transfer *transfer);
bool sbb_has_copies(const struct known *known);
enum outcome sbb_simple(int fd, uint32_t operation); /* for the file of this descriptor, if it is ours */
enum outcome sbb_flush_if_copied(int fd);
void sbb_keep_registered(int fd);
int sbb_release(int fd); /* before a close: 0 or an errno */
void sbb_leave_unbuffered(int fd);
int sbb_standard(int fd); /* a new descriptor, or -1: returned as it is */
void sbb_standard_all(void);
void sbb_flush_program(int fd);
bool sbb_times(const struct stat *status, const struct timespec times[2], int *error); /* false: not for us */
void registry_forget_all(void); /* with the lock */

#endif
