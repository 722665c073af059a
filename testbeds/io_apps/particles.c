/* Particles in a box: each rank writes its own HDF5 file per snapshot, one data set for each coordinate.
   Usage: particles [COUNT] [STEPS] [EVERY]. Build: h5cc -shlib -O2 -Wall particles.c -o particles -lm */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AXES = 3 };

typedef struct {
    double *position[AXES];
    double *speed[AXES];
    float *energy;
    long count;
} particles_t;

static const char *const names[AXES] = {"x", "y", "z"};

static void *allocate(size_t count, size_t size)
{
    void *memory = malloc(count * size);
    if (memory == NULL) {
        fprintf(stderr, "not enough memory for %zu values\n", count);
        exit(1);
    }
    return memory;
}

static void place(particles_t *all, unsigned seed)
{
    srand(seed);
    for (int axis = 0; axis < AXES; axis++) {
        for (long i = 0; i < all->count; i++) {
            all->position[axis][i] = rand() / (double)RAND_MAX;
            all->speed[axis][i] = rand() / (double)RAND_MAX - 0.5;
        }
    }
}

static void move(particles_t *all, double dt)
{
    for (int axis = 0; axis < AXES; axis++) {
        for (long i = 0; i < all->count; i++) {
            double at = all->position[axis][i] + dt * all->speed[axis][i];
            if (at < 0.0 || at > 1.0) {
                all->speed[axis][i] = -all->speed[axis][i];
                at = fmin(fmax(at, 0.0), 1.0);
            }
            all->position[axis][i] = at;
        }
    }
}

static void measure(particles_t *all)
{
    for (long i = 0; i < all->count; i++) {
        double sum = 0.0;
        for (int axis = 0; axis < AXES; axis++)
            sum += all->speed[axis][i] * all->speed[axis][i];
        all->energy[i] = (float)(0.5 * sum + exp(-sum));
    }
}

static int write_values(hid_t file, const char *name, hid_t type, long count, const void *values)
{
    hsize_t size = (hsize_t)count;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    herr_t result = H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);

    H5Dclose(set);
    H5Sclose(space);
    return result < 0 ? -1 : 0;
}

static int snapshot(const particles_t *all, int step)
{
    char name[80];
    hid_t file;
    int failed = 0;

    snprintf(name, sizeof name, "particles_%04d.h5", step);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return -1;
    for (int axis = 0; axis < AXES && !failed; axis++)
        failed = write_values(file, names[axis], H5T_NATIVE_DOUBLE, all->count, all->position[axis]);
    if (!failed)
        failed = write_values(file, "energy", H5T_NATIVE_FLOAT, all->count, all->energy);
    H5Fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    particles_t all;
    int steps, every;

    all.count = argc > 1 ? atol(argv[1]) : 100000;
    steps = argc > 2 ? atoi(argv[2]) : 40;
    every = argc > 3 ? atoi(argv[3]) : 20;
    if (all.count < 1 || steps < 1 || every < 1) {
        fprintf(stderr, "usage: particles [COUNT] [STEPS] [EVERY]\n");
        return 2;
    }
    for (int axis = 0; axis < AXES; axis++) {
        all.position[axis] = allocate(all.count, sizeof(double));
        all.speed[axis] = allocate(all.count, sizeof(double));
    }
    all.energy = allocate(all.count, sizeof(float));
    place(&all, 7);
    for (int step = 1; step <= steps; step++) {
        for (int part = 0; part < 10; part++)
            move(&all, 0.001);
        if (step % every)
            continue;
        measure(&all);
        if (snapshot(&all, step) != 0) {
            fprintf(stderr, "cannot write step %d\n", step);
            return 1;
        }
    }
    for (int axis = 0; axis < AXES; axis++) {
        free(all.position[axis]);
        free(all.speed[axis]);
    }
    free(all.energy);
    return 0;
}
