/* an output queue as a linked list, macros, switch with fallthrough, do-while, static buffers */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define LOG(...)                                                                                                       \
    do {                                                                                                               \
        if (debug)                                                                                                     \
            logmsg(__FILE__, __LINE__, __VA_ARGS__);                                                                   \
    } while (0)
#define FOREACH(p, list) for (job *p = (list); p != NULL; p = p->next)
#define SAFE_FREE(p)                                                                                                   \
    do {                                                                                                               \
        free(p);                                                                                                       \
        (p) = NULL;                                                                                                    \
    } while (0)
typedef enum { TEXT, BINARY, BOTH } kind;
typedef struct job {
    kind k;
    char *name;
    double *data;
    int n;
    struct job *next;
} job;
static int debug = 1;
static job *head, *tail;
static FILE *trace;
static char scratch[4096];
static void logmsg(const char *f, int l, const char *fmt, ...)
{
    va_list a;
    if (!trace)
        trace = fopen("trace.log", "w");
    va_start(a, fmt);
    vsnprintf(scratch, sizeof scratch, fmt, a);
    va_end(a);
    fprintf(trace, "%s:%d: %s\n", f, l, scratch);
}
static char *dup_str(const char *s)
{
    char *r = malloc(strlen(s) + 1);
    return r ? strcpy(r, s) : NULL;
}
static void enqueue(kind k, const char *name, const double *d, int n)
{
    job *j = malloc(sizeof *j);
    if (!j)
        exit(1);
    *j = (job){.k = k, .name = dup_str(name), .data = malloc(n * sizeof *d), .n = n};
    memcpy(j->data, d, n * sizeof *d);
    if (tail)
        tail->next = j;
    else
        head = j;
    tail = j;
    LOG("queued %s (%d)", name, n);
}
static int drain(void)
{
    int done = 0;
    while (head) {
        job *j = head;
        FILE *f;
        char p[128];
        switch (j->k) {
        case BOTH:
        case TEXT:
            snprintf(p, sizeof p, "%s.txt", j->name);
            f = fopen(p, "w");
            if (!f)
                return -1;
            for (int i = 0; i < j->n; i++)
                fprintf(f, "%.17g%c", j->data[i], i % 5 == 4 ? '\n' : ' ');
            fclose(f);
            if (j->k == TEXT)
                break; /* fall through */
        case BINARY:
            snprintf(p, sizeof p, "%s.bin", j->name);
            f = fopen(p, "wb");
            if (!f)
                return -1;
            fwrite(&j->n, sizeof j->n, 1, f);
            fwrite(j->data, sizeof *j->data, j->n, f);
            fclose(f);
            break;
        }
        head = j->next;
        SAFE_FREE(j->name);
        SAFE_FREE(j->data);
        free(j);
        done++;
    }
    tail = NULL;
    LOG("drained %d", done);
    return done;
}
static double work(double *a, int n)
{
    double s = 0;
    for (int r = 0; r < 300; r++)
        for (int i = 0; i < n; i++) {
            a[i] = sin(a[i]) + 0.5 * cos(i + r);
            s += a[i];
        }
    return s;
}
int main(int argc, char **argv)
{
    int s = 0, steps = argc > 1 ? atoi(argv[1]) : 20;
    double a[500] = {0}, t = 0;
    do {
        char nm[32];
        t += work(a, 500);
        sprintf(nm, "s%03d", s);
        enqueue(s % 3 == 0 ? BOTH : s % 3 == 1 ? TEXT : BINARY, nm, a, 500);
        if (s % 4 == 3 && drain() < 0) {
            perror("drain");
            return 1;
        }
    } while (++s < steps);
    if (drain() < 0)
        return 1;
    if (trace)
        fclose(trace);
    printf("%g\n", t);
    return 0;
}
