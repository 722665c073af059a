/* All ranks write one file in turn, block by block, with MPI-IO: each block holds one variable of one rank.
   Usage: strided [BLOCK] [BLOCKS]. Build: mpicc -O2 -Wall strided.c -o strided -lm */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    int block;
    int blocks;
    char path[128];
};

/* Rank 0 reads the command line, and the others get it from there. */
static void read_settings(struct settings *settings, int argc, char **argv, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        settings->block = argc > 1 ? atoi(argv[1]) : 4096;
        settings->blocks = argc > 2 ? atoi(argv[2]) : 64;
        strcpy(settings->path, "strided.dat");
    }
    MPI_Bcast(settings, sizeof *settings, MPI_BYTE, 0, comm);
}

static void compute(double *values, int count, int rank, int block)
{
    for (int i = 0; i < count; i++) {
        double value = rank + 0.5 * i;
        for (int k = 0; k < 20; k++)
            value = cos(value) + block;
        values[i] = value;
    }
}

int main(int argc, char **argv)
{
    MPI_Comm world;
    MPI_File file;
    MPI_Info info;
    MPI_Datatype view;
    struct settings settings;
    double *values, checksum = 0.0, total = 0.0;
    int rank, ranks, error;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    read_settings(&settings, argc, argv, world);

    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    error = MPI_File_open(world, settings.path, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
    if (error != MPI_SUCCESS) {
        if (rank == 0)
            fprintf(stderr, "cannot open %s\n", settings.path);
        MPI_Abort(world, 1);
    }
    MPI_Info_free(&info);
    MPI_File_set_size(file, 0);
    MPI_Type_vector(settings.blocks, settings.block, settings.block * ranks, MPI_DOUBLE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)rank * settings.block * (MPI_Offset)sizeof(double), MPI_DOUBLE, view, "native",
                      MPI_INFO_NULL);

    values = malloc(settings.block * sizeof(double));
    if (values == NULL)
        MPI_Abort(world, 1);
    for (int block = 0; block < settings.blocks; block++) {
        compute(values, settings.block, rank, block);
        for (int i = 0; i < settings.block; i++)
            checksum += values[i];
        MPI_File_write_all(file, values, settings.block, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Type_free(&view);

    MPI_Reduce(&checksum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, world);
    if (rank == 0)
        printf("checksum %g\n", total);
    free(values);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
