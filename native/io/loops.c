/* Loops of a reduced I/O kernel, which do only a part of their iterations: what happens in them is counted several times, so
 * that the counters are those of the whole program. The kernel tells about its loops by calls of access() with a mode that no
 * other program uses: unlike calls of a function of this library, they do no harm without it, however the kernel is linked.
 *
 * With LUTHIER_IO_LOOPS=trace the iterations with I/O are recorded instead, and go into the report. */
#define _GNU_SOURCE
#include "io.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum event { ENTERED, NEXT_ITERATION, LEFT };
enum { WORDS = sizeof(struct tally) / sizeof(uint64_t), PLACES = LISTED_FILES + LAYERS, LOOPS = 256, RUNS = 30000, DEEPEST = 32 };

static bool tracing;

static void *memory_for(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* ---- scaling ---- */

static struct tally *before;        /* the counters when the loop began, first those of the files */
static double (*additional)[WORDS]; /* what is added to the counters in the report */
static double loop_factor;          /* of the loop that is running; 0 outside of loops */
static int loop_number;
static int loop_depth;
static double factors[LOOPS]; /* of the loops that ran; 0 for others */

static struct file *place_at(int place)
{
    return place < LISTED_FILES ? file_at(place) : rest_of((enum layer)(place - LISTED_FILES));
}

/* For each record of counters that is in use: files in the order they came, then the rests of the layers. */
#define EACH_PLACE(place) \
    for (int place = 0; place < PLACES; place = place + 1 == files_listed() ? LISTED_FILES : place + 1) \
        if (place >= LISTED_FILES || place < files_listed())

static bool is_sum(size_t word)
{
    size_t offset = word * sizeof(uint64_t);
    return offset != offsetof(struct tally, next_read) && offset != offsetof(struct tally, next_write)
           && offset != offsetof(struct tally, smallest_write) && offset != offsetof(struct tally, largest_write);
}

static bool take_snapshot(void)
{
    if (before == NULL)
        before = memory_for(PLACES * sizeof *before);
    if (additional == NULL)
        additional = memory_for(PLACES * sizeof *additional);
    if (before == NULL || additional == NULL)
        return false;
    memset(before, 0, (size_t)files_listed() * sizeof *before);
    EACH_PLACE(place)
    {
        struct file *file = place_at(place);
        if (file != NULL)
            before[place] = file->tally;
    }
    return true;
}

/* Add what was counted since the snapshot `weight` times. */
static void add_since_snapshot(double weight)
{
    EACH_PLACE(place)
    {
        struct file *file = place_at(place);
        if (file == NULL)
            continue;
        const uint64_t *now = (const uint64_t *)&file->tally, *then = (const uint64_t *)&before[place];
        for (size_t word = 0; word < WORDS; word++)
            if (is_sum(word) && now[word] > then[word])
                additional[place][word] += weight * (double)(now[word] - then[word]);
    }
}

/* How much was written to the file in the loop, which later closing will pass on. */
static void remember_written(double factor)
{
    EACH_PLACE(place)
    {
        struct file *file = place_at(place);
        if (file == NULL || place >= LISTED_FILES)
            continue;
        uint64_t written = file->tally.write_bytes - before[place].write_bytes,
                 reads = file->tally.reads - before[place].reads;
        if (file->loop_factor <= 0)
            file->loop_reads = before[place].reads;
        if ((written > 0 && file->loop_writer != 0 && file->loop_writer != loop_number)
            || (reads > 0 && file->loop_writer != 0 && file->loop_writer != loop_number))
            file->loop_writer = -1;
        else if (written > 0)
            file->loop_writer = loop_number;
        file->loop_bytes += written;
        file->loop_reads += reads;
        file->loop_factor = factor;
    }
}

void stream_before_loop(struct file *file, size_t output, size_t room)
{
    (void)room;
    file->buffered = output;
}

void stream_in_loop(struct file *file, size_t output, size_t room)
{
    int place = 0;
    while (place < files_listed() && file_at(place) != file)
        place++;
    if (place == files_listed() || room == 0)
        return;
    size_t waiting = output;
    if (file->tally.writes == before[place].writes) /* the buffer held something before the loop */
        waiting = output > file->buffered ? output - file->buffered : 0;
    additional[place][offsetof(struct tally, write_bytes) / sizeof(uint64_t)] += (loop_factor - 1) * (double)waiting;
    additional[place][offsetof(struct tally, writes) / sizeof(uint64_t)] += (loop_factor - 1) * (double)waiting / (double)room;
}

static void enter(int number, double factor)
{
    if (loop_depth++ > 0 || !(factor > 1) || !take_snapshot())
        return;
    each_stream(stream_before_loop);
    loop_factor = factor;
    loop_number = number;
    factors[number] = factor;
}

static void leave(void)
{
    if (--loop_depth > 0 || loop_factor <= 0)
        return;
    add_since_snapshot(loop_factor - 1);
    remember_written(loop_factor);
    each_stream(stream_in_loop);
    loop_factor = 0;
}

/* HDF5 may pass on later what a loop has written, in a call that flushes or closes. That share of the call counts as if it were
 * in the loop. */
bool deferred_begins(const struct file *file)
{
    return loop_factor <= 0 && file->loop_factor > 1 && take_snapshot();
}

void deferred_ends(struct file *file)
{
    struct file *below = known_file(POSIX, file->path);
    int place = 0;
    while (place < files_listed() && file_at(place) != below)
        place++;
    if (below == NULL || place == files_listed() || file->loop_bytes <= below->loop_bytes)
        return;
    double waiting = (double)(file->loop_bytes - below->loop_bytes);
    uint64_t written = below->tally.write_bytes - before[place].write_bytes;
    if (written == 0)
        return;
    double share = waiting / (double)written;
    add_since_snapshot((file->loop_factor - 1) * (share < 1 ? share : 1));
    below->loop_bytes += written;
}

void late_time(struct file *file, uint64_t elapsed_ns)
{
    int place = 0;
    while (place < files_listed() && file_at(place) != file)
        place++;
    if (loop_factor > 0 || additional == NULL || place == files_listed() || file->tally.write_bytes == 0)
        return;
    double share = (double)file->loop_bytes / (double)file->tally.write_bytes;
    additional[place][offsetof(struct tally, other_ns) / sizeof(uint64_t)] +=
        (file->loop_factor - 1) * (share < 1 ? share : 1) * (double)elapsed_ns;
}

/* The counters of a file, or with -1 and less of the rest of a layer, as they would be if all loops were whole. */
struct tally scaled(int number, const struct tally *counted)
{
    struct tally result = *counted;
    uint64_t *words = (uint64_t *)&result;
    int place = number >= 0 ? number : LISTED_FILES - 1 - number;
    for (size_t word = 0; additional != NULL && word < WORDS; word++)
        words[word] += (uint64_t)(additional[place][word] + 0.5);
    return result;
}

double factor_of_loop(int number)
{
    return number < LOOPS ? factors[number] : -1;
}

/* ---- recording ---- */

static struct loop_record loops[LOOPS];
static struct loop_run *runs;
static int run_count;
static struct {
    int number;
    uint64_t index, mark; /* the iteration that is running; `mark` changes with every operation */
    struct loop_counts counts;
    uint64_t pattern; /* digest of the iterations with I/O */
} stack[DEEPEST];

static struct loop_counts counts_now(void)
{
    struct loop_counts sums = {0};
    EACH_PLACE(place)
    {
        struct file *file = place_at(place);
        if (file == NULL)
            continue;
        const struct tally *tally = &file->tally;
        uint64_t *sum = sums.layer[file->layer];
        if (place >= LISTED_FILES)
            sum = sums.layer[place - LISTED_FILES];
        else if (file->number < 0)
            continue;
        sums.marks[file->layer] += file->digest.sum;
        sum[0] += tally->opens + tally->reads + tally->writes + tally->seeks + tally->syncs;
        sum[1] += tally->read_bytes;
        sum[2] += tally->write_bytes;
    }
    return sums;
}

/* Iterations at equal distances that do the same are one run. */
static void add_to_runs(struct loop_record *loop, uint64_t index, const struct loop_counts *done)
{
    struct loop_run *last = loop->last < 0 ? NULL : &runs[loop->last];
    if (last != NULL && memcmp(&last->done, done, sizeof *done) == 0
        && (last->count == 1 || index == last->first + last->count * last->stride)) {
        if (last->count == 1)
            last->stride = index - last->first;
        last->count++;
        return;
    }
    if (run_count == RUNS) {
        loop->overflown = true;
        return;
    }
    runs[run_count] = (struct loop_run){.loop = (int)(loop - loops), .first = index, .stride = 1, .count = 1, .done = *done};
    loop->last = run_count++;
}

static void end_iteration(int level)
{
    struct loop_record *loop = &loops[stack[level].number];
    uint64_t mark = process_digest()->sum;
    if (mark == stack[level].mark)
        return;
    struct loop_counts now = counts_now(), done = now;
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < 3; i++)
            done.layer[layer][i] -= stack[level].counts.layer[layer][i];
        done.marks[layer] = done.marks[layer] != stack[level].counts.marks[layer];
    }
    stack[level].pattern = (stack[level].pattern ^ stack[level].index) * 0x9e3779b97f4a7c15u;
    if (loop->entries == 1)
        add_to_runs(loop, stack[level].index, &done);
    stack[level].mark = mark;
    stack[level].counts = now;
}

