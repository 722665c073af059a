/* sbbd: a burst buffer for one machine (S. Robert, thesis, section 2.3). Start and end of the daemon. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "connect.h"
#include "control.h"
#include "serve.h"

#define BEAT_NS 250000000
#define GIVE_UP_BEATS 12 /* how long the target may refuse everything at the end */

struct state state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .ram_work = PTHREAD_COND_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

/* ---- start ---- */

static void resolve(char *path, const char *what)
{
    char real[PATH_MAX];
    if (path[0] == '\0')
        give_up("--%s is required", what);
    if (realpath(path, real) == NULL)
        give_up("%s: %s", path, strerror(errno));
    if (strlen(real) > PATH_MAX - 64)
        give_up("%.80s...: the path is too long", real);
    strcpy(path, real);
}

static void path_in_folder(char *path, size_t room, const char *name)
{
    snprintf(path, room, "%s/%s", state.settings.folder, name);
}

/* One daemon for a folder. The lock goes with the process. */
static void lock_folder(void)
{
    char path[PATH_MAX + 16];
    path_in_folder(path, sizeof path, "lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        give_up("%s: another daemon is using this folder", state.settings.folder);
}

static void identity_of_target(char *text, size_t room)
{
    struct stat status;
    int64_t born_ns = 0;
    int fd = open(state.settings.target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        give_up("%s: %s", state.settings.target, strerror(errno));
    born_of(fd, &born_ns);
    close(fd);
    snprintf(text, room, "%llu %lld\n", (unsigned long long)status.st_ino, (long long)born_ns);
}

/* Data must not be recovered into the empty folder where the slow storage is not mounted. */
static void check_target(void)
{
    char path[PATH_MAX + 16], now[64], before[64] = "";
    identity_of_target(now, sizeof now);
    path_in_folder(path, sizeof path, "target");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("%s: %s", path, strerror(errno));
    ssize_t length = read(fd, before, sizeof before - 1);
    char pending[PATH_MAX + 16];
    path_in_folder(pending, sizeof pending, "pending");
    if (length > 0 && strcmp(now, before) != 0 && access(pending, F_OK) == 0)
        give_up("%s is not the folder that the data in the log belongs to; is it mounted?", state.settings.target);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, now, strlen(now), 0) < 0)
        give_up("%s: %s", path, strerror(errno));
    close(fd);
}

static void prepare(void)
{
    struct settings *settings = &state.settings;
    resolve(settings->target, "target");
    if (settings->folder[0] != '\0' && mkdir(settings->folder, 0700) != 0 && errno != EEXIST)
        give_up("%s: %s", settings->folder, strerror(errno));
    resolve(settings->folder, "folder");
    size_t length = strlen(settings->target);
    if (strncmp(settings->folder, settings->target, length) == 0 && strchr("/", settings->folder[length]) != NULL)
        give_up("%s: the folder of the daemon must be outside of the target", settings->folder);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    lock_folder();
    check_target();
    cache_start();
    log_start();
    if (!recover())
        give_up("not everything could be written to %s; start again when it works", settings->target);
    pending_set(false);
}

static void share_memory(void)
{
    state.shared_memory = memfd_create("sbb-shared", MFD_CLOEXEC);
    if (state.shared_memory < 0 || ftruncate(state.shared_memory, sizeof *state.shared) != 0)
        give_up("memfd: %s", strerror(errno));
    state.shared = mmap(NULL, sizeof *state.shared, PROT_READ | PROT_WRITE, MAP_SHARED, state.shared_memory, 0);
    if (state.shared == MAP_FAILED)
        give_up("mmap: %s", strerror(errno));
    if (getrandom(&state.instance, sizeof state.instance, 0) != (ssize_t)sizeof state.instance)
        give_up("getrandom: %s", strerror(errno));
}

static int start_listening(void)
{
    char path[PATH_MAX + 16];
    path_in_folder(path, sizeof path, "socket");
    unlink(path); /* left by a killed daemon: we hold the lock */
    int listener = sbb_socket(state.settings.folder, true);
    if (listener < 0)
        give_up("%s: %s", path, strerror(errno));
    chmod(path, 0600);
    return listener;
}

static pthread_t *threads;
static size_t thread_count;

static void start_threads(uint64_t count, void *(*body)(void *))
{
    threads = realloc(threads, (thread_count + count) * sizeof *threads);
    for (uint64_t i = 0; i < count; i++)
        if (threads == NULL || pthread_create(&threads[thread_count++], NULL, body, (void *)(uintptr_t)i) != 0)
            give_up("a thread could not be started");
}

