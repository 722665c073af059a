#include "machine.h"
#include <stdlib.h>
#include <string.h>
enum st do_init(struct machine *m)
{
    m->buf = malloc(m->n * sizeof *m->buf);
    if (!m->buf)
        abort();
    memset(m->buf, 0, m->n * sizeof *m->buf);
    strcpy(m->naming.base, "fsm");
    m->naming.width = 4;
    return RUN;
}
enum st do_dump(struct machine *m)
{
    char name[40];
    STEP_NAME(name, m);
    if (!(m->out = fopen(name, "wb")))
        return DONE;
    setbuf(m->out, NULL);
    fwrite(&m->reg, sizeof m->reg, 1, m->out);
    fwrite(m->buf, sizeof *m->buf, m->n, m->out);
    fclose(m->out);
    m->dumps++;
    return RUN;
}
