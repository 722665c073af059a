/* Making and advancing a state. */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int state_create(struct state *state, long cells)
{
    memset(&state->header, 0, sizeof state->header);
    memcpy(state->header.magic, "RESTART", 8);
    state->header.version = 1;
    state->header.cells = cells;
    state->density = malloc(cells * sizeof(double));
    state->energy = malloc(cells * sizeof(double));
    if (state->density == NULL || state->energy == NULL)
        return -1;
    for (long i = 0; i < cells; i++) {
        state->density[i] = 1.0 + 0.1 * sin(0.01 * i);
        state->energy[i] = 2.5;
    }
    state->mass = 0.0;
    return 0;
}

void state_free(struct state *state)
{
    free(state->density);
    free(state->energy);
}

void state_advance(struct state *state, double dt)
{
    long n = state->header.cells;
    double mass = 0.0;

    for (int sweep = 0; sweep < 20; sweep++) {
        for (long i = 1; i < n - 1; i++) {
            double flux = 0.5 * (state->density[i + 1] - state->density[i - 1]);
            state->energy[i] += dt * flux * exp(-state->energy[i]);
            state->density[i] -= dt * flux;
        }
    }
    for (long i = 0; i < n; i++)
        mass += state->density[i];
    state->mass = mass;
    state->header.steps_done++;
    state->header.time += dt;
}
