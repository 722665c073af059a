/* The state of a simulation that can be stopped and continued. */
#ifndef STATE_H
#define STATE_H

struct header {
    char magic[8];
    int version;
    int steps_done;
    long cells;
    double time;
};

struct state {
    struct header header;
    double *density;
    double *energy;
    double mass; /* a diagnostic that is only printed */
};

int state_create(struct state *state, long cells);
void state_free(struct state *state);
int state_read(struct state *state, const char *path);
int state_write(const struct state *state, const char *path);
void state_advance(struct state *state, double dt);

#endif
