/* A server that handles requests and appends a line for each to a log, which is rotated when it is full.
   Usage: logger [REQUESTS] [LINES]. Build: gcc -O2 -Wall logger.c -o logger -lm */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int log_file = -1, log_lines, log_number;
static int most_lines = 500;
static double busiest; /* shown at the end */

static uint64_t state = 88172645463325252u;

/* xorshift */
static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void open_log(void)
{
    char path[64];

    if (log_file >= 0) {
        fsync(log_file);
        close(log_file);
    }
    snprintf(path, sizeof path, "logs/log.%03d", log_number++);
    log_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    if (log_file < 0) {
        perror(path);
        exit(1);
    }
    log_lines = 0;
}

static void append(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t done = write(log_file, text, length);
        if (done < 0) {
            if (errno == EINTR)
                continue;
            perror("log");
            exit(1);
        }
        text += done;
        length -= (size_t)done;
    }
    if (++log_lines >= most_lines)
        open_log();
}

/* The work of a request: its result is an answer that the log does not hold. */
static double handle(uint64_t request)
{
    double answer = (double)(request % 1000);
    for (int i = 0; i < 2000; i++)
        answer = sqrt(answer + i) * 1.0001;
    if (answer > busiest)
        busiest = answer;
    return answer;
}

int main(int argc, char **argv)
{
    int requests = argc > 1 ? atoi(argv[1]) : 5000;
    double sum = 0.0;

    if (argc > 2)
        most_lines = atoi(argv[2]);
    if (mkdir("logs", 0755) != 0 && errno != EEXIST) {
        perror("logs");
        return 1;
    }
    open_log();
    for (int number = 0; number < requests; number++) {
        uint64_t request = draw();
        char line[128];
        int length;

        sum += handle(request);
        length = snprintf(line, sizeof line, "%06d GET /item/%llu\n", number, (unsigned long long)(request % 100000));
        append(line, (size_t)length);
    }
    fsync(log_file);
    close(log_file);
    printf("%d requests, sum %g, busiest %g\n", requests, sum, busiest);
    return 0;
}
