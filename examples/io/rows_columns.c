/* A program with a common problem: it writes a matrix to an HDF5 file row by row and reads it back column by column.
 *
 *     h5cc -shlib -O2 rows_columns.c -o rows_columns
 *     ./rows_columns [FILE [ROWS [COLUMNS]]]
 *
 * It uses the defaults of HDF5, which store the matrix row after row: each column then touches the whole file.
 * docs/io.md shows how settings are injected into it without changing it. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what)
{
    fprintf(stderr, "rows_columns: cannot %s\n", what);
    exit(1);
}

static void write_rows(const char *path, hsize_t rows, hsize_t columns)
{
    hsize_t sizes[2] = {rows, columns}, count[2] = {1, columns};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, sizes, NULL), memory = H5Screate_simple(2, count, NULL);
    hid_t matrix = H5Dcreate2(file, "matrix", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    double *row = malloc(columns * sizeof *row);
    if (file < 0 || matrix < 0 || row == NULL)
        fail("create the file");
    for (hsize_t i = 0; i < rows; i++) {
        hsize_t start[2] = {i, 0};
        for (hsize_t j = 0; j < columns; j++)
            row[j] = (double)(i * columns + j);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (H5Dwrite(matrix, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row) < 0)
            fail("write a row");
    }
    free(row);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(matrix);
    if (H5Fclose(file) < 0)
        fail("close the file");
}

/* The sum over all columns, each weighted by its number, so that an element in the wrong place is noticed. */
static double read_columns(const char *path, hsize_t rows, hsize_t columns)
{
    hsize_t count[2] = {rows, 1};
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t matrix = H5Dopen2(file, "matrix", H5P_DEFAULT);
    hid_t space = H5Dget_space(matrix), memory = H5Screate_simple(2, count, NULL);
    double *column = malloc(rows * sizeof *column), sum = 0;
    if (file < 0 || matrix < 0 || column == NULL)
        fail("open the file");
    for (hsize_t j = 0; j < columns; j++) {
        hsize_t start[2] = {0, j};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (H5Dread(matrix, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, column) < 0)
            fail("read a column");
        for (hsize_t i = 0; i < rows; i++)
            sum += column[i] * (double)(j % 7 + 1);
    }
    free(column);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(matrix);
    H5Fclose(file);
    return sum;
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "matrix.h5";
    hsize_t rows = count > 2 ? strtoull(arguments[2], NULL, 10) : 1024;
    hsize_t columns = count > 3 ? strtoull(arguments[3], NULL, 10) : 1024;
    if (rows == 0 || columns == 0)
        fail("work on an empty matrix");
    write_rows(path, rows, columns);
    printf("{\"rows\": %llu, \"columns\": %llu, \"sum\": %.17g}\n", (unsigned long long)rows,
           (unsigned long long)columns, read_columns(path, rows, columns));
    return 0;
}