/* ---- end ---- */

static void drop_pending_marker(void)
{
    if (state.pending && state.dirty == 0) {
        state.pending = false;
        pending_set(false);
    }
}

static void beat(sigset_t *signals)
{
    for (unsigned beats = 0; !state.stopping; beats++) {
        if (sigtimedwait(signals, NULL, &(struct timespec){.tv_nsec = BEAT_NS}) > 0)
            break;
        atomic_fetch_add(&state.shared->beats, 1);
        pthread_mutex_lock(&state.lock);
        state.stopping = state.stop_asked;
        if (beats % 4 == 3) {
            files_tidy();
            drop_pending_marker();
        }
        pthread_mutex_unlock(&state.lock);
    }
}

/* From now on clients are told to use their files directly, as soon as everything of a file is in the target. */
static bool drain_at_end(void)
{
    pthread_mutex_lock(&state.lock);
    state.stopping = true;
    state.hurry++;
    pthread_cond_broadcast(&state.flash_work);
    for (unsigned refused = 0; state.dirty > 0 && refused < GIVE_UP_BEATS; refused = state.stuck != 0 ? refused + 1 : 0) {
        pthread_mutex_unlock(&state.lock);
        nanosleep(&(struct timespec){.tv_nsec = BEAT_NS}, NULL);
        atomic_fetch_add(&state.shared->beats, 1);
        pthread_mutex_lock(&state.lock);
    }
    bool drained = state.dirty == 0;
    for (state.rescue = true; !drained && !TAILQ_EMPTY(&state.ram_queue);) { /* at least into the log */
        pthread_cond_broadcast(&state.changed);
        pthread_mutex_unlock(&state.lock);
        nanosleep(&(struct timespec){.tv_nsec = BEAT_NS}, NULL);
        pthread_mutex_lock(&state.lock);
    }
    if (!drained) {
        log_sync(true);
        give_up("%s: %s; what is not there yet stays in the log for the next start", state.settings.target,
                strerror(state.stuck));
    }
    drop_pending_marker();
    state.ended = true;
    pthread_cond_broadcast(&state.ram_work);
    pthread_cond_broadcast(&state.flash_work);
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
    return drained;
}

static void end(int listener)
{
    char path[PATH_MAX + 16];
    path_in_folder(path, sizeof path, "socket");
    unlink(path);
    drain_at_end();
    for (size_t i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    close(listener);
    pthread_mutex_lock(&state.lock);
    log_remove_all();
    pthread_mutex_unlock(&state.lock);
}

/* ---- the program ---- */

/* The parent returns when the child is ready, and fails if it fails. */
static int detach(void)
{
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        give_up("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        give_up("fork: %s", strerror(errno));
    if (child > 0) {
        close(pipe_ends[1]);
        char ready;
        _exit(read(pipe_ends[0], &ready, 1) == 1 ? 0 : 1);
    }
    setsid();
    return pipe_ends[1];
}

static void become_ready(int ready)
{
    const struct settings *settings = &state.settings;
    say("ready for %s; %s", settings->target,
        settings->acknowledge_in_ram
            ? "mode ram: a write is acknowledged in RAM and lost if the daemon dies; fsync and close wait for the log"
            : "mode flash: a write is acknowledged when it is in the log, which survives the death of the daemon");
    if (ready < 0)
        return;
    char path[PATH_MAX + 16];
    path_in_folder(path, sizeof path, "messages");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), messages = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (null >= 0)
        dup2(null, 0), dup2(null, 1);
    if (messages >= 0)
        dup2(messages, 2);
    if (write(ready, "r", 1) != 1)
        _exit(1);
    close(ready);
}

int main(int count, char **words)
{
    const char *action;
    if (!read_settings(&state.settings, count, words, &action))
        return 0;
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error of that write, not the end */
    if (strcmp(action, "run") != 0 && strcmp(action, "detach") != 0 && strcmp(action, "recover") != 0)
        return control(action);
    int ready = strcmp(action, "detach") == 0 ? detach() : -1;
    prepare();
    if (strcmp(action, "recover") == 0)
        return 0;
    share_memory();
    files_start();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int listener = start_listening();
    serve_start(listener);
    start_threads(state.settings.rdma_pollers, poller);
    start_threads(state.settings.workers, worker);
    start_threads(state.settings.ram_destagers, ram_destager);
    start_threads(state.settings.flash_destagers, flash_destager);
    become_ready(ready);
    beat(&signals);
    end(listener);
    return 0;
}
