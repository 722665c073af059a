/* See luthier_online_mpi.h. A message to a rank is one value that tells the phase, whether a configuration follows and
 * whether the service chose it, and the configuration. */
#include "luthier_online_mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranks {
    MPI_Comm communicator;
    int rank, size, same, count;
    int checked, agreed;   /* whether all ranks declared the same was compared; the result */
    luthier_value *fetched; /* rank 0: a configuration for each client */
    luthier_value *letters; /* rank 0: a message for each rank */
    luthier_value *letter;  /* the message of this rank */
    double *values;         /* rank 0 */
    double started;
} ranks;

static int all(MPI_Comm communicator, int good)
{
    int everywhere = 0;
    MPI_Allreduce(&good, &everywhere, 1, MPI_INT, MPI_MIN, communicator);
    return everywhere;
}

luthier_online *luthier_mpi_open(
    MPI_Comm communicator, const char *address, const char *session, enum luthier_mpi_mode mode)
{
    luthier_online *tuning = luthier_open(address, session);
    ranks *us = calloc(1, sizeof *us);
    if (!all(communicator, tuning != NULL && us != NULL)) {
        luthier_close(tuning);
        free(us);
        return NULL;
    }
    MPI_Comm_dup(communicator, &us->communicator);
    MPI_Comm_rank(us->communicator, &us->rank);
    MPI_Comm_size(us->communicator, &us->size);
    us->same = mode == LUTHIER_SAME;
    luthier_clients(tuning, us->same ? 1 : us->size);
    luthier_quiet(tuning, us->rank != 0);
    luthier_attach(tuning, us);
    return tuning;
}

luthier_online *luthier_mpi_open_f(MPI_Fint communicator, const char *address, const char *session, int mode)
{
    return luthier_mpi_open(
        MPI_Comm_f2c(communicator), address, session, mode == LUTHIER_EACH ? LUTHIER_EACH : LUTHIER_SAME);
}

/* Compares the declarations once, and allocates. Ranks that differ could not understand each other's messages. */
static int agree(luthier_online *tuning, ranks *us)
{
    if (us->checked)
        return us->agreed;
    us->count = luthier_count(tuning);
    const size_t count = (size_t)us->count, clients = us->same ? 1 : (size_t)us->size;
    uint64_t mine = luthier_fingerprint(tuning), lowest = 0, highest = 0;
    us->checked = 1;
    MPI_Allreduce(&mine, &lowest, 1, MPI_UINT64_T, MPI_MIN, us->communicator);
    MPI_Allreduce(&mine, &highest, 1, MPI_UINT64_T, MPI_MAX, us->communicator);
    us->letter = calloc(count + 1, sizeof *us->letter);
    if (us->rank == 0) {
        us->fetched = calloc(clients * count + 1, sizeof *us->fetched);
        us->letters = calloc(clients * (count + 1), sizeof *us->letters);
        us->values = calloc(clients, sizeof *us->values);
    }
    int good = us->letter != NULL;
    if (us->rank == 0)
        good = good && us->fetched != NULL && us->letters != NULL && us->values != NULL;
    if (lowest != highest)
        luthier_disable(tuning, "the ranks declared different parameters");
    us->agreed = all(us->communicator, good) && lowest == highest && mine != 0;
    return us->agreed;
}

/* Passes what rank 0 has on to all: one configuration for everybody, or one for each. */
static int pass_on(luthier_online *tuning, ranks *us, int chosen, int follows, int each)
{
    const int count = us->count, size = (count + 1) * (int)sizeof *us->letter;
    for (int i = 0; us->rank == 0 && i < (each ? us->size : 1); i++) {
        luthier_value *letter = us->letters + (size_t)i * (size_t)(count + 1);
        letter[0].whole = 4 * luthier_phase_number(tuning) + 2 * follows + chosen;
        memcpy(letter + 1, us->fetched + (size_t)i * (size_t)count, (size_t)count * sizeof *letter);
    }
    if (each) {
        MPI_Scatter(us->letters, size, MPI_BYTE, us->letter, size, MPI_BYTE, 0, us->communicator);
    } else {
        if (us->rank == 0)
            memcpy(us->letter, us->letters, (size_t)size);
        MPI_Bcast(us->letter, size, MPI_BYTE, 0, us->communicator);
    }
    const int head = (int)us->letter[0].whole;
    luthier_put_phase(tuning, head / 4);
    if (head / 2 % 2)
        luthier_put(tuning, us->letter + 1);
    return head % 2;
}

int luthier_mpi_fetch(luthier_online *tuning)
{
    ranks *us = (ranks *)luthier_attached(tuning);
    if (us == NULL || !agree(tuning, us))
        return 0;
    const int chosen = us->rank == 0 && luthier_fetch_values(tuning, us->fetched);
    const int follows = chosen || (us->rank == 0 && luthier_fallback_values(tuning, us->fetched));
    return pass_on(tuning, us, chosen, follows, !us->same);
}

int luthier_mpi_best(luthier_online *tuning)
{
    ranks *us = (ranks *)luthier_attached(tuning);
    if (us == NULL || !agree(tuning, us))
        return 0;
    const int known = us->rank == 0 && luthier_best_values(tuning, us->fetched);
    return pass_on(tuning, us, known, known, 0);
}

int luthier_mpi_report(luthier_online *tuning, double value)
{
    ranks *us = (ranks *)luthier_attached(tuning);
    if (us == NULL || !us->agreed)
        return 0;
    if (us->same) {
        /* The worst rank counts; a failed one is worse than any. */
        const int maximizes = luthier_maximizes(tuning);
        double mine = isfinite(value) ? value : maximizes ? -HUGE_VAL : HUGE_VAL, worst = mine;
        MPI_Reduce(&mine, &worst, 1, MPI_DOUBLE, maximizes ? MPI_MIN : MPI_MAX, 0, us->communicator);
        return us->rank == 0 ? luthier_report_values(tuning, &worst) : 1;
    }
    MPI_Gather(&value, 1, MPI_DOUBLE, us->values, 1, MPI_DOUBLE, 0, us->communicator);
    return us->rank == 0 ? luthier_report_values(tuning, us->values) : 1;
}

int luthier_mpi_begin(luthier_online *tuning)
{
    ranks *us = (ranks *)luthier_attached(tuning);
    int fetched = luthier_mpi_fetch(tuning);
    if (us != NULL)
        us->started = MPI_Wtime();
    return fetched;
}

int luthier_mpi_end(luthier_online *tuning)
{
    const double ended = MPI_Wtime();
    ranks *us = (ranks *)luthier_attached(tuning);
    return us == NULL ? 0 : luthier_mpi_report(tuning, ended - us->started);
}

void luthier_mpi_close(luthier_online *tuning)
{
    ranks *us = (ranks *)luthier_attached(tuning);
    if (us != NULL) {
        MPI_Comm_free(&us->communicator);
        free(us->fetched);
        free(us->letters);
        free(us->letter);
        free(us->values);
        free(us);
    }
    luthier_close(tuning);
}
