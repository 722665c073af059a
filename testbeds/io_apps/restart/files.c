/* Reading and writing restart files. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a restart file and allocates what it holds. */
int state_read(struct state *state, const char *path)
{
    FILE *file = fopen(path, "rb");
    int result = -1;

    if (file == NULL)
        return -1;
    if (fread(&state->header, sizeof state->header, 1, file) != 1)
        goto done;
    if (memcmp(state->header.magic, "RESTART", 8) != 0 || state->header.version != 1)
        goto done;
    state->density = malloc(state->header.cells * sizeof(double));
    state->energy = malloc(state->header.cells * sizeof(double));
    if (state->density == NULL || state->energy == NULL)
        goto done;
    if (fread(state->density, sizeof(double), state->header.cells, file) != (size_t)state->header.cells)
        goto done;
    if (fread(state->energy, sizeof(double), state->header.cells, file) != (size_t)state->header.cells)
        goto done;
    state->mass = 0.0;
    result = 0;
done:
    fclose(file);
    return result;
}

/* Writes to a temporary file first: a crash leaves the last restart file as it was. */
int state_write(const struct state *state, const char *path)
{
    char temporary[256];
    FILE *file;
    size_t cells = (size_t)state->header.cells;

    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    file = fopen(temporary, "wb");
    if (file == NULL)
        return -1;
    if (fwrite(&state->header, sizeof state->header, 1, file) != 1 ||
        fwrite(state->density, sizeof(double), cells, file) != cells ||
        fwrite(state->energy, sizeof(double), cells, file) != cells) {
        fclose(file);
        return -1;
    }
    if (fclose(file) != 0)
        return -1;
    return rename(temporary, path);
}
