/* 10,000 calls of HDF5.
 *
 *     io_overhead datasets FILE BYTES    2,500 datasets, each created, written, read and closed
 *     io_overhead rows FILE BYTES        10 datasets, written and read by rows, again and again
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *data;

static void check(long long result)
{
    if (result < 0)
        exit(1);
}

static hid_t create(hid_t file, int number, hid_t space)
{
    char name[16];
    snprintf(name, sizeof name, "set%d", number);
    return H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

static void datasets(hid_t file, hsize_t width)
{
    hid_t space = H5Screate_simple(1, &width, NULL);
    for (int i = 0; i < 2500; i++) {
        hid_t set = create(file, i, space);
        check(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
        check(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
        check(H5Dclose(set));
    }
    H5Sclose(space);
}

static void rows(hid_t file, hsize_t width)
{
    enum { ROWS = 16, STEPS = 998 };
    hsize_t sizes[2] = {ROWS, width}, row[2] = {1, width};
    hid_t space = H5Screate_simple(2, sizes, NULL), memory = H5Screate_simple(2, row, NULL);
    for (int i = 0; i < 10; i++) {
        hid_t set = create(file, i, space);
        for (hsize_t j = 0; j < STEPS; j++) {
            hsize_t start[2] = {j % ROWS, 0};
            check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL));
            if (j < STEPS / 2)
                check(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, data));
            else
                check(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, data));
        }
        check(H5Dclose(set));
    }
    H5Sclose(memory);
    H5Sclose(space);
}

int main(int count, char **arguments)
{
    hsize_t width = count == 4 ? strtoull(arguments[3], NULL, 10) / sizeof(double) : 0;
    if (width == 0 || (data = calloc(width, sizeof *data)) == NULL)
        return 2;
    hid_t file = H5Fcreate(arguments[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file);
    (strcmp(arguments[1], "rows") == 0 ? rows : datasets)(file, width);
    check(H5Fclose(file));
    return 0;
}
