/* What programs do with HDF5, in small pieces, for the tests of native/io.
 *
 *     hdf5_program PIECE FILE
 */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 400 };

static void check(long long result)
{
    if (result < 0) {
        fprintf(stderr, "hdf5_program: a call failed\n");
        exit(1);
    }
}

static hid_t simple(hsize_t size)
{
    return H5Screate_simple(1, &size, NULL);
}

/* Much metadata: groups with one small dataset each, all opened again in another order. */
static void many(const char *path)
{
    char name[32];
    hid_t space = simple(4), file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "group%d", i);
        hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t set = H5Dcreate2(group, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        check(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, (int[]){i, 1, 2, 3}));
        H5Dclose(set);
        H5Gclose(group);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < MANY; i++) {
            int data[4];
            snprintf(name, sizeof name, "group%d/set", i * 7 % MANY);
            hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
            check(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
            check(data[0] == i * 7 % MANY ? 0 : -1);
            H5Dclose(set);
        }
    H5Sclose(space);
    check(H5Fclose(file));
}

/* One element of a large dataset that has a fill value. */
static void sparse(const char *path)
{
    hsize_t place = 5;
    double fill = 1.5, value = 7;
    hid_t space = simple(1 << 17), one = simple(1), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Pset_fill_value(creation, H5T_NATIVE_DOUBLE, &fill);
    hid_t set = H5Dcreate2(file, "set", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sselect_elements(space, H5S_SELECT_SET, 1, &place);
    check(H5Dwrite(set, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, &value));
    H5Dclose(set);
    check(H5Fclose(file));
}

/* A dataset that is created and never written. */
static void unwritten(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(H5Dclose(H5Dcreate2(file, "set", H5T_NATIVE_DOUBLE, simple(1 << 17), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    check(H5Fclose(file));
}

/* A large and a small dataset. */
static void two_sizes(const char *path)
{
    static double data[1 << 15];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const char *names[] = {"small", "large"};
    for (int i = 0; i < 2; i++) {
        hid_t set = H5Dcreate2(file, names[i], H5T_NATIVE_DOUBLE, simple(i == 0 ? 100 : 1 << 15), H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT);
        check(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
        H5Dclose(set);
    }
    check(H5Fclose(file));
}

/* Chunks of 1000 numbers: A is read in part, B as a whole, C in part, again and again; two of them fit into the cache. */
static void w0(const char *path)
{
    static double data[3000];
    hsize_t chunk = 1000, part = 10;
    hid_t space = simple(3000), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, "set", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    check(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    H5Dclose(set);
    H5Fclose(file);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "set", H5P_DEFAULT);
    for (int round = 0; round < 20; round++)
        for (hsize_t i = 0; i < 3; i++) {
            hsize_t start = i * chunk, count = i == 1 ? chunk : part;
            hid_t memory = simple(count);
            H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
            check(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, data));
            H5Sclose(memory);
        }
    H5Dclose(set);
    H5Fclose(file);
}

/* Lists of the program's own, which must be the same afterwards; prints what it finds in them. */
static void lists(const char *path)
{
    static double data[1 << 15];
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set_access = H5Pcreate(H5P_DATASET_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_alignment(access, 10, 512);
    H5Pset_chunk_cache(set_access, 11, 1000, 0.5);
    hid_t before[] = {H5Pcopy(access), H5Pcopy(creation), H5Pcopy(set_access), H5Pcopy(transfer)};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hid_t set = H5Dcreate2(file, "set", H5T_NATIVE_DOUBLE, simple(1 << 15), H5P_DEFAULT, creation, set_access);
    check(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, transfer, data));
    H5Dclose(set);
    check(H5Dclose(H5Dopen2(file, "set", set_access)));
    check(H5Fclose(file));
    hid_t after[] = {access, creation, set_access, transfer};
    for (int i = 0; i < 4; i++)
        printf("%d", H5Pequal(before[i], after[i]) > 0);
    printf("\n");
}

/* Calls that fail: the errors that HDF5 keeps must be there to read. */
static herr_t print_error(unsigned n, const H5E_error2_t *error, void *data)
{
    (void)data;
    printf("%u %s: %s\n", n, error->func_name, error->desc);
    return 0;
}

static void errors(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    printf("%d\n", H5Fopen("/nonexistent/file.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, print_error, NULL);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = simple(10);
    hid_t set = H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    printf("%d\n", H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) < 0);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, print_error, NULL);
    printf("%d\n", H5Dwrite(set, H5T_NATIVE_INT, simple(3), space, H5P_DEFAULT, (int[10]){0}) < 0);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, print_error, NULL);
    printf("%d %d\n", H5Dread(-1, -1, -1, -1, -1, NULL) < 0, H5Dcreate2(-1, NULL, -1, -1, -1, -1, -1) < 0);
    H5Dclose(set);
    H5Fclose(file);
}

/* Datasets that a chunk of two dimensions does not fit: scalar, of one dimension, with a layout of their own, of strings of
 * variable length (which HDF5 refuses without fill values). */
static void layouts(const char *path)
{
    hsize_t chunk = 10, sizes[2] = {20, 20}, open_end[2] = {H5S_UNLIMITED, 20}, chunks[2] = {5, 5};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), compact = H5Pcreate(H5P_DATASET_CREATE);
    H5Tset_size(text, H5T_VARIABLE);
    H5Pset_chunk(creation, 1, &chunk);
    check(H5Dclose(H5Dcreate1(file, "scalar", H5T_NATIVE_INT, H5Screate(H5S_SCALAR), H5P_DEFAULT)));
    check(H5Dclose(H5Dopen1(file, "scalar")));
    check(H5Dclose(H5Dcreate2(file, "line", H5T_NATIVE_INT, simple(100), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    check(H5Dclose(H5Dcreate2(file, "own", H5T_NATIVE_INT, simple(100), H5P_DEFAULT, creation, H5P_DEFAULT)));
    H5Pset_layout(compact, H5D_COMPACT);
    check(H5Dclose(H5Dcreate2(file, "compact", H5T_NATIVE_INT, simple(10), H5P_DEFAULT, compact, H5P_DEFAULT)));
    check(H5Dclose(H5Dcreate2(file, "strings", text, H5Screate_simple(2, sizes, NULL), H5P_DEFAULT, H5P_DEFAULT,
                              H5P_DEFAULT)));
    H5Pset_chunk(creation, 2, chunks);
    check(H5Dclose(H5Dcreate2(file, "growing", H5T_NATIVE_INT, H5Screate_simple(2, sizes, open_end), H5P_DEFAULT, creation,
                              H5P_DEFAULT)));
    check(H5Dclose(H5Dcreate1(file, "plane", H5T_NATIVE_INT, H5Screate_simple(2, sizes, NULL), H5P_DEFAULT)));
    H5E_BEGIN_TRY /* HDF5 refuses a dataset that grows and has no chunks */
    printf("%d\n", H5Dcreate1(file, "refused", H5T_NATIVE_INT, H5Screate_simple(2, sizes, open_end), H5P_DEFAULT) < 0);
    H5E_END_TRY
    check(H5Fclose(file));
}

/* Space before the content of the file, in a file that must not exist yet. */
static void user_block(const char *path)
{
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), space = simple(10);
    check(H5Pset_userblock(creation, 512));
    hid_t file = H5Fcreate(path, H5F_ACC_EXCL, creation, H5P_DEFAULT);
    check(H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    check(H5Fclose(file));
    check(H5Fcreate(path, H5F_ACC_EXCL, creation, H5P_DEFAULT) < 0 ? 0 : -1);
}

/* Metadata and data in a file each. */
static void split(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), space = simple(10000);
    check(H5Pset_fapl_split(access, "-m", H5P_DEFAULT, "-r", H5P_DEFAULT));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    check(H5Fclose(file));
}

static herr_t say_error(void *data)
{
    (void)data;
    puts("error");
    return 0;
}

/* A handler of errors as programs for HDF5 1.6 have it. */
static void old_handler(const char *path)
{
    H5Eset_auto1(say_error, NULL);
    hid_t space = simple(10), file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dcreate2(group, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gopen2(file, "missing", H5P_DEFAULT);
    H5Dopen2(group, "missing", H5P_DEFAULT);
    check(H5Fclose(file));
}

/* HDF5 gives out the same numbers for other files after it was closed. */
static void restart(const char *path)
{
    char name[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        hid_t space = simple(4), file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t inner = H5Gcreate2(group, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t set = H5Dcreate2(inner, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        check(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, (int[]){i, 1, 2, 3}));
        check(H5close());
    }
}

/* A file of the program's own has the number of standard error. */
static void own_stderr(const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.text", path);
    close(2);
    check(open(name, O_WRONLY | O_CREAT, 0666) == 2 ? 0 : -1);
    check(H5Fclose(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)));
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(const char *); } PIECES[] = {
        {"many", many}, {"sparse", sparse}, {"unwritten", unwritten}, {"two_sizes", two_sizes}, {"w0", w0},
        {"lists", lists}, {"errors", errors}, {"layouts", layouts}, {"own_stderr", own_stderr},
        {"user_block", user_block}, {"split", split}, {"old_handler", old_handler}, {"restart", restart}};
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
        if (count == 3 && strcmp(arguments[1], PIECES[i].name) == 0) {
            PIECES[i].run(arguments[2]);
            return 0;
        }
    return 2;
}
