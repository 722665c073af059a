/* Calls the client as the lines of its input say, and answers each with one line of JSON. */
#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "luthier_online.h"

static int block = 64, engine = 0, level = 1;
static int64_t depth = 1;
static double ratio = 0.25;
static double longest_ms;
static int slow; /* calls that waited, and not for a processor */

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void answer(luthier_online *tuning, int done)
{
    /* The ratio in millionths: printf would write a comma in some locales. */
    printf("{\"done\": %d, \"block\": %d, \"depth\": %" PRId64 ", \"ratio\": %.0f, ", done, block, depth, ratio * 1e6);
    printf("\"engine\": %d, \"level\": %d, ", engine, level);
    printf("\"longest_ms\": %.0f, \"slow\": %d, \"phase\": ", longest_ms, slow);
    print_string(luthier_phase(tuning));
    printf(", \"error\": ");
    print_string(luthier_error(tuning));
    printf("}\n");
    fflush(stdout);
}

static int timed(luthier_online *tuning, int (*call)(luthier_online *))
{
    struct rusage before, after;
    double begun = now_ms();
    getrusage(RUSAGE_SELF, &before);
    int done = call(tuning);
    getrusage(RUSAGE_SELF, &after);
    double took = now_ms() - begun;
    if (took > longest_ms)
        longest_ms = took;
    slow += took > 20 && after.ru_nvcsw > before.ru_nvcsw; /* a busy machine takes the processor away by force */
    return done;
}

static int loop(luthier_online *tuning, long times)
{
    int fetched = 0;
    for (long i = 0; i < times; i++) {
        fetched += timed(tuning, luthier_begin);
        timed(tuning, luthier_end);
    }
    return fetched;
}

/* One iteration of a program that is slow with most values of its parameters: nothing is waited for. */
static int step(luthier_online *tuning)
{
    int fetched = timed(tuning, luthier_fetch);
    luthier_report(tuning, 1 + abs(block - 128) / 64.0 + 10 * (engine != 0) + 5 * (level != 1) + 4 * ratio);
    return fetched;
}

static void declare(luthier_online *tuning)
{
    luthier_integer(tuning, "block", &block, 8, 512, 8);
    luthier_integer64_log(tuning, "depth", &depth, 1, INT64_C(1) << 40, 2);
    luthier_real(tuning, "ratio", &ratio, 0, 1, 0);
    luthier_choice(tuning, "engine", &engine, "sync, libaio,\"Größe\"");
    luthier_ordered(tuning, "level", &level, "low,mid,high");
}

/* In a child: one iteration, then the values are left as its exit status tells. */
static int in_child(luthier_online *tuning)
{
    pid_t child = fork();
    if (child == 0) {
        int done = luthier_fetch(tuning) && block == 128;
        luthier_report(tuning, 7.0);
        luthier_close(tuning);
        _exit(done ? 3 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int obey(luthier_online *tuning, char *line)
{
    char *argument = strchr(line, ' ');
    if (argument != NULL)
        *argument++ = '\0';
    if (strcmp(line, "fetch") == 0)
        return timed(tuning, luthier_fetch);
    if (strcmp(line, "huge") == 0)
        return luthier_report(tuning, 1.7e308);
    if (strcmp(line, "report") == 0)
        return luthier_report(tuning, strtol(argument, NULL, 10) / 1000.0);
    if (strcmp(line, "failed") == 0)
        return luthier_report_failed(tuning);
    if (strcmp(line, "best") == 0)
        return timed(tuning, luthier_best);
    if (strcmp(line, "step") == 0)
        return step(tuning);
    if (strcmp(line, "loop") == 0)
        return loop(tuning, strtol(argument, NULL, 10));
    if (strcmp(line, "constraint") == 0)
        return luthier_constraint(tuning, argument);
    if (strcmp(line, "setting") == 0) {
        char *value = strchr(argument, ' ');
        *value++ = '\0';
        return luthier_setting(tuning, argument, value);
    }
    if (strcmp(line, "timeout") == 0)
        luthier_timeout_ms(tuning, (int)strtol(argument, NULL, 10));
    if (strcmp(line, "quiet") == 0)
        luthier_quiet(tuning, 1);
    if (strcmp(line, "fork") == 0)
        return in_child(tuning);
    return 1;
}

int main(int argc, char **argv)
{
    char line[1024];
    if (argc > 1 && setlocale(LC_ALL, argv[1]) == NULL)
        return 9;
    luthier_online *tuning = luthier_open(NULL, "driver");
    declare(tuning);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "close") == 0)
            break;
        answer(tuning, obey(tuning, line));
    }
    luthier_close(tuning);
    return 0;
}
