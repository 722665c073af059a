/* The connections of the library to the daemon. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "libsbb.h"

#define LINKS 64   /* requests at a time */
#define HIGH_FD 700 /* where programs do not expect, and seldom close, descriptors */

static struct link links[LINKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the pool of connections ---- */

/* A signal handler may write, too; it must not wait for a lock that the code it interrupted holds. */
void sbb_enter(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
    pthread_mutex_lock(&lock);
}

void sbb_leave(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int close_fd(int fd)
{
    return REAL(close)(fd);
}

static int move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    close_fd(fd);
    return high;
}

/* Send a request, with a descriptor or -1. */
static bool send_request(int socket, const struct sbb_request *request, int passed)
{
    struct iovec part = {(void *)(uintptr_t)request, sizeof *request};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &passed, sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *request;
}

static int receive_answer(int socket, struct sbb_answer *answer, int *passed)
{
    struct iovec part = {answer, sizeof *answer};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return EAGAIN;
    if (got != (ssize_t)sizeof *answer)
        return EPIPE;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (passed != NULL && header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(header), sizeof(int));
    return 0;
}

/* Wait for the answer as long as the daemon shows signs of life: it may be busy for long, but not silent for long. */
static int wait_answer(const struct link *link, struct sbb_answer *answer, int *passed)
{
    uint64_t beats = 0;
    struct timespec now, last = {0};
    for (;;) {
        struct pollfd watched = {.fd = link->socket, .events = POLLIN};
        poll(&watched, 1, 250);
        int error = watched.revents != 0 ? receive_answer(link->socket, answer, passed) : EAGAIN;
        if (error != EAGAIN)
            return error;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t seen = link->shared == NULL ? 0 : atomic_load(&link->shared->beats);
        if (last.tv_sec == 0 || seen != beats)
            last = now;
        beats = seen;
        if ((uint64_t)(now.tv_sec - last.tv_sec) >= sbb_timeout_s())
            return ETIMEDOUT;
    }
}

int link_ask(struct link *link, const struct sbb_request *request, int passed, struct sbb_answer *answer)
{
    if (!send_request(link->socket, request, passed))
        return EPIPE;
    return wait_answer(link, answer, NULL);
}

static void link_close(struct link *link)
{
    if (link->socket >= 0)
        close_fd(link->socket);
    if (link->slice != NULL)
        munmap(link->slice, SBB_SLICE);
    link->socket = -1;
    link->slice = NULL;
}

/* The table of an instance of the daemon; it stays mapped, for words of it are remembered. */
static struct sbb_shared *table_of(uint64_t instance, int memory)
{
    static struct sbb_shared *tables[16];
    static uint64_t instances[16];
    static unsigned count;
    for (unsigned i = 0; i < 16; i++)
        if (tables[i] != NULL && instances[i] == instance)
            return tables[i];
    void *table = mmap(NULL, sizeof(struct sbb_shared), PROT_READ, MAP_SHARED, memory, 0);
    if (table == MAP_FAILED)
        return NULL;
    tables[count % 16] = table;
    instances[count++ % 16] = instance;
    return table;
}

/* Pass the slice to the daemon and get its table. */
static bool greet(struct link *link)
{
    int memory = memfd_create("sbb-slice", MFD_CLOEXEC | MFD_ALLOW_SEALING), table = -1;
    struct sbb_answer answer = {.error = EPIPE};
    if (memory >= 0) {
        void *slice = mmap(NULL, SBB_SLICE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        link->slice = slice == MAP_FAILED ? NULL : slice;
        const struct sbb_request request = {.operation = SBB_HELLO};
        if (link->slice != NULL && send_request(link->socket, &request, memory))
            wait_answer(link, &answer, &table);
    }
    if (memory >= 0)
        close_fd(memory);
    link->instance = answer.instance;
    link->ram = (answer.flags & SBB_RAM_MODE) != 0;
    sigset_t before;
    sbb_enter(&before);
    link->shared = answer.error == 0 && table >= 0 ? table_of(answer.instance, table) : NULL;
    sbb_leave(&before);
    if (table >= 0)
        close_fd(table);
    return link->shared != NULL;
}

/* Fill a place of the pool that is reserved for us. */
static bool link_open(struct link *place)
{
    struct link link = {.socket = sbb_socket(sbb_folder(), false), .busy = true};
    if (link.socket < 0)
        return false;
    link.socket = move_up(link.socket);
    bool greeted = greet(&link);
    if (!greeted)
        link_close(&link);
    sigset_t before;
    sbb_enter(&before);
    *place = link;
    sbb_leave(&before);
    if (greeted)
        sbb_met();
    return greeted;
}

/* A free connection, or a free place for one. With more threads than places it waits: none of the others waits for us. */
static struct link *link_reserve(bool *connected)
{
    sigset_t before;
    struct link *link = NULL, *empty = NULL;
    sbb_enter(&before);
    for (int i = 0; i < LINKS && link == NULL; i++) {
        if (!links[i].busy && links[i].slice != NULL)
            link = &links[i];
        else if (!links[i].busy && empty == NULL)
            empty = &links[i];
    }
    *connected = link != NULL;
    if (!*connected)
        link = empty;
    if (link != NULL)
        link->busy = true;
    sbb_leave(&before);
    return link;
}

struct link *link_take(void)
{
    bool connected;
    struct link *link;
    while ((link = link_reserve(&connected)) == NULL)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (connected || link_open(link))
        return link;
    link_break(link);
    return NULL;
}

void link_give(struct link *link)
{
    sigset_t before;
    sbb_enter(&before);
    link->busy = false;
    sbb_leave(&before);
}

void link_break(struct link *link)
{
    sigset_t before;
    sbb_enter(&before);
    link_close(link);
    link->busy = false;
    sbb_leave(&before);
}

/* False if this instance of the daemon has ended, as far as an idle connection can tell. */
bool link_alive(uint64_t instance)
{
    sigset_t before;
    bool alive = true;
    sbb_enter(&before);
    for (int i = 0; i < LINKS; i++) {
        if (links[i].busy || links[i].slice == NULL || links[i].instance != instance)
            continue;
        char byte;
        alive = recv(links[i].socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 || errno == EAGAIN;
        if (!alive)
            link_close(&links[i]);
        break;
    }
    sbb_leave(&before);
    return alive;
}

bool sbb_is_internal(int fd)
{
    return fd >= 0 && sbb_lowest_internal(fd) == fd;
}

/* The lowest of our descriptors from this number on, or -1. */
int sbb_lowest_internal(int from)
{
    sigset_t before;
    int lowest = -1;
    sbb_enter(&before);
    for (int i = 0; i < LINKS; i++)
        if (links[i].slice != NULL && links[i].socket >= from && (lowest < 0 || links[i].socket < lowest))
            lowest = links[i].socket;
    sbb_leave(&before);
    return lowest;
}

void sbb_vacate(int fd)
{
    sigset_t before;
    sbb_enter(&before);
    for (int i = 0; i < LINKS; i++)
        if (links[i].slice != NULL && links[i].socket == fd) {
            int other = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
            if (other >= 0) {
                links[i].socket = other;
                close_fd(fd);
            }
        }
    sbb_leave(&before);
}

/* ---- fork ---- */

static sigset_t before_fork;

static void prepare_fork(void)
{
    sbb_enter(&before_fork);
}

static void parent_forked(void)
{
    sbb_leave(&before_fork);
}

/* The child has connections of its own: those of the parent would mix up the answers. */
static void child_forked(void)
{
    for (int i = 0; i < LINKS; i++) {
        if (links[i].slice != NULL)
            link_close(&links[i]);
        links[i].busy = false;
    }
    registry_forget_all();
    sbb_own();
    sbb_leave(&before_fork);
    sbb_standard_all();
}

bool links_start(void)
{
    for (int i = 0; i < LINKS; i++)
        links[i].socket = -1;
    return pthread_atfork(prepare_fork, parent_forked, child_forked) == 0;
}
