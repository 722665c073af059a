/* Processes, threads and signals. */
#include "programs.h"

static FILE *stream;
static int fd;

static void start(void)
{
    fd = open("file", O_CREAT | O_RDWR, 0644);
    fflush(stdout);
}

static void write_more(void)
{
    SAY(write(fd, "child.", 6));
}

PROGRAM(position_shared_with_a_child)
{
    start();
    SAY(write(fd, "parent.", 7));
    fflush(stdout);
    SAY(child_of(write_more));
    SAY(write(fd, "parent again", 12));
    show("file");
}

static void nothing(void)
{
}

PROGRAM(unflushed_in_both)
{
    stream = fopen("file", "w");
    fputs("written twice.", stream);
    fflush(stdout);
    SAY(child_of(nothing));
    SAY(fclose(stream));
    show("file");
}

static void close_stream(void)
{
    fputs("child.", stream);
    fclose(stream);
}

PROGRAM(stream_closed_by_a_child)
{
    stream = fopen("file", "w");
    fputs("parent.", stream);
    fflush(NULL);
    SAY(child_of(close_stream));
    SAY(fputs("parent again.", stream));
    SAY(fclose(stream));
    show("file");
}

static void reopen_stream(void)
{
    SAY_OK(freopen("other", "w", stream));
    fputs("child.", stream);
}

PROGRAM(stream_reopened_by_a_child)
{
    stream = fopen("file", "w");
    fputs("parent.", stream);
    fflush(NULL);
    SAY(child_of(reopen_stream));
    SAY(fputs("parent again.", stream));
    SAY(fclose(stream));
    show("file");
    show("other");
}

static void read_stream(void)
{
    char line[20];
    SAY_TEXT(fgets(line, 20, stream));
}

PROGRAM(stream_read_by_both)
{
    put("file", "one\ntwo\nthree\n");
    stream = fopen("file", "r");
    fflush(stdout);
    SAY(child_of(read_stream));
    read_stream();
    SAY(fclose(stream));
}

PROGRAM(vfork_and_exec)
{
    start();
    SAY(write(fd, "before.", 7));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "echo by the child >> file", NULL);
        _exit(127);
    }
    SAY(ended(child));
    SAY(lseek(fd, 0, SEEK_END));
    SAY(write(fd, "after.", 6));
    show("file");
}

PROGRAM(vfork_and_redirection)
{
    start();
    SAY(write(fd, "before.", 7));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        dup2(fd, 1);
        close(fd);
        execlp("echo", "echo", "by echo", NULL);
        _exit(127);
    }
    SAY(ended(child));
    SAY(write(fd, "after.", 6));
    show("file");
}

PROGRAM(vfork_and_failure)
{
    start();
    SAY(write(fd, "before.", 7));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        execl("/nothing", "nothing", NULL);
        _exit(9);
    }
    SAY(ended(child));
    SAY(write(fd, "after.", 6));
    show("file");
}

PROGRAM(descriptor_inherited_by_exec)
{
    char command[100];
    start();
    SAY(write(fd, "before.", 7));
    fflush(stdout);
    snprintf(command, sizeof command, "echo by sh >&%d; cat <&%d; echo a >> file; printf b >&%d", fd, fd, fd);
    SAY(system(command) >> 8);
    SAY(write(fd, "after.", 6));
    show("file");
}

PROGRAM(descriptor_closed_by_exec)
{
    char command[100];
    int closing = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    snprintf(command, sizeof command, "(echo x >&%d) 2> /dev/null || echo closed", closing);
    SAY(write(closing, "text", 4));
    fflush(stdout);
    SAY(system(command) >> 8);
    show("file");
}

PROGRAM(exec_without_close)
{
    start();
    stream = fopen("stream", "w");
    fputs("flushed", stream);
    fflush(stream);
    fputs("lost by exec", stream);
    write(fd, "written before exec", 19);
    execlp("cat", "cat", "file", "stream", NULL);
}

static void spawned(char *const words[], posix_spawn_file_actions_t *actions)
{
    pid_t child;
    fflush(stdout);
    SAY(posix_spawnp(&child, words[0], actions, NULL, words, environ));
    SAY(ended(child));
}

PROGRAM(spawned_with_files)
{
    posix_spawn_file_actions_t actions;
    start();
    SAY(write(fd, "0123456789\n", 11));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "file", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "output", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addclose(&actions, fd);
    spawned((char *[]){"cat", NULL}, &actions);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    spawned((char *[]){"echo", "spawned", NULL}, &actions);
    posix_spawn_file_actions_destroy(&actions);
    SAY(write(fd, "after", 5));
    show("file");
    show("output");
}

