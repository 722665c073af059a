#include "programs.h"

struct program *programs;

void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
        perror(path);
}

void fill(char *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + (i * 7 + i / 251 + seed) % 26);
}

void show_fd(int fd)
{
    static char data[1 << 16];
    uint32_t sum = 2166136261u;
    struct stat status = {0};
    ssize_t got;
    off_t offset = 0;
    while ((got = pread(fd, data, sizeof data, offset)) > 0)
        for (offset += got; got > 0; got--)
            sum = (sum ^ (unsigned char)data[got - 1]) * 16777619u;
    fstat(fd, &status);
    printf("size %lld, read %lld, links %d, mode %o", (long long)status.st_size, (long long)offset, (int)status.st_nlink,
           status.st_mode);
    if (offset <= 200 && (got = pread(fd, data, 200, 0)) >= 0) {
        for (ssize_t i = 0; i < got; i++)
            data[i] = data[i] == '\0' ? '0' : data[i];
        printf(": %.*s\n", (int)got, data);
    } else {
        printf(", sum %08x\n", sum);
    }
}

void show(const char *path)
{
    int fd = open(path, O_RDONLY);
    printf("%s: ", path);
    if (fd < 0)
        printf("%s\n", strerrorname_np(errno));
    else
        show_fd(fd);
    if (fd >= 0)
        close(fd);
}

int ended(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_of(void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        body();
        exit(0);
    }
    return ended(child);
}

int main(int count, char **words)
{
    for (const struct program *program = programs; program != NULL; program = program->next) {
        if (count < 2)
            puts(program->name);
        else if (strcmp(program->name, words[1]) == 0)
            program->run();
    }
    return 0;
}
