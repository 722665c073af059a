/* The address of the daemon: FOLDER/socket, by way of a descriptor because an address has room for 107 bytes only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "connect.h"

/* System calls directly: inside the library, open and close are its own. */
int sbb_socket(const char *folder, bool listening)
{
    int place = (int)syscall(SYS_openat, AT_FDCWD, folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (place < 0)
        return -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", place);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (listening ? SOCK_NONBLOCK : 0), 0);
    const struct sockaddr *name = (const struct sockaddr *)&address;
    if (fd >= 0
        && (listening ? bind(fd, name, sizeof address) != 0 || listen(fd, 128) != 0
                      : connect(fd, name, sizeof address) != 0)) {
        int error = errno;
        syscall(SYS_close, fd);
        errno = error;
        fd = -1;
    }
    int error = errno;
    syscall(SYS_close, place);
    errno = error;
    return fd;
}
