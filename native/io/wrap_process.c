/* The start of a process and the ways in which it can end: exit, _exit, exec, a fatal signal. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "next.h"

sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

#define CALLS(X) \
    X(_exit) X(_Exit) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(sigaction) X(signal) X(bsd_signal) \
    X(__sysv_signal)
#define DECLARE(name) static __typeof__(&name) next_##name;
CALLS(DECLARE)
static int (*next_execveat)(int, const char *, char *const *, char *const *, int);


void find_process(void)
{
#define FIND(name) (void)NEXT(name);
    CALLS(FIND)
    (void)NEXT(execveat);
}

/* ---- ending ---- */

EXPORT void _exit(int status)
{
    write_report(false);
    if (NEXT(_exit) != NULL)
        next__exit(status);
    abort();
}

EXPORT void _Exit(int status)
{
    write_report(false);
    if (NEXT(_Exit) != NULL)
        next__Exit(status);
    abort();
}

/* ---- exec: what was counted so far belongs to this program; a failed exec() changes nothing ---- */

#define EXECUTES(name, parameters, ...) \
    EXPORT int name parameters \
    { \
        write_report(false); \
        return NEXT(name) != NULL ? next_##name(__VA_ARGS__) : (errno = ENOSYS, -1); \
    }
EXECUTES(execve, (const char *path, char *const arguments[], char *const variables[]), path, arguments, variables)
EXECUTES(execv, (const char *path, char *const arguments[]), path, arguments)
EXECUTES(execvp, (const char *file, char *const arguments[]), file, arguments)
EXECUTES(execvpe, (const char *file, char *const arguments[], char *const variables[]), file, arguments, variables)
EXECUTES(fexecve, (int fd, char *const arguments[], char *const variables[]), fd, arguments, variables)
EXECUTES(execveat, (int folder, const char *path, char *const arguments[], char *const variables[], int flags),
         folder, path, arguments, variables, flags)

/* The calls with a list of arguments, as an array. The list ends with NULL; execle() has the variables after it. */
#define EXECUTES_LIST(name, array_call, ...) \
    EXPORT int name(const char *path, const char *first, ...) \
    { \
        va_list list; \
        size_t count = 1; \
        va_start(list, first); \
        for (const char *text = first; text != NULL; text = va_arg(list, const char *)) \
            count++; \
        va_end(list); \
        char *arguments[count + 1]; \
        va_start(list, first); \
        arguments[0] = (char *)first; \
        for (size_t i = 1; i < count; i++) \
            arguments[i] = va_arg(list, char *); \
        __VA_ARGS__ \
        va_end(list); \
        return array_call; \
    }
EXECUTES_LIST(execl, execv(path, arguments), )
EXECUTES_LIST(execlp, execvp(path, arguments), )
EXECUTES_LIST(execle, execve(path, arguments, variables), char *const *variables = va_arg(list, char *const *);)

/* ---- fatal signals ---- */

static const int FATAL[] = {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE,
                            SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF};

/* The action has been reset to the default when this runs: the signal comes again and ends the process as it would have
 * without this library, with the same status. */
static void on_fatal(int number)
{
    int saved = errno;
    write_report(false);
    raise(number);
    errno = saved;
}

void catch_fatal_signals(void)
{
    for (size_t i = 0; i < sizeof FATAL / sizeof *FATAL; i++) {
        struct sigaction before, action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};
        if (NEXT(sigaction) != NULL && next_sigaction(FATAL[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            next_sigaction(FATAL[i], &action, NULL);
    }
}

/* Programs are shown the default action where the handler above is installed: many ask whether a signal has an action of
 * its own before they set one. */
EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    int result = NEXT(sigaction) != NULL ? next_sigaction(number, action, before) : (errno = ENOSYS, -1);
    if (result == 0 && before != NULL && before->sa_handler == on_fatal) {
        memset(before, 0, sizeof *before);
        before->sa_handler = SIG_DFL;
    }
    return result;
}

#define SETS_HANDLER(name) \
    EXPORT sighandler_t name(int number, sighandler_t handler) \
    { \
        sighandler_t before = NEXT(name) != NULL ? next_##name(number, handler) : (errno = ENOSYS, SIG_ERR); \
        return before == on_fatal ? SIG_DFL : before; \
    }
SETS_HANDLER(signal)
SETS_HANDLER(bsd_signal)
SETS_HANDLER(__sysv_signal)

/* ---- start and end ---- */

static void quick_end(void)
{
    write_report(true);
}

__attribute__((constructor)) void start_library(void)
{
    static bool started;
    int saved = errno;
    if (started)
        return;
    started = true;
    find_posix();
    find_stdio();
    find_process();
    remember_stderr();
    read_settings();
    if (any_wanted(0, SETTINGS - 1))
        tables_made();
    start_report();
    start_loops();
    start_memory();
    find_hdf5_work();
    if (counting) {
        catch_fatal_signals();
        at_quick_exit(quick_end);
    }
    if (any_wanted(0, FIRST_HINT - 1) && hdf5_is_static()) {
        warn("HDF5 is linked statically into the program: no setting of HDF5 can be injected; link it dynamically "
             "(h5cc -shlib)");
        print_warnings();
    }
    errno = saved;
}

__attribute__((destructor)) static void end(void)
{
    conclude_settings();
    count_streams_at_exit();
    write_report(true);
}
