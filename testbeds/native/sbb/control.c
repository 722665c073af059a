/* sbbd --status, --drain, --stop: questions to a running daemon. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "control.h"
#include "sbbd.h"

static bool ask(int socket, uint32_t operation, int passed, struct sbb_answer *answer)
{
    struct sbb_request request = {.operation = operation};
    struct iovec part = {&request, sizeof request};
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
    return sendmsg(socket, &message, MSG_NOSIGNAL) > 0 && recv(socket, answer, sizeof *answer, 0) == sizeof *answer;
}

/* The daemon closes the connection as it ends. */
static bool wait_for_end(int socket)
{
    char byte;
    return recv(socket, &byte, 1, 0) <= 0;
}

static bool is_pending(void)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/pending", state.settings.folder);
    return access(path, F_OK) == 0;
}

int control(const char *action)
{
    int socket = sbb_socket(state.settings.folder, false);
    if (socket < 0)
        give_up("%s/socket: %s; no daemon is running there", state.settings.folder, strerror(errno));
    int memory = memfd_create("sbb-slice", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        give_up("memfd: %s", strerror(errno));
    const char *slice = mmap(NULL, SBB_SLICE, PROT_READ, MAP_SHARED, memory, 0);
    uint32_t operation = strcmp(action, "status") == 0 ? SBB_STATUS : strcmp(action, "drain") == 0 ? SBB_DRAIN : SBB_STOP;
    struct sbb_answer answer;
    if (slice == MAP_FAILED || !ask(socket, SBB_HELLO, memory, &answer) || !ask(socket, operation, -1, &answer))
        give_up("the daemon ended without an answer");
    if (operation == SBB_STATUS)
        fwrite(slice, 1, answer.value, stdout);
    if (operation == SBB_STOP)
        wait_for_end(socket);
    if (operation == SBB_STOP && is_pending())
        give_up("the daemon has ended with data left in its log; its next start writes it to the target");
    if (answer.error != 0)
        give_up("%s: %s", state.settings.target, strerror(answer.error));
    return 0;
}