static void record_entry(int number)
{
    struct loop_record *loop = &loops[number];
    int outer = loop_depth > 0 ? stack[loop_depth - 1].number : 0;
    if (loop->entries++ == 0) {
        loop->outer = outer;
        loop->last = -1;
        loop->is_same = true;
    } else if (loop->outer != outer)
        loop->is_same = false;
    for (int level = 0; level < loop_depth; level++)
        if (stack[level].number == number)
            loop->is_same = false; /* recursion */
    stack[loop_depth].number = number;
    stack[loop_depth].index = UINT64_MAX;
    stack[loop_depth].mark = process_digest()->sum;
    stack[loop_depth].counts = counts_now();
    stack[loop_depth++].pattern = 0;
}

static void record_end(int number)
{
    struct loop_record *loop = &loops[number];
    int level = --loop_depth;
    end_iteration(level);
    uint64_t pattern = stack[level].pattern ^ (stack[level].index + 1);
    if (loop->entries == 1) {
        loop->iterations = stack[level].index + 1;
        loop->pattern = pattern;
    } else if (loop->pattern != pattern)
        loop->is_same = false;
}

static void record(int number, int event)
{
    if (runs == NULL && (runs = memory_for(RUNS * sizeof *runs)) == NULL)
        return;
    if (event == ENTERED && loop_depth < DEEPEST)
        record_entry(number);
    else if (event == NEXT_ITERATION && loop_depth > 0 && stack[loop_depth - 1].number == number) {
        if (stack[loop_depth - 1].index != UINT64_MAX)
            end_iteration(loop_depth - 1);
        stack[loop_depth - 1].index++;
    } else if (event == LEFT && loop_depth > 0 && stack[loop_depth - 1].number == number)
        record_end(number);
}

