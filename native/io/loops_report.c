/* What the report of a process says about loops (loops.c). */
#include "json.h"

/* The factors of the loops of a reduced kernel that were run, by their numbers. */
void put_factors(void)
{
    bool first = true;
    for (int number = 0; factor_of_loop(number) >= 0; number++) {
        if (factor_of_loop(number) <= 0)
            continue;
        put(first ? ", \"scaled\": {\"" : ", \"");
        put_number((uint64_t)number);
        put("\": ");
        put_seconds((uint64_t)(factor_of_loop(number) * 1e9 + 0.5));
        first = false;
    }
    put(first ? "" : "}");
}

static void put_loop(int number, const struct loop_record *loop)
{
    put("{\"number\": ");
    put_number((uint64_t)number);
    put_field("entries", loop->entries);
    put_field("iterations", loop->iterations);
    put_field("outer", (uint64_t)loop->outer);
    put(loop->is_same && !loop->overflown ? ", \"regular\": true, \"runs\": [" : ", \"runs\": [");
    bool first = true;
    for (int i = 0; loop_run_at(i) != NULL; i++) {
        const struct loop_run *run = loop_run_at(i);
        if (run->loop != number)
            continue;
        put(first ? "[" : ", [");
        const uint64_t numbers[] = {run->first, run->stride, run->count};
        for (int k = 0; k < 3; k++) {
            put(k > 0 ? ", " : "");
            put_number(numbers[k]);
        }
        for (int k = 0; k < LAYERS * 3; k++) {
            put(", ");
            put_number(run->done.layer[k / 3][k % 3]);
        }
        int highest = LAYERS - 1;
        while (highest > 0 && !run->done.marks[highest])
            highest--;
        put(", ");
        put_number((uint64_t)highest);
        put("]");
        first = false;
    }
    put("]}");
}

void put_loops(void)
{
    bool first = true;
    for (int number = 0; loop_at(number) != NULL; number++) {
        if (loop_at(number)->entries == 0)
            continue;
        put(first ? ", \"loops\": [" : ", ");
        put_loop(number, loop_at(number));
        first = false;
    }
    put(first ? "" : "]");
}
