/* Threads and child processes use files through the library, linked in here, and compare what they read with memory of
 * their own. For the sanitizers: exercise TARGET SEED STEPS. Prints the number of wrong results.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define CHILDREN 2
#define ROOM (3u << 20)
#define SHARE (64u << 10) /* of the file that all threads write to */

static const char *target;
static uint64_t seed;
static int steps;
static atomic_int wrong;

struct player {
    uint64_t random;
    int fd, shared, number;
    char *model, *buffer;
    size_t size;
    char own[SHARE];
};

static uint64_t draw(struct player *player, uint64_t below)
{
    player->random = player->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (player->random >> 33) % below;
}

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        atomic_fetch_add(&wrong, 1);
    }
}

static void fill(struct player *player, size_t length)
{
    for (size_t i = 0; i < length; i++)
        player->buffer[i] = (char)draw(player, 256);
}

static void play_write(struct player *player)
{
    size_t offset = draw(player, ROOM / 2), length = 1 + draw(player, draw(player, 10) == 0 ? ROOM / 2 : 9000);
    fill(player, length);
    check(pwrite(player->fd, player->buffer, length, (off_t)offset) == (ssize_t)length, "pwrite");
    if (offset > player->size)
        memset(player->model + player->size, 0, offset - player->size);
    memcpy(player->model + offset, player->buffer, length);
    player->size = offset + length > player->size ? offset + length : player->size;
}

static void play_read(struct player *player)
{
    size_t offset = draw(player, ROOM), length = 1 + draw(player, 300000);
    size_t expected = offset >= player->size ? 0 : player->size - offset < length ? player->size - offset : length;
    ssize_t got = pread(player->fd, player->buffer, length, (off_t)offset);
    check(got == (ssize_t)expected && memcmp(player->buffer, player->model + offset, expected) == 0, "pread");
}

static void play_truncate(struct player *player)
{
    size_t size = draw(player, 3) == 0 ? 0 : draw(player, ROOM / 2);
    check(ftruncate(player->fd, (off_t)size) == 0, "ftruncate");
    if (size > player->size)
        memset(player->model + player->size, 0, size - player->size);
    player->size = size;
}

static void play_shared(struct player *player)
{
    size_t offset = draw(player, SHARE / 2), length = 1 + draw(player, SHARE / 2);
    off_t start = (off_t)SHARE * player->number;
    fill(player, length);
    memcpy(player->own + offset, player->buffer, length);
    struct iovec parts[2] = {{player->buffer, length / 2}, {player->buffer + length / 2, length - length / 2}};
    check(pwritev(player->shared, parts, 2, start + (off_t)offset) == (ssize_t)length, "pwritev");
    check(pread(player->shared, player->buffer, length, start + (off_t)offset) == (ssize_t)length
              && memcmp(player->buffer, player->own + offset, length) == 0, "pread of the shared file");
}

static void reopen(struct player *player, const char *path)
{
    if (player->fd >= 0)
        check(close(player->fd) == 0, "close");
    player->fd = open(path, O_RDWR | O_CREAT, 0600);
    check(player->fd >= 0, "open");
}

static void *play(void *argument)
{
    struct player *player = argument;
    char path[4096];
    snprintf(path, sizeof path, "%s/own-%d-%d", target, (int)getpid(), player->number);
    player->fd = -1;
    reopen(player, path);
    for (int i = 0; i < steps; i++) {
        uint64_t kind = draw(player, 40);
        if (kind == 0)
            reopen(player, path);
        else if (kind == 1)
            play_truncate(player);
        else if (kind == 2)
            check(fsync(player->fd) == 0, "fsync");
        else if (kind < 18)
            play_write(player);
        else if (kind < 26)
            play_shared(player);
        else
            play_read(player);
    }
    check(close(player->fd) == 0, "close");
    return NULL;
}

static int run(uint64_t number)
{
    pthread_t threads[THREADS];
    struct player *players = calloc(THREADS, sizeof *players);
    char path[4096];
    snprintf(path, sizeof path, "%s/shared-%d", target, (int)getpid());
    int shared = open(path, O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < THREADS; i++) {
        players[i] = (struct player){.random = seed * 1000 + number * 100 + (uint64_t)i, .number = i, .shared = shared,
                                     .model = calloc(1, 2 * ROOM), .buffer = malloc(ROOM)};
        check(pwrite(shared, players[i].own, SHARE, (off_t)SHARE * i) == SHARE, "pwrite");
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        free(players[i].model);
        free(players[i].buffer);
    }
    check(close(shared) == 0, "close");
    free(players);
    return atomic_load(&wrong);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    target = words[1];
    seed = strtoull(words[2], NULL, 10);
    steps = atoi(words[3]);
    char path[4096];
    snprintf(path, sizeof path, "%s/before-fork", target);
    int inherited = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    check(write(inherited, "parent\n", 7) == 7, "write");
    for (uint64_t i = 0; i < CHILDREN; i++)
        if (fork() == 0) {
            check(write(inherited, "child\n", 6) == 6, "write");
            exit(run(i + 1) != 0);
        }
    run(0);
    for (int i = 0, status; i < CHILDREN; i++)
        check(wait(&status) > 0 && status == 0, "child");
    char text[64];
    check(pread(inherited, text, sizeof text, 0) == 7 + 6 * CHILDREN, "appends");
    close(inherited);
    printf("%d wrong\n", atomic_load(&wrong));
    return atomic_load(&wrong) != 0;
}
