/* backends behind a table of functions */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
typedef struct backend backend;
struct backend {
    const char *name;
    int (*open)(backend *, const char *);
    int (*write)(backend *, const void *, size_t);
    int (*close)(backend *);
    union {
        int fd;
        FILE *fp;
    } u;
    size_t written;
};
static int p_open(backend *b, const char *p)
{
    return (b->u.fd = open(p, O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0 ? -errno : 0;
}
static int p_write(backend *b, const void *d, size_t n)
{
    const char *c = d;
    while (n) {
        ssize_t k = write(b->u.fd, c, n > 65536 ? 65536 : n);
        if (k < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        c += k;
        n -= k;
        b->written += k;
    }
    return 0;
}
static int p_close(backend *b)
{
    int r = fsync(b->u.fd);
    return close(b->u.fd) | r;
}
static int s_open(backend *b, const char *p)
{
    b->u.fp = fopen(p, "wb");
    if (!b->u.fp)
        return -1;
    return setvbuf(b->u.fp, NULL, _IOFBF, 1 << 15);
}
static int s_write(backend *b, const void *d, size_t n)
{
    if (fwrite(d, 1, n, b->u.fp) != n)
        return -1;
    b->written += n;
    return 0;
}
static int s_close(backend *b)
{
    return fclose(b->u.fp);
}
static int v_write(backend *b, const void *d, size_t n)
{
    uint32_t head = n;
    struct iovec v[2] = {{&head, sizeof head}, {(void *)d, n}};
    ssize_t k = writev(b->u.fd, v, 2);
    if (k < 0)
        return -1;
    b->written += k;
    return 0;
}
static backend table[] = {{"posix", p_open, p_write, p_close, {0}, 0},
                          {"stdio", s_open, s_write, s_close, {0}, 0},
                          {"vector", p_open, v_write, p_close, {0}, 0}};
struct header {
    char magic[4];
    uint32_t version : 8, kind : 4, flags : 20;
    uint64_t count;
    double time;
} __attribute__((packed));
struct state {
    size_t n;
    float *x, *v;
    double e;
};
static void evolve(struct state *s)
{
    double e = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->v[i] -= 0.01f * sinf(s->x[i]);
        s->x[i] += 0.01f * s->v[i];
        e += s->v[i] * s->v[i];
    }
    s->e = e;
}
static int dump(backend *b, const struct state *s, int step)
{
    char tmp[128], fin[128];
    struct header h = {"DUMP", 3, 1, 0, s->n, step * 0.01};
    int r;
    snprintf(tmp, sizeof tmp, "out/%s/.step%05d.tmp", b->name, step);
    snprintf(fin, sizeof fin, "out/%s/step%05d.bin", b->name, step);
    if ((r = b->open(b, tmp)) < 0)
        return r;
    if (b->write(b, &h, sizeof h) < 0 || b->write(b, s->x, s->n * sizeof *s->x) < 0 ||
        b->write(b, s->v, s->n * sizeof *s->v) < 0) {
        b->close(b);
        unlink(tmp);
        return -1;
    }
    if (b->close(b) < 0)
        return -1;
    return rename(tmp, fin);
}
int main(int argc, char **argv)
{
    int opt, steps = 40, every = 4, which = 0;
    struct state s = {5000, NULL, NULL, 0};
    backend *b = NULL;
    while ((opt = getopt(argc, argv, "s:e:n:b:")) != -1)
        switch (opt) {
        case 's':
            steps = atoi(optarg);
            break;
        case 'e':
            every = atoi(optarg);
            break;
        case 'n':
            s.n = strtoul(optarg, NULL, 0);
            break;
        case 'b':
            for (which = 0; which < 3 && strcmp(table[which].name, optarg); which++)
                ;
            if (which == 3)
                return 2;
            break;
        default:
            return 2;
        }
    b = &table[which];
    s.x = malloc(s.n * sizeof *s.x);
    s.v = malloc(s.n * sizeof *s.v);
    if (!s.x || !s.v)
        return 1;
    for (size_t i = 0; i < s.n; i++) {
        s.x[i] = i * 0.001f;
        s.v[i] = 0;
    }
    mkdir("out", 0777);
    {
        char d[64];
        sprintf(d, "out/%s", b->name);
        if (mkdir(d, 0777) && errno != EEXIST) {
            perror(d);
            return 1;
        }
    }
    for (int k = 0; k < steps; k++) {
        for (int sub = 0; sub < 50; sub++)
            evolve(&s);
        if (k % every == 0)
            if (dump(b, &s, k)) {
                perror("dump");
                return 1;
            }
    }
    printf("energy %g, %zu bytes\n", s.e, b->written);
    free(s.x);
    free(s.v);
    return 0;
}
