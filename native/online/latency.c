/* Prints the median and the 95th percentile of one fetch with its report, in microseconds.
 * Usage: latency [ITERATIONS [PAUSE_US]]; the service is that of $LUTHIER_ONLINE. The pause between two iterations
 * stands for the program's own work. The session is named by $LUTHIER_SESSION, or "latency". */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "luthier_online.h"

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* What the program would measure, known without running anything. */
static double work(int block, int depth)
{
    return 1.0 + (block - 256.0) * (block - 256.0) / 65536 + depth / 8.0;
}

static void rest(int us)
{
    struct timespec pause = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 1000, pause_us = argc > 2 ? atoi(argv[2]) : 1000;
    int block = 64, depth = 1, fetched = 0;
    double *took = iterations > 0 ? malloc((size_t)iterations * sizeof *took) : NULL;
    const char *session = getenv("LUTHIER_SESSION");
    if (took == NULL) {
        fprintf(stderr, "latency: give a number of iterations above 0\n");
        return 2;
    }
    luthier_online *tuning = luthier_open(NULL, session != NULL ? session : "latency");
    luthier_integer(tuning, "block", &block, 8, 512, 8);
    luthier_integer(tuning, "depth", &depth, 1, 8, 1);
    luthier_timeout_ms(tuning, 10000); /* slow answers are to be seen, not skipped */
    for (int attempt = 0; attempt < 1000 && !luthier_fetch(tuning); attempt++)
        rest(10000); /* the service may be about to start */
    luthier_report(tuning, work(block, depth));
    for (int i = 0; i < iterations; i++) {
        rest(pause_us);
        double begun = microseconds();
        int done = luthier_fetch(tuning);
        luthier_report(tuning, work(block, depth));
        took[fetched] = microseconds() - begun; /* an iteration without an answer is not counted */
        fetched += done;
    }
    qsort(took, (size_t)fetched, sizeof *took, by_size);
    printf("{\"iterations\": %d, \"fetched\": %d, \"median_us\": %.1f, \"p95_us\": %.1f}\n", iterations, fetched,
        fetched > 0 ? took[fetched / 2] : 0.0, fetched > 0 ? took[(int)(fetched * 0.95)] : 0.0);
    free(took);
    luthier_close(tuning);
    return fetched == iterations ? 0 : 1;
}
