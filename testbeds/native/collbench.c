/* collbench: how long an MPI collective takes, as a table like those of the OSU benchmarks.
 *
 *     mpirun -n 4 collbench bcast -m 1k:64k -r 100 -w 10
 *
 * Every call begins after a barrier, and its time is that of its slowest rank. The first ones (-w) warm up and do not
 * count; the table has the median of the others (-r), the shortest and the longest. A size is what the table of an OSU
 * benchmark means by it: the bytes that one rank sends, for alltoall those to each of the others. Without -m it is 1k; a
 * range goes up in powers of two.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quantity.h"

#define MAX_BYTES (UINT64_C(1) << 30)
#define MAX_REPEATS UINT64_C(1000000)

#define NAMES "allgather, allreduce, alltoall, bcast, gather, reduce or reduce_scatter"

struct buffers {
    void *from, *into;
};

static int rank, ranks;
static int *parts; /* of reduce_scatter: how many numbers every rank receives */

static void bcast(struct buffers data, int bytes)
{
    MPI_Bcast(data.from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void gather(struct buffers data, int bytes)
{
    MPI_Gather(data.from, bytes, MPI_CHAR, data.into, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void reduce(struct buffers data, int bytes)
{
    MPI_Reduce(data.from, data.into, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(struct buffers data, int bytes)
{
    MPI_Allreduce(data.from, data.into, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(struct buffers data, int bytes)
{
    MPI_Allgather(data.from, bytes, MPI_CHAR, data.into, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void alltoall(struct buffers data, int bytes)
{
    MPI_Alltoall(data.from, bytes, MPI_CHAR, data.into, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void reduce_scatter(struct buffers data, int bytes)
{
    (void)bytes; /* divided among the parts already */
    MPI_Reduce_scatter(data.from, data.into, parts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* The last two say whether a rank sends, and receives, a message for or from each of the others. */
struct collective {
    const char *name;
    void (*call)(struct buffers data, int bytes);
    int sends_to_each, receives_from_each;
};

static const struct collective COLLECTIVES[] = {
    {"allgather", allgather, 0, 1}, {"allreduce", allreduce, 0, 0}, {"alltoall", alltoall, 1, 1},
    {"bcast", bcast, 0, 0},         {"gather", gather, 0, 1},       {"reduce", reduce, 0, 0},
    {"reduce_scatter", reduce_scatter, 0, 0}, {NULL, NULL, 0, 0},
};

struct request {
    const struct collective *collective;
    uint64_t smallest, largest, repeats, warmup;
};

/* Ends the program on every rank; the first one says why. */
_Noreturn static void fail(const char *format, ...)
{
    if (rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        fputs("collbench: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(2);
}

static void parse_sizes(char *text, struct request *request)
{
    char *colon = strchr(text, ':');
    if (colon != NULL)
        *colon = '\0';
    if (!parse_quantity(text, sizeof(float), MAX_BYTES, &request->smallest))
        fail("-m: '%s' is no size; give 4 to 1G bytes, such as 64k, or a range such as 1k:1M", text);
    request->largest = request->smallest;
    if (colon != NULL && !parse_quantity(colon + 1, request->smallest, MAX_BYTES, &request->largest))
        fail("-m: '%s' is no size from %s on to 1G", colon + 1, text);
}

static struct request parse(int count, char **words)
{
    struct request request = {.smallest = 1024, .largest = 1024, .repeats = 100, .warmup = 10};
    int option;
    opterr = 0;
    while ((option = getopt(count, words, "m:r:w:")) != -1) {
        if (option == 'm')
            parse_sizes(optarg, &request);
        else if (option == 'r' && !parse_quantity(optarg, 1, MAX_REPEATS, &request.repeats))
            fail("-r: '%s' is no number of repeats; give 1 to 1000000", optarg);
        else if (option == 'w' && !parse_quantity(optarg, 0, MAX_REPEATS, &request.warmup))
            fail("-w: '%s' is no number of calls; give 0 to 1000000", optarg);
        else if (option == '?')
            fail("usage: collbench COLLECTIVE [-m SIZE[:SIZE]] [-r REPEATS] [-w WARM-UP]");
    }
    if (optind != count - 1)
        fail("name one collective: " NAMES);
    request.collective = COLLECTIVES;
    while (request.collective->name != NULL && strcmp(request.collective->name, words[optind]) != 0)
        request.collective++;
    if (request.collective->name == NULL)
        fail("there is no '%s'; name " NAMES, words[optind]);
    return request;
}

static int ascending(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

/* Fills times with the slowest rank's seconds of every call, on the first rank. */
static void run(const struct request *request, struct buffers data, uint64_t bytes, double *times)
{
    int numbers = (int)(bytes / sizeof(float));
    for (int part = 0; part < ranks; part++)
        parts[part] = numbers / ranks + (part < numbers % ranks);
    for (uint64_t done = 0; done < request->warmup + request->repeats; done++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        request->collective->call(data, (int)bytes);
        double seconds = MPI_Wtime() - start;
        if (done >= request->warmup)
            times[done - request->warmup] = seconds;
    }
    void *own = rank == 0 ? MPI_IN_PLACE : times;
    MPI_Reduce(own, times, (int)request->repeats, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

static void print_row(uint64_t bytes, double *times, uint64_t count)
{
    qsort(times, count, sizeof *times, ascending);
    double median = (times[(count - 1) / 2] + times[count / 2]) / 2;
    printf("%-12llu %15.2f %15.2f %15.2f\n", (unsigned long long)bytes, median * 1e6, times[0] * 1e6,
           times[count - 1] * 1e6);
    fflush(stdout);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct request request = parse(count, words);
    const struct collective *what = request.collective;
    struct buffers data = {calloc(what->sends_to_each ? (size_t)ranks : 1, request.largest),
                           calloc(what->receives_from_each ? (size_t)ranks : 1, request.largest)};
    double *times = calloc(request.repeats, sizeof *times);
    parts = calloc((size_t)ranks, sizeof *parts);
    if (data.from == NULL || data.into == NULL || times == NULL || parts == NULL) {
        fprintf(stderr, "collbench: not enough memory for messages of %llu bytes\n", (unsigned long long)request.largest);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
        printf("# %s, %d ranks, median of %llu repeats\n", what->name, ranks,
               (unsigned long long)request.repeats);
        printf("%-12s %15s %15s %15s\n", "# Size", "Latency(us)", "Min(us)", "Max(us)");
    }
    for (uint64_t bytes = request.smallest; bytes <= request.largest; bytes *= 2) {
        run(&request, data, bytes, times);
        if (rank == 0)
            print_row(bytes, times, request.repeats);
    }
    free(data.from);
    free(data.into);
    free(times);
    free(parts);
    MPI_Finalize();
    return 0;
}