const struct loop_record *loop_at(int number)
{
    return number < LOOPS ? &loops[number] : NULL;
}

const struct loop_run *loop_run_at(int number)
{
    return number < run_count ? &runs[number] : NULL;
}

/* In a forked child, which counts its own operations. */
void clear_loops(void)
{
    if (additional != NULL)
        memset(additional, 0, PLACES * sizeof *additional);
    loop_depth = run_count = 0;
    loop_factor = 0;
    memset(loops, 0, sizeof loops);
    memset(factors, 0, sizeof factors);
}

/* ---- calls from the kernel ---- */

void start_loops(void)
{
    const char *text = getenv("LUTHIER_IO_LOOPS");
    tracing = text != NULL && strcmp(text, "trace") == 0;
}

/* NUMBER:EVENT or NUMBER:0:FACTOR, the factor in units of 1e-9. */
void loop_event(const char *text)
{
    char *end;
    if (!counting || strncmp(text, LOOP_CALL, strlen(LOOP_CALL)) != 0)
        return;
    long number = strtol(text + strlen(LOOP_CALL), &end, 10), event = *end == ':' ? strtol(end + 1, &end, 10) : -1;
    double factor = event == ENTERED && *end == ':' ? (double)strtoll(end + 1, &end, 10) * 1e-9 : 1;
    if (number < 1 || number >= LOOPS || *end != '\0')
        return;
    if (tracing)
        record((int)number, (int)event);
    else if (event == ENTERED)
        enter((int)number, factor);
    else if (event == LEFT && loop_depth > 0)
        leave();
}
