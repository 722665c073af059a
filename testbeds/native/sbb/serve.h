/* Requests of clients on their way through the daemon. */
#ifndef SBB_SERVE_H
#define SBB_SERVE_H

#include "sbbd.h"

/* All connections of one process; the files that it has open are closed with the last of them. */
struct session {
    pid_t process;
    unsigned connections;
    uint64_t *files;
    size_t count, room;
    LIST_ENTRY(session) others;
};

struct connection {
    int socket;
    char *slice;
    unsigned uses; /* the poller's, and one for each request */
    struct session *session;
    pid_t process;
};

struct request {
    struct connection *connection;
    struct sbb_request asked;
    struct sbb_answer answer;
    int fd;         /* that came with it, or -1 */
    unsigned parts; /* still to be done before it is answered */
    TAILQ_ENTRY(request) turn;
};

void serve_start(int listener);
void *worker(void *unused);
void *poller(void *number);

/* With the lock held. */
void request_answer(struct request *request); /* and forget it */
void request_part_ended(struct record *record, int error);
bool session_remember(struct session *session, uint64_t file);
bool session_forget(struct session *session, uint64_t file);

/* operations.c */
void operate(struct request *request);

#endif
