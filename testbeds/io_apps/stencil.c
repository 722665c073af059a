/* A heat equation on a square, split into strips of rows, with checkpoints to one HDF5 file per checkpoint.
   Usage: stencil [N] [STEPS] [EVERY]. Build: h5pcc -shlib -O2 -Wall stencil.c -o stencil -lm */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX(i, j) ((size_t)(i) * n + (j))

static int rank, ranks;

/* Exchanges the border rows with the neighbours. */
static void exchange(double *u, int rows, int n)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;

    MPI_Sendrecv(&u[INDEX(1, 0)], n, MPI_DOUBLE, up, 1, &u[INDEX(rows + 1, 0)], n, MPI_DOUBLE, down, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[INDEX(rows, 0)], n, MPI_DOUBLE, down, 2, &u[INDEX(0, 0)], n, MPI_DOUBLE, up, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One step of Jacobi's method; returns the largest change. */
static double relax(const double *u, double *next, int rows, int n)
{
    double largest = 0.0;
    for (int i = 1; i <= rows; i++) {
        for (int j = 1; j < n - 1; j++) {
            double value = 0.25 * (u[INDEX(i - 1, j)] + u[INDEX(i + 1, j)] + u[INDEX(i, j - 1)] + u[INDEX(i, j + 1)]);
            double change = fabs(value - u[INDEX(i, j)]);
            next[INDEX(i, j)] = value + 1e-9 * sin(value);
            if (change > largest)
                largest = change;
        }
    }
    return largest;
}

/* Writes the strip of this rank into the file of a step. */
static void checkpoint(const double *u, int rows, int offset, int n, int step, double now)
{
    char name[64];
    hsize_t all[2] = {(hsize_t)n, (hsize_t)n}, mine[2] = {(hsize_t)rows, (hsize_t)n};
    hsize_t first[2] = {(hsize_t)offset, 0};
    hid_t access, file, space, memory, set, transfer, attribute, scalar;

    snprintf(name, sizeof name, "stencil_%05d.h5", step);
    access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);

    /* the field */
    space = H5Screate_simple(2, all, NULL);
    set = H5Dcreate2(file, "u", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    memory = H5Screate_simple(2, mine, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, mine, NULL);
    transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    if (H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, u + n) < 0) {
        fprintf(stderr, "cannot write %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    /* the time */
    scalar = H5Screate(H5S_SCALAR);
    attribute = H5Acreate2(set, "time", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_DOUBLE, &now);
    H5Aclose(attribute);
    H5Sclose(scalar);
    H5Pclose(transfer);
    H5Sclose(memory);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 200;
    int every = argc > 3 ? atoi(argv[3]) : 100;
    int rows, offset = 0, i, j, step;
    double *u, *next, *other, change, largest, started, dt = 0.01;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rows = n / ranks + (rank < n % ranks ? 1 : 0);
    MPI_Exscan(&rows, &offset, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        offset = 0;

    u = malloc((size_t)(rows + 2) * n * sizeof *u);
    next = malloc((size_t)(rows + 2) * n * sizeof *next);
    if (u == NULL || next == NULL) {
        fprintf(stderr, "not enough memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < rows + 2; i++)
        for (j = 0; j < n; j++)
            u[INDEX(i, j)] = (offset + i) % 17 == 0 ? 1.0 : 0.0;
    memcpy(next, u, (size_t)(rows + 2) * n * sizeof *u);

    started = MPI_Wtime();
    for (step = 1; step <= steps; step++) {
        exchange(u, rows, n);
        change = relax(u, next, rows, n);
        other = u;
        u = next;
        next = other;
        if (step % 50 == 0) {
            MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (rank == 0)
                printf("step %d: largest change %g\n", step, largest);
        }
        if (step % every == 0)
            checkpoint(u, rows, offset, n, step, step * dt);
    }
    if (rank == 0)
        printf("%d steps in %.3f s\n", steps, MPI_Wtime() - started);
    free(u);
    free(next);
    MPI_Finalize();
    return 0;
}
