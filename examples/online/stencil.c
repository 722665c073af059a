/* A heat equation on a square grid, split by rows over MPI ranks. Tuned while it runs: the size of the blocks that
 * the loop over the grid is cut into, and the communication depth. With depth d the ranks exchange d rows at a time
 * and then compute d sweeps without talking: fewer messages, but rows near the border are computed twice. The result
 * does not depend on any of them, bit by bit.
 *
 *     mpicc -O2 stencil.c $(pkg-config --cflags --libs luthier-online-mpi) -o stencil
 *     luthier online &
 *     mpirun -n 4 ./stencil 100 256
 *
 * Arguments: steps (each of SWEEPS sweeps, and one iteration of the tuning), width of the grid, and `plain` to leave
 * tuning out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier_online_mpi.h"

enum { SWEEPS = 24, DEEPEST = 8 };

typedef struct grid {
    int width, rows, first; /* of this rank: how many rows, and which is the first */
    int above, below;       /* the neighbours, or MPI_PROC_NULL */
    double *now, *next;     /* DEEPEST more rows on both sides */
} grid;

static double *row_of(const grid *one, double *values, int row)
{
    return values + (size_t)(row + DEEPEST) * (size_t)one->width;
}

static int lower(int left, int right)
{
    return left < right ? left : right;
}

static grid make_grid(int width, int rank, int ranks)
{
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    grid one = {width, 0, 0, above, below, NULL, NULL};
    one.first = (int)((int64_t)width * rank / ranks);
    one.rows = (int)((int64_t)width * (rank + 1) / ranks) - one.first;
    size_t size = (size_t)(one.rows + 2 * DEEPEST) * (size_t)width;
    one.now = calloc(size, sizeof *one.now);
    one.next = calloc(size, sizeof *one.next);
    if (one.now == NULL || one.next == NULL || one.rows < DEEPEST) {
        fprintf(stderr, "stencil: a rank needs at least %d rows; use fewer ranks or a wider grid\n", DEEPEST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int row = 0; row < one.rows; row++)
        for (int column = 0; column < width; column++)
            row_of(&one, one.now, row)[column] = (column * 7 + (one.first + row) * 13) % 101;
    memcpy(one.next, one.now, size * sizeof *one.now);
    return one;
}

/* Sends the outermost rows to both neighbours, and receives theirs. */
static void exchange(grid *one, int depth)
{
    int count = depth * one->width;
    double *first = row_of(one, one->now, 0), *last = row_of(one, one->now, one->rows - depth);
    double *before = row_of(one, one->now, -depth), *after = row_of(one, one->now, one->rows);
    MPI_Sendrecv(first, count, MPI_DOUBLE, one->above, 0, after, count, MPI_DOUBLE, one->below, 0, MPI_COMM_WORLD,
        MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, count, MPI_DOUBLE, one->below, 1, before, count, MPI_DOUBLE, one->above, 1, MPI_COMM_WORLD,
        MPI_STATUS_IGNORE);
}

/* One sweep over this rank's rows and `more` of those around them; the border of the whole grid stays as it is. */
static void sweep(grid *one, int more, int block_rows, int block_columns)
{
    int from = one->above == MPI_PROC_NULL ? 1 : -more;
    int to = one->below == MPI_PROC_NULL ? one->rows - 1 : one->rows + more;
    for (int block = from; block < to; block += block_rows)
        for (int left = 1; left < one->width - 1; left += block_columns)
            for (int row = block; row < lower(block + block_rows, to); row++) {
                const double *up = row_of(one, one->now, row - 1), *here = row_of(one, one->now, row);
                const double *down = row_of(one, one->now, row + 1);
                double *result = row_of(one, one->next, row);
                for (int column = left; column < lower(left + block_columns, one->width - 1); column++)
                    result[column] = 0.25 * (up[column] + down[column] + here[column - 1] + here[column + 1]);
            }
    double *swap = one->now;
    one->now = one->next;
    one->next = swap;
}

static void advance(grid *one, int depth, int block_rows, int block_columns)
{
    for (int left = SWEEPS; left > 0; left -= depth) {
        depth = lower(depth, left);
        exchange(one, depth);
        /* The columns at the border of received rows are in `now` only. */
        for (int row = -depth; row < one->rows + depth; row++) {
            double *from = row_of(one, one->now, row), *to = row_of(one, one->next, row);
            to[0] = from[0];
            to[one->width - 1] = from[one->width - 1];
        }
        for (int more = depth - 1; more >= 0; more--)
            sweep(one, more, block_rows, block_columns);
    }
}

/* A number that changes with any bit of the result. */
static uint64_t checksum(const grid *one)
{
    uint64_t mine = 0, all = 0;
    for (int row = 0; row < one->rows; row++)
        for (int column = 0; column < one->width; column++) {
            uint64_t bits;
            memcpy(&bits, &row_of(one, one->now, row)[column], sizeof bits);
            mine += bits * (2 * ((uint64_t)(one->first + row) * (uint64_t)one->width + (uint64_t)column) + 1);
        }
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int rank, ranks, depth = 1, block_rows = 4, block_columns = 16;
    int steps = argc > 1 ? atoi(argv[1]) : 100, width = argc > 2 ? atoi(argv[2]) : 256;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    grid one = make_grid(width, rank, ranks);
    luthier_online *tuning = NULL; /* all calls accept it */
    if (argc <= 3 || strcmp(argv[3], "plain") != 0)
        tuning = luthier_mpi_open(MPI_COMM_WORLD, NULL, "stencil", LUTHIER_SAME);
    luthier_integer(tuning, "depth", &depth, 1, DEEPEST, 1);
    luthier_integer_log(tuning, "block_rows", &block_rows, 1, 256, 2);
    luthier_integer_log(tuning, "block_columns", &block_columns, 16, 1024, 2);
    double begun = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        luthier_mpi_begin(tuning);
        advance(&one, depth, block_rows, block_columns);
        luthier_mpi_end(tuning);
    }
    double took = MPI_Wtime() - begun;
    luthier_mpi_best(tuning);
    uint64_t sum = checksum(&one);
    if (rank == 0)
        printf("{\"checksum\": \"%016llx\", \"seconds\": %.3f, \"depth\": %d, \"block_rows\": %d, "
               "\"block_columns\": %d, \"phase\": \"%s\"}\n",
            (unsigned long long)sum, took, depth, block_rows, block_columns, luthier_phase(tuning));
    luthier_mpi_close(tuning);
    free(one.now);
    free(one.next);
    MPI_Finalize();
    return 0;
}
