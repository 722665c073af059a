/* Pollers receive the requests of clients, workers carry them out. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve.h"

#define POLLERS 64

static int listener, queues[POLLERS];
static TAILQ_HEAD(, request) requests = TAILQ_HEAD_INITIALIZER(requests);
static LIST_HEAD(, session) sessions = LIST_HEAD_INITIALIZER(sessions);
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static unsigned next_poller;

/* ---- sessions ---- */

static struct session *session_of(pid_t process)
{
    struct session *session;
    LIST_FOREACH(session, &sessions, others)
        if (session->process == process)
            break;
    if (session == NULL && (session = calloc(1, sizeof *session)) != NULL) {
        session->process = process;
        LIST_INSERT_HEAD(&sessions, session, others);
    }
    if (session != NULL)
        session->connections++;
    return session;
}

static void session_leave(struct session *session)
{
    if (session == NULL || --session->connections > 0)
        return;
    LIST_REMOVE(session, others);
    for (size_t i = 0; i < session->count; i++) {
        struct file *file = file_by_id(session->files[i]);
        if (file != NULL)
            file_release(file);
    }
    free(session->files);
    free(session);
}

bool session_remember(struct session *session, uint64_t file)
{
    if (session->count == session->room) {
        size_t room = session->room == 0 ? 16 : 2 * session->room;
        uint64_t *files = realloc(session->files, room * sizeof *files);
        if (files == NULL)
            return false;
        session->files = files;
        session->room = room;
    }
    session->files[session->count++] = file;
    return true;
}

bool session_forget(struct session *session, uint64_t file)
{
    for (size_t i = session->count; i-- > 0;)
        if (session->files[i] == file) {
            session->files[i] = session->files[--session->count];
            return true;
        }
    return false;
}

/* ---- requests ---- */

static void connection_leave(struct connection *connection)
{
    if (--connection->uses > 0)
        return;
    session_leave(connection->session);
    close(connection->socket);
    if (connection->slice != NULL)
        munmap(connection->slice, SBB_SLICE);
    free(connection);
}

/* The answer to HELLO passes the shared table. A client that is gone does not matter here. */
static void send_answer(struct request *request)
{
    struct iovec part = {&request->answer, sizeof request->answer};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (request->asked.operation == SBB_HELLO && request->answer.error == 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &state.shared_memory, sizeof(int));
    }
    sendmsg(request->connection->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void request_answer(struct request *request)
{
    request->answer.instance = state.instance;
    send_answer(request);
    if (request->fd >= 0)
        close(request->fd);
    connection_leave(request->connection);
    free(request);
}

void request_part_ended(struct record *record, int error)
{
    struct request *request = record->request;
    if (request == NULL)
        return;
    record->request = NULL;
    if (error != 0)
        request->answer.error = error;
    if (--request->parts == 0)
        request_answer(request);
}

void *worker(void *unused)
{
    pthread_mutex_lock(&state.lock);
    while (!state.ended || !TAILQ_EMPTY(&requests)) {
        struct request *request = TAILQ_FIRST(&requests);
        if (request == NULL) {
            pthread_cond_wait(&work, &state.lock);
            continue;
        }
        TAILQ_REMOVE(&requests, request, turn);
        operate(request);
    }
    pthread_mutex_unlock(&state.lock);
    return unused;
}

/* ---- pollers ---- */

/* False if the client is gone. */
static bool receive(struct connection *connection)
{
    struct request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return false;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&request->asked, sizeof request->asked};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(connection->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    bool retry = got < 0 && (errno == EAGAIN || errno == EINTR);
    request->fd = -1;
    struct cmsghdr *passed = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (passed != NULL && passed->cmsg_type == SCM_RIGHTS)
        memcpy(&request->fd, CMSG_DATA(passed), sizeof(int));
    if (got != (ssize_t)sizeof request->asked) {
        if (request->fd >= 0)
            close(request->fd);
        free(request);
        return retry;
    }
    pthread_mutex_lock(&state.lock);
    request->connection = connection;
    connection->uses++;
    TAILQ_INSERT_TAIL(&requests, request, turn);
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&state.lock);
    return true;
}

/* Only the user of the daemon, and root, may have it write to files. */
static void accept_client(void)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (client < 0)
        return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL || getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0
        || (peer.uid != geteuid() && peer.uid != 0)) {
        close(client);
        free(connection);
        return;
    }
    connection->socket = client;
    connection->process = peer.pid;
    connection->uses = 1;
    pthread_mutex_lock(&state.lock);
    connection->session = session_of(peer.pid);
    int queue = queues[next_poller++ % state.settings.rdma_pollers];
    pthread_mutex_unlock(&state.lock);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};
    if (connection->session == NULL || epoll_ctl(queue, EPOLL_CTL_ADD, client, &event) != 0) {
        pthread_mutex_lock(&state.lock);
        connection_leave(connection);
        pthread_mutex_unlock(&state.lock);
    }
}

void *poller(void *number)
{
    int queue = queues[(uintptr_t)number];
    struct epoll_event events[16];
    for (bool ended = false; !ended;) {
        int count = epoll_wait(queue, events, 16, 200);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                accept_client();
            } else if (!receive(connection)) {
                epoll_ctl(queue, EPOLL_CTL_DEL, connection->socket, NULL);
                pthread_mutex_lock(&state.lock);
                connection_leave(connection);
                pthread_mutex_unlock(&state.lock);
            }
        }
        pthread_mutex_lock(&state.lock);
        ended = state.ended;
        if (ended)
            pthread_cond_broadcast(&work);
        pthread_mutex_unlock(&state.lock);
    }
    return NULL;
}

void serve_start(int socket)
{
    listener = socket;
    for (uint64_t i = 0; i < state.settings.rdma_pollers; i++) {
        queues[i] = epoll_create1(EPOLL_CLOEXEC);
        if (queues[i] < 0)
            give_up("epoll: %s", strerror(errno));
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(queues[0], EPOLL_CTL_ADD, listener, &event);
}
