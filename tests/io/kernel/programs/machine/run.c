#include "machine.h"
#include <math.h>
static double kernel(double x, int k)
{
    for (int i = 0; i < k; i++)
        x = sqrt(x * x + 1e-3);
    return x;
}
enum st do_run(struct machine *m)
{
    double acc = 0;
    for (size_t i = 0; i < m->n; i++) {
        m->buf[i] = kernel(m->buf[i], 40);
        acc += m->buf[i];
    }
    m->reg.f = acc;
    m->step++;
    if (m->step > m->last)
        return DONE;
    return should_dump(m) ? DUMP : RUN;
}
