/* Tunes a program while it runs: the client of `luthier online` and `luthier serve` for C, C++ and
 * (luthier_online.f90) Fortran.
 *
 *     luthier_online *tuning = luthier_open(NULL, "stencil");
 *     luthier_integer(tuning, "block", &block, 8, 512, 8);
 *     for (int step = 0; step < steps; step++) {
 *         luthier_begin(tuning);            sets block, starts the clock
 *         work(block);
 *         luthier_end(tuning);              stops the clock, reports the time
 *     }
 *     luthier_close(tuning);
 *
 * Every call returns after a time limit, and without a service the program runs on. As long as the service has not
 * answered, the variables keep their values. When it does not answer any more, each fetch sets them to the best
 * configuration that this handle has measured at least twice, or to the default, until the service is back.
 * Every call accepts NULL and then does nothing. There is no global state; a handle belongs to one thread at a time.
 * After fork() the child makes a connection of its own.
 *
 * Functions that return int return 1 for success and 0 otherwise; luthier_error() then tells why. */
#ifndef LUTHIER_ONLINE_H
#define LUTHIER_ONLINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct luthier_online luthier_online;

/* A new handle, or NULL without memory; connects at the first fetch. address: "unix:PATH" or "tcp:HOST:PORT" with a
 * numeric HOST or localhost; NULL: $LUTHIER_ONLINE, else the default socket of `luthier online`. Programs with the
 * same session name tune together. */
luthier_online *luthier_open(const char *address, const char *session);

/* Leaves the session and frees the handle. */
void luthier_close(luthier_online *tuning);

/* Parameters, declared before the first fetch. The present value of the variable is the default. The variable must
 * live as long as the handle. low, low + step, ... up to high; in the _log calls low, low * factor, ... up to high. A
 * real step of 0 means any value between low and high; an integer factor of 1 means every integer. */
int luthier_integer(luthier_online *tuning, const char *name, int *variable, int low, int high, int step);
int luthier_integer_log(luthier_online *tuning, const char *name, int *variable, int low, int high, double factor);
int luthier_integer64(
    luthier_online *tuning, const char *name, int64_t *variable, int64_t low, int64_t high, int64_t step);
int luthier_integer64_log(
    luthier_online *tuning, const char *name, int64_t *variable, int64_t low, int64_t high, double factor);
int luthier_real(luthier_online *tuning, const char *name, double *variable, double low, double high, double step);
int luthier_real_log(
    luthier_online *tuning, const char *name, double *variable, double low, double high, double factor);

/* One of several values, separated by commas; the variable holds the number of the value: 0, 1, ... luthier_ordered:
 * their order has a meaning, such as "small,medium,large". */
int luthier_choice(luthier_online *tuning, const char *name, int *variable, const char *values);
int luthier_ordered(luthier_online *tuning, const char *name, int *variable, const char *values);

/* A condition that every configuration must satisfy, such as "depth <= block / 2". */
int luthier_constraint(luthier_online *tuning, const char *text);

/* A setting of the session: strategy, samples, estimator, goal, baseline, watch, seed. A session that exists with
 * other settings refuses the program. */
int luthier_setting(luthier_online *tuning, const char *name, const char *value);

/* One iteration: sets the variables and starts the clock; stops it and reports the seconds. */
int luthier_begin(luthier_online *tuning);
int luthier_end(luthier_online *tuning);

/* The same with a value of your own: luthier_fetch sets the variables and returns 1 if the service chose them; a
 * report is sent without waiting for an answer. A value that is not finite counts as failed. A report without a fetch
 * before it is ignored. */
int luthier_fetch(luthier_online *tuning);
int luthier_report(luthier_online *tuning, double value);
int luthier_report_failed(luthier_online *tuning);

/* Sets the variables to the best configuration known: to the service or, while it does not answer, to this handle. */
int luthier_best(luthier_online *tuning);

/* "baseline", "searching", "converged", "stopped", or "offline" without a service. */
const char *luthier_phase(const luthier_online *tuning);

/* The last problem in one line, or "". */
const char *luthier_error(const luthier_online *tuning);

/* The longest time that a call waits. By default $LUTHIER_TIMEOUT_MS, or 200 ms for the first connection and 50 ms
 * from then on. */
void luthier_timeout_ms(luthier_online *tuning, int milliseconds);

/* By default the first problem is written to stderr in one line; quiet = 1 switches that off. */
void luthier_quiet(luthier_online *tuning, int quiet);

/* For code that speaks for several processes, as luthier_online_mpi.c does. A configuration is an array with one
 * value for each parameter, in the order of their declaration; a choice is its number. */
typedef union luthier_value {
    int64_t whole;
    double real;
} luthier_value;

/* How many clients this connection speaks for; set before the first fetch. */
int luthier_clients(luthier_online *tuning, int count);
/* How many parameters were declared; 0 where a declaration was wrong. */
int luthier_count(const luthier_online *tuning);
/* A number that is equal for equal declarations; no more are accepted from here on. 0 where one was wrong. */
uint64_t luthier_fingerprint(luthier_online *tuning);
/* Ends the tuning with this handle; message is what luthier_error() then tells. */
void luthier_disable(luthier_online *tuning, const char *message);
/* The phase as a number from 0, "offline", to 4; sets the phase that luthier_phase() tells. */
int luthier_phase_number(const luthier_online *tuning);
void luthier_put_phase(luthier_online *tuning, int number);
/* Whether the setting goal is maximize. */
int luthier_maximizes(const luthier_online *tuning);
/* A configuration for every client, one after the other; values changes only if the result is 1. */
int luthier_fetch_values(luthier_online *tuning, luthier_value *values);
/* While a fetch gets no answer: the best that this handle has measured, or the default, for every client; the next
 * report is about it and stays here. 0 if the service has never chosen anything. */
int luthier_fallback_values(luthier_online *tuning, luthier_value *values);
/* The best configuration, as above. */
int luthier_best_values(luthier_online *tuning, luthier_value *values);
/* Sets the variables to one configuration. */
void luthier_put(luthier_online *tuning, const luthier_value *values);
/* A value for every client. */
int luthier_report_values(luthier_online *tuning, const double *values);
/* A pointer that is kept with the handle. */
void luthier_attach(luthier_online *tuning, void *pointer);
void *luthier_attached(const luthier_online *tuning);

#ifdef __cplusplus
}
#endif

#endif
