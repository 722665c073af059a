/* Writes a matrix row by row into chunks of HDF5 and reads it column by column: the default chunk cache is too small.
   Usage: columns [N] [CHUNK]. Build: h5cc -shlib -O2 -Wall columns.c -o columns -lm */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) \
    do { \
        if ((call) < 0) { \
            fprintf(stderr, "%s:%d: a call of HDF5 failed\n", __FILE__, __LINE__); \
            exit(1); \
        } \
    } while (0)

/* A value that is expensive to compute. */
static double value_at(int row, int column)
{
    double value = row + 0.001 * column;
    for (int i = 0; i < 50; i++)
        value = sqrt(value * value + sin(value));
    return value;
}

static void write_rows(hid_t set, hid_t space, int n)
{
    hsize_t count[2] = {1, (hsize_t)n};
    hid_t line = H5Screate_simple(2, count, NULL);
    double *row = malloc(n * sizeof(double));

    if (row == NULL)
        exit(1);
    for (int i = 0; i < n; i++) {
        hsize_t first[2] = {(hsize_t)i, 0};
        for (int j = 0; j < n; j++)
            row[j] = value_at(i, j);
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL));
        CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, line, space, H5P_DEFAULT, row));
    }
    free(row);
    CHECK(H5Sclose(line));
}

static double sum_columns(hid_t set, hid_t space, int n)
{
    hsize_t count[2] = {(hsize_t)n, 1};
    hid_t line = H5Screate_simple(2, count, NULL);
    double *column = malloc(n * sizeof(double)), total = 0.0;

    if (column == NULL)
        exit(1);
    for (int j = 0; j < n; j++) {
        hsize_t first[2] = {0, (hsize_t)j};
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL));
        CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, line, space, H5P_DEFAULT, column));
        for (int i = 0; i < n; i++)
            total += column[i] * cos(column[i]);
    }
    free(column);
    CHECK(H5Sclose(line));
    return total;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 400, chunk = argc > 2 ? atoi(argv[2]) : 64;
    hsize_t size[2], chunks[2];
    hid_t file, space, create, set;
    double total;

    if (n < 1 || chunk < 1 || chunk > n) {
        fprintf(stderr, "usage: columns [N] [CHUNK], CHUNK at most N\n");
        return 2;
    }
    size[0] = size[1] = (hsize_t)n;
    chunks[0] = chunks[1] = (hsize_t)chunk;
    CHECK(file = H5Fcreate("columns.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    CHECK(space = H5Screate_simple(2, size, NULL));
    CHECK(create = H5Pcreate(H5P_DATASET_CREATE));
    CHECK(H5Pset_chunk(create, 2, chunks));
    CHECK(set = H5Dcreate2(file, "matrix", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, create, H5P_DEFAULT));
    write_rows(set, space, n);
    total = sum_columns(set, space, n);
    CHECK(H5Dclose(set));
    CHECK(H5Pclose(create));
    CHECK(H5Sclose(space));
    CHECK(H5Fclose(file));
    printf("total %g\n", total);
    return 0;
}