static void die(void)
{
    stream = fopen("stream", "w");
    fputs("lost", stream);
    write(fd, "written", 7);
    raise(SIGKILL);
}

PROGRAM(killed)
{
    start();
    SAY(child_of(die));
    show("file");
    show("stream");
}

static void abort_here(void)
{
    write(fd, "written", 7);
    abort();
}

PROGRAM(aborted)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    start();
    SAY(child_of(abort_here));
    show("file");
}

static void crash(void)
{
    write(fd, "written", 7);
    *(volatile int *)8 = 1;
}

PROGRAM(crashed)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    start();
    SAY(child_of(crash));
    show("file");
}

static void in_background(void)
{
    if (fork() != 0)
        _exit(0);
    setsid();
    for (int i = 0; i < 1000; i++)
        close(i);
    int own = open("file", O_WRONLY | O_APPEND | O_CREAT, 0600);
    write(own, "by the daemon", 13);
    close(own);
    close(open("done", O_CREAT, 0600));
    _exit(0);
}

PROGRAM(daemon_of_its_own)
{
    fflush(stdout);
    SAY(child_of(in_background));
    for (int i = 0; i < 3000 && access("done", F_OK) != 0; i++)
        usleep(10000);
    show("file");
}

static void child_locks(void)
{
    char line[20] = "";
    int own = open("counter", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 25; i++) {
        flock(own, LOCK_EX);
        ssize_t got = pread(own, line, sizeof line - 1, 0);
        line[got > 0 ? got : 0] = '\0';
        int size = snprintf(line, sizeof line, "%d", atoi(line) + 1);
        pwrite(own, line, (size_t)size, 0);
        flock(own, LOCK_UN);
    }
    close(own);
}

PROGRAM(counter_of_several_processes)
{
    pid_t children[4];
    fflush(stdout);
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            child_locks();
            _exit(0);
        }
    for (int i = 0; i < 4; i++)
        SAY(ended(children[i]));
    show("counter");
}

PROGRAM(appended_by_several_processes)
{
    pid_t children[4];
    fflush(stdout);
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            int own = open("file", O_WRONLY | O_APPEND | O_CREAT, 0600);
            for (int line = 0; line < 50; line++)
                write(own, "a line of some length\n", 22);
            _exit(0);
        }
    for (int i = 0; i < 4; i++)
        SAY(ended(children[i]));
    show("file");
}

/* ---- threads ---- */

static void *write_part(void *number)
{
    char part[1000];
    long which = (long)(intptr_t)number;
    memset(part, 'a' + (int)which, sizeof part);
    for (int i = 0; i < 20; i++)
        if (pwrite(fd, part, sizeof part, (which * 20 + i) * 1000) != 1000)
            puts("failed");
    return NULL;
}

static void *use_own_file(void *number)
{
    char name[20], line[20];
    snprintf(name, sizeof name, "own%ld", (long)(intptr_t)number);
    for (int i = 0; i < 30; i++) {
        FILE *own = fopen(name, "w+");
        fprintf(own, "round %d\n", i);
        rewind(own);
        if (fgets(line, sizeof line, own) == NULL || atoi(line + 6) != i)
            puts("failed");
        fclose(own);
    }
    return NULL;
}

static void *write_line(void *number)
{
    (void)number;
    for (int i = 0; i < 100; i++)
        fprintf(stream, "a line of a thread\n");
    return NULL;
}

static void in_threads(void *(*body)(void *))
{
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

PROGRAM(threads_in_one_file)
{
    start();
    in_threads(write_part);
    show("file");
}

PROGRAM(threads_beyond_all_connections)
{
    pthread_t threads[100];
    pthread_attr_t attributes;
    start();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (intptr_t i = 0; i < 100; i++)
        pthread_create(&threads[i], &attributes, write_part, (void *)(i % 26));
    for (int i = 0; i < 100; i++)
        pthread_join(threads[i], NULL);
    show("file");
}

PROGRAM(threads_with_own_files)
{
    in_threads(use_own_file);
    show("own0");
    show("own7");
}

PROGRAM(threads_in_one_stream)
{
    stream = fopen("file", "w");
    in_threads(write_line);
    SAY(fclose(stream));
    show("file");
}

static void *fork_often(void *number)
{
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            char name[30];
            snprintf(name, sizeof name, "child%ld-%d", (long)(intptr_t)number, i);
            int own = open(name, O_CREAT | O_WRONLY, 0600);
            if (write(own, name, strlen(name)) < 0)
                _exit(1);
            _exit(0);
        }
        write_part(number);
        if (ended(child) != 0)
            puts("a child failed");
    }
    return NULL;
}

