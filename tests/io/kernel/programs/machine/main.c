#include "machine.h"
#include <stdlib.h>
int main(int argc, char **argv)
{
    struct machine m = {.table = {[INIT] = do_init, [RUN] = do_run, [DUMP] = do_dump},
                        .n = 5000,
                        .last = argc > 1 ? atoi(argv[1]) : 60};
    enum st s = INIT;
    while (s != DONE)
        s = m.table[s](&m);
    FILE *f = fopen("done", "w");
    fprintf(f, "%d dumps\n", m.dumps);
    fclose(f);
    free(m.buf);
    return m.dumps == 0;
}
