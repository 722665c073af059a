/* Writes one file from all ranks, by MPI-IO or by HDF5, in pieces that alternate between the ranks, and reads it back.
 *
 *     parallel mpi|hdf5 FILE [collective]
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024, PIECES = 64 }; /* numbers in a piece, pieces of each rank */

static int rank, ranks, collective;
static double data[PIECE * PIECES];

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void by_mpi(const char *path)
{
    MPI_File file;
    MPI_Datatype pieces;
    MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_DOUBLE, &pieces);
    MPI_Type_commit(&pieces);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS,
          "open");
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE * 8, MPI_DOUBLE, pieces, "native", MPI_INFO_NULL);
    if (collective)
        MPI_File_write_all(file, data, PIECE * PIECES, MPI_DOUBLE, MPI_STATUS_IGNORE);
    else
        MPI_File_write(file, data, PIECE * PIECES, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, data, PIECE * PIECES, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&pieces);
}

static void by_hdf5(const char *path)
{
    hsize_t size = (hsize_t)PIECE * PIECES * ranks, mine = PIECE * PIECES;
    hsize_t start = (hsize_t)rank * PIECE, stride = (hsize_t)PIECE * ranks, count = PIECES, block = PIECE;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    if (collective)
        H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), space = H5Screate_simple(1, &size, NULL);
    hid_t memory = H5Screate_simple(1, &mine, NULL);
    check(file >= 0, "create");
    for (int i = 0; i < 4; i++) { /* some metadata */
        char name[16];
        snprintf(name, sizeof name, "group%d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    hid_t set = H5Dcreate2(file, "numbers", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, &block);
    check(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data) >= 0, "write");
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    check(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, data) >= 0, "read");
    H5Dclose(set);
    H5Sclose(memory);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(transfer);
    H5Pclose(access);
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(count > 2, "parallel mpi|hdf5 FILE [collective]");
    collective = count > 3;
    for (int i = 0; i < PIECE * PIECES; i++)
        data[i] = rank * 1e6 + i;
    if (strcmp(arguments[1], "mpi") == 0)
        by_mpi(arguments[2]);
    else
        by_hdf5(arguments[2]);
    for (int i = 0; i < PIECE * PIECES; i++)
        check(data[i] == rank * 1e6 + i, "the file holds something else than was written");
    MPI_Finalize();
    return 0;
}
