/* On-line tuning of an MPI program: rank 0 talks to the service, the other ranks get their configurations from it.
 *
 *     luthier_online *tuning = luthier_mpi_open(MPI_COMM_WORLD, NULL, "stencil", LUTHIER_SAME);
 *     luthier_integer(tuning, "block", &block, 8, 512, 8);        the same declarations on all ranks
 *     for (...) {
 *         luthier_mpi_begin(tuning);
 *         work(block);
 *         luthier_mpi_end(tuning);
 *     }
 *     luthier_mpi_close(tuning);
 *
 * These calls are collective: all ranks of the communicator make them, in the same order. Ranks wait for rank 0, and
 * every wait of rank 0 has a time limit. Declarations, luthier_phase and luthier_error come from luthier_online.h;
 * luthier_phase is the same on all ranks after each fetch. */
#ifndef LUTHIER_ONLINE_MPI_H
#define LUTHIER_ONLINE_MPI_H

#include <mpi.h>

#include "luthier_online.h"

#ifdef __cplusplus
extern "C" {
#endif

enum luthier_mpi_mode {
    /* One configuration at a time, the same on all ranks; its value is that of the slowest rank. */
    LUTHIER_SAME,
    /* Every rank has a configuration and a value of its own: many are tried at once. The program must allow it. */
    LUTHIER_EACH
};

/* A handle on every rank, or NULL on every rank. */
luthier_online *luthier_mpi_open(
    MPI_Comm communicator, const char *address, const char *session, enum luthier_mpi_mode mode);
/* The same with a communicator of Fortran. */
luthier_online *luthier_mpi_open_f(MPI_Fint communicator, const char *address, const char *session, int mode);

/* One iteration: sets the variables and starts the clock; stops it and reports. */
int luthier_mpi_begin(luthier_online *tuning);
int luthier_mpi_end(luthier_online *tuning);

/* The same with values of your own; one that is not finite counts as failed, and with LUTHIER_SAME it fails all. */
int luthier_mpi_fetch(luthier_online *tuning);
int luthier_mpi_report(luthier_online *tuning, double value);

/* Sets the variables of all ranks to the best configuration known. */
int luthier_mpi_best(luthier_online *tuning);

void luthier_mpi_close(luthier_online *tuning);

#ifdef __cplusplus
}
#endif

#endif