PROGRAM(threads_that_fork)
{
    start();
    in_threads(fork_often);
    show("file");
    show("child3-4");
}

static void *end_by_exit(void *unused)
{
    (void)unused;
    fputs("flushed by a thread", stream);
    exit(4);
}

PROGRAM(exit_by_a_thread)
{
    pthread_t thread;
    stream = fopen("file", "w");
    pthread_create(&thread, NULL, end_by_exit, NULL);
    pthread_join(thread, NULL);
}

static void *endless(void *unused)
{
    (void)unused;
    for (;;)
        pwrite(fd, "endless", 7, 0);
    return NULL;
}

PROGRAM(thread_cancelled)
{
    pthread_t thread;
    struct stat status = {0};
    void *result = NULL;
    start();
    pthread_create(&thread, NULL, endless, NULL);
    while (status.st_size == 0)
        fstat(fd, &status);
    SAY(pthread_cancel(thread));
    SAY(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
    SAY(pwrite(fd, "E", 1, 0));
    show("file");
}

static void *write_on_a_small_stack(void *unused)
{
    static char block[2000000];
    fill(block, sizeof block, 2);
    for (int i = 0; i < 3; i++)
        SAY(write(fd, block, sizeof block));
    SAY(sendfile(fd, open("source", O_RDONLY), NULL, 10));
    return unused;
}

PROGRAM(small_stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    put("source", "0123456789");
    start();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    pthread_create(&thread, &attributes, write_on_a_small_stack, NULL);
    pthread_join(thread, NULL);
    show("file");
}

/* ---- signals ---- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    caught++;
    pwrite(fd, "signal", 6, 100);
    errno = saved;
}

PROGRAM(handler_that_writes)
{
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    start();
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 3000 || (caught < 5 && i < 10000000); i++)
        if (pwrite(fd, "main", 4, i % 10) != 4)
            puts("failed");
    setitimer(ITIMER_REAL, &never, NULL);
    SAY(caught >= 5);
    show("file");
}

PROGRAM(handler_on_its_own_stack)
{
    static char room[16384];
    start();
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, NULL);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    SAY(caught);
    show("file");
}

PROGRAM(interrupted_without_restart)
{
    static char block[200000];
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    fill(block, sizeof block, 4);
    start();
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 30; i++)
        if (pwrite(fd, block, sizeof block, 1000 + i * 1000) != sizeof block)
            puts("failed");
    setitimer(ITIMER_REAL, &never, NULL);
    pwrite(fd, "signal", 6, 100);
    show("file");
}

static void reset_and_write(int number)
{
    signal(number, SIG_DFL);
    write(fd, "last words", 10);
    raise(number);
}

static void wait_for_the_end(void)
{
    signal(SIGTERM, reset_and_write);
    raise(SIGTERM);
}

PROGRAM(handler_before_the_end)
{
    start();
    SAY(child_of(wait_for_the_end));
    show("file");
}

static void at_the_end(void)
{
    write(fd, "by atexit.", 10);
    fputs("stream.", stream);
}

__attribute__((destructor)) static void last(void)
{
    if (stream != NULL && fd > 2)
        write(fd, "by a destructor", 15);
}

PROGRAM(written_at_exit)
{
    start();
    stream = fopen("stream", "w");
    atexit(at_the_end);
    write(fd, "first.", 6);
}

static void lower_rights(void)
{
    int file = open("file", O_RDWR);
    SAY(setuid(65534));
    SAY(write(file, "by another user", 15));
    SAY(open("new", O_CREAT | O_WRONLY, 0600));
    SAY(fsync(file));
    SAY(close(file));
}

PROGRAM(user_changed)
{
    start();
    SAY(write(fd, "first", 5));
    SAY(lseek(fd, 0, SEEK_SET));
    fflush(stdout);
    if (getuid() == 0)
        SAY(child_of(lower_rights) >= 0);
    show("file");
}

PROGRAM(environment_changed)
{
    start();
    SAY(write(fd, "one.", 4));
    SAY(clearenv());
    SAY(write(fd, "two.", 4));
    SAY(chdir("/"));
    SAY(write(fd, "three.", 6));
    show_fd(fd);
}
