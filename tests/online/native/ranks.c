/* Tunes a known function with MPI, so that what each rank got and reported can be checked.
 * Usage: ranks same|each|differ STEPS [PAUSE]; prints what rank 0 saw as one line of JSON. In the iteration PAUSE it
 * prints "pause" and waits for a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier_online_mpi.h"

/* Best at block 256, mode 1; the slowest rank takes 3 more. */
static double value_of(int block, int mode, int rank)
{
    return 1 + (block - 256.0) * (block - 256.0) / 65536 + (mode != 1) + rank;
}

int main(int argc, char **argv)
{
    int rank, size, block = 64, mode = 0, fetched = 0, equal = 0, lowest, highest, apart = 0, outside = 0;
    double worst = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *how = argc > 1 ? argv[1] : "same";
    int steps = argc > 2 ? atoi(argv[2]) : 10, each = strcmp(how, "each") == 0;
    int pause = argc > 3 ? atoi(argv[3]) : steps;
    luthier_online *tuning = luthier_mpi_open(MPI_COMM_WORLD, NULL, how, each ? LUTHIER_EACH : LUTHIER_SAME);
    luthier_setting(tuning, "watch", "false");
    luthier_integer(tuning, "block", &block, 8, strcmp(how, "differ") == 0 && rank == 2 ? 256 : 512, 8);
    luthier_choice(tuning, "mode", &mode, "one,two,three");
    for (int step = 0; step < steps; step++) {
        fetched += luthier_mpi_fetch(tuning);
        MPI_Allreduce(&block, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&block, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        equal += lowest == highest;
        apart += lowest != highest;
        outside += lowest < 8 || highest > 512;
        double value = value_of(block, mode, each ? 0 : rank);
        if (step == pause && rank == 0) {
            printf("pause\n");
            fflush(stdout);
            getchar();
        }
        if (step == pause)
            MPI_Barrier(MPI_COMM_WORLD);
        if (step > pause && value > worst)
            worst = value;
        luthier_mpi_report(tuning, value);
    }
    int best = luthier_mpi_best(tuning);
    MPI_Allreduce(&block, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&block, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    int phase = luthier_phase_number(tuning), least, most;
    MPI_Allreduce(&phase, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&phase, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    double worst_of_all;
    MPI_Allreduce(&worst, &worst_of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"worst\": %g, \"fetched\": %d, \"equal\": %d, \"apart\": %d, \"outside\": %d, \"best\": %d, \"lowest\": %d, "
               "\"highest\": %d, \"mode\": %d, \"phase\": \"%s\", \"phases\": %d, \"error\": \"%s\"}\n",
            worst_of_all, fetched, equal, apart, outside, best, lowest, highest, mode, luthier_phase(tuning), most - least + 1, luthier_error(tuning));
    luthier_mpi_close(tuning);
    MPI_Finalize();
    return 0;
}
