/* A simulation that reads its restart file if there is one, and writes a new one now and then.
   Usage: restart [-n CELLS] [-s STEPS] [-e EVERY] [-q]. Build: gcc -O2 -Wall main.c state.c files.c -o restart -lm */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int verbosity = 1;

static void show(const struct state *state)
{
    if (verbosity > 0)
        printf("step %d, time %.3f, mass %.6f\n", state->header.steps_done, state->header.time, state->mass);
}

int main(int argc, char **argv)
{
    struct state state;
    const char *path = "restart.bin";
    long cells = 200000;
    int steps = 20, every = 5, option;

    while ((option = getopt(argc, argv, "n:s:e:q")) != -1) {
        switch (option) {
        case 'n':
            cells = atol(optarg);
            break;
        case 's':
            steps = atoi(optarg);
            break;
        case 'e':
            every = atoi(optarg);
            break;
        case 'q':
            verbosity = 0;
            break;
        default:
            fprintf(stderr, "usage: restart [-n CELLS] [-s STEPS] [-e EVERY] [-q]\n");
            return 2;
        }
    }
    if (access(path, R_OK) == 0) {
        if (state_read(&state, path) != 0) {
            fprintf(stderr, "%s cannot be read\n", path);
            return 1;
        }
    } else if (state_create(&state, cells) != 0) {
        fprintf(stderr, "not enough memory\n");
        return 1;
    }
    for (int step = 1; step <= steps; step++) {
        state_advance(&state, 0.001);
        show(&state);
        if (step % every == 0 && state_write(&state, path) != 0) {
            fprintf(stderr, "%s cannot be written\n", path);
            return 1;
        }
    }
    state_free(&state);
    return 0;
}
