#pragma once
#include <stdio.h>
enum st { INIT, RUN, DUMP, DONE };
struct machine;
typedef enum st (*handler)(struct machine *);
struct machine {
    handler table[4];
    int step, last, dumps;
    FILE *out;
    double *buf;
    size_t n;
    struct {
        char base[16];
        int width;
    } naming;
    union {
        double f;
        long i;
    } reg;
};
enum st do_init(struct machine *);
enum st do_run(struct machine *);
enum st do_dump(struct machine *);
#define STEP_NAME(buf, m) snprintf((buf), sizeof(buf), "%s%0*d", (m)->naming.base, (m)->naming.width, (m)->step)
static inline int should_dump(const struct machine *m)
{
    return m->step % 3 == 0;
}
