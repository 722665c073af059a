/* HDF5 with a macro that checks each call and jumps to the end, attributes, and a log through a function with variable
 * arguments. */
#include <hdf5.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 40
#define COLUMNS 300
#define TRY(call)                                                                      \
    do {                                                                               \
        if ((long)(call) < 0) {                                                        \
            say("%s:%d: %s failed", __FILE__, __LINE__, #call);                        \
            goto cleanup;                                                              \
        }                                                                              \
    } while (0)

static FILE *log_file;
static double field[ROWS][COLUMNS];

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(log_file, format, arguments);
    va_end(arguments);
    fputc('\n', log_file);
}

static herr_t put_number(hid_t object, const char *name, double value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t result = H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value);
    H5Aclose(attribute);
    H5Sclose(space);
    return result;
}

static int save(int step)
{
    hsize_t size[2] = {ROWS, COLUMNS};
    hid_t file = -1, space = -1, set = -1;
    char name[64];
    int failed = 1;
    snprintf(name, sizeof name, "field_%04d.h5", step);
    TRY(file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    TRY(put_number(file, "time", step * 0.1));
    TRY(space = H5Screate_simple(2, size, NULL));
    TRY(set = H5Dcreate2(file, "field", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    TRY(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, field));
    failed = 0;
    say("%s:%d: step %d written", __FILE__, __LINE__, step);
cleanup:
    if (set >= 0)
        H5Dclose(set);
    if (space >= 0)
        H5Sclose(space);
    if (file >= 0)
        H5Fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    double largest = 0.0;
    if ((log_file = fopen("log", "w")) == NULL)
        return 2;
    for (int step = 1; step <= steps; step++) {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                field[i][j] = sin(field[i][j] + 0.01 * i * j);
                largest = fmax(largest, field[i][j]);
            }
        if (step % 2 == 0 && save(step))
            return 1;
    }
    fclose(log_file);
    printf("%g\n", largest);
    return 0;
}
