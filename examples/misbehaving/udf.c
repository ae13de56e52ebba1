/* Functions that misbehave for the rows 3, 13, 23, ... and return x + 1 for all others; as `udf.py` beside this file.
 *
 * Nothing protects a process from what C can do to it (exit, a wild pointer). But a token is safe to use at any time,
 * in any way.
 */
#include "arroyo_udf_async.h"

#include <pthread.h>
#include <time.h>

static bool is_bad(int64_t x) { return x % 10 == 3; }

/* ---- Rows that fail ---------------------------------------------------------------------------------------------- */

static const char* fails(int64_t x, int64_t* out) {
  *out = x + 1;
  return is_bad(x) ? arroyo_udf_failure("%lld is not to my taste", (long long)x) : NULL;
}
ARROYO_UDF_FUNCTION(fails, int64, (int64, x));

static void completes_with_another_type(const arroyo_udf_call* call, int64_t x) {
  if (is_bad(x))
    arroyo_udf_complete_float64(call->token, 0.5);
  else
    arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(completes_with_another_type, (), int64, (int64, x));

static void gives_up(const arroyo_udf_call* call, int64_t x) {
  if (is_bad(x))
    arroyo_udf_complete_cancelled(call->token);
  else
    arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(gives_up, (), int64, (int64, x));

/* ---- Calls that are completed too late, or never ----------------------------------------------------------------- */

static void never_completes(const arroyo_udf_call* call, int64_t x) {
  if (!is_bad(x)) arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(never_completes, (.options.timeout_ns = 50 * ARROYO_UDF_MILLISECOND), int64, (int64, x));

static void complete_with_a_value(void* context, arroyo_udf_token token) {
  (void)context;
  arroyo_udf_complete_int64(token, -1);
}
static void completes_when_cancelled(const arroyo_udf_call* call, int64_t x) { never_completes(call, x); }
ARROYO_UDF_ASYNC_FUNCTION(completes_when_cancelled,
                          (.cancel = complete_with_a_value, .options.timeout_ns = 50 * ARROYO_UDF_MILLISECOND), int64,
                          (int64, x));

/* One thread makes all calls, so a call that sleeps holds up the others: hence one call at a time. */
static void blocks_the_thread(const arroyo_udf_call* call, int64_t x) {
  const struct timespec longer_than_the_timeout = {.tv_nsec = 200000000};
  if (is_bad(x)) nanosleep(&longer_than_the_timeout, NULL);
  arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(blocks_the_thread,
                          (.options.timeout_ns = 50 * ARROYO_UDF_MILLISECOND, .options.allowed_in_flight = 1), int64,
                          (int64, x));

/* ---- Calls that are completed more than once --------------------------------------------------------------------- */

static void completes_twice(const arroyo_udf_call* call, int64_t x) {
  arroyo_udf_complete_int64(call->token, x + 1);
  if (is_bad(x)) arroyo_udf_complete_error(call->token, "a second completion");
}
ARROYO_UDF_ASYNC_FUNCTION(completes_twice, (), int64, (int64, x));

enum { TIMES = 4 };
struct job {
  arroyo_udf_token token;
  int64_t value;
};

static void* complete_elsewhere(void* data) {
  const struct job* const job = data;
  arroyo_udf_complete_int64(job->token, job->value);
  return NULL;
}

/* All with the same value, because any of them may come first. */
static void completes_in_many_threads_at_once(const arroyo_udf_call* call, int64_t x) {
  struct job job = {call->token, x + 1};
  pthread_t threads[TIMES];
  int started = 0;
  if (is_bad(x))
    while (started < TIMES && pthread_create(&threads[started], NULL, complete_elsewhere, &job) == 0) started++;
  if (started == 0) complete_elsewhere(&job);
  while (started > 0) pthread_join(threads[--started], NULL);
}
ARROYO_UDF_ASYNC_FUNCTION(completes_in_many_threads_at_once, (), int64, (int64, x));

/* These are far from the call's token, because near ones may be those of other calls. */
static void completes_what_is_no_call(const arroyo_udf_call* call, int64_t x) {
  if (is_bad(x)) {
    arroyo_udf_complete_int64(0, -1);
    arroyo_udf_complete_int64(~call->token, -1);
    arroyo_udf_complete_error(UINT64_MAX, "no");
  }
  arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(completes_what_is_no_call, (), int64, (int64, x));

/* ---- Calls that are completed again after the end ---------------------------------------------------------------- */

/* Static, because the thread that close starts reads it after the Context has gone. */
static arroyo_udf_token last_bad;

static void* complete_after_the_end(void* unused) {
  for (int i = 0; i < 1000; i++) arroyo_udf_complete_int64(last_bad, -1);
  return unused;
}

static const char* leave_a_thread_behind(void* context) {
  pthread_t thread;
  arroyo_udf_complete_int64(last_bad, -1);
  if (pthread_create(&thread, NULL, complete_after_the_end, context) != 0) return "no thread";
  pthread_detach(thread);
  return NULL;
}

static void completes_after_the_end(const arroyo_udf_call* call, int64_t x) {
  if (is_bad(x)) last_bad = call->token;
  arroyo_udf_complete_int64(call->token, x + 1);
}
ARROYO_UDF_ASYNC_FUNCTION(completes_after_the_end, (.close = leave_a_thread_behind), int64, (int64, x));

ARROYO_UDF_PLUGIN(fails, completes_with_another_type, gives_up, never_completes, completes_when_cancelled,
                  blocks_the_thread, completes_twice, completes_in_many_threads_at_once, completes_what_is_no_call,
                  completes_after_the_end);
