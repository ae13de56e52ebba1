/* For the tests of arroyo_udf_async.h: async functions that leave their calls open, sync functions that complete them
 * and count events, and one async function of each type, with and without null. To the runtime, sync functions run in a
 * foreign thread. Nothing here waits longer than a minute. */
#include "arroyo_udf_async.h"

#include <pthread.h>
#include <time.h>

/* ---- Events ------------------------------------------------------------------------------------------------------ */

enum { MOST = 1000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static arroyo_udf_token latest[MOST]; /* call for each argument */
static const char* texts[MOST];
static int64_t counts[4];
enum { CALLED, CANCELLED, OPENED, CLOSED };

static void count(int what) {
  pthread_mutex_lock(&lock);
  counts[what]++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* count_of(what, at_least): waits until that many events have happened; returns their number. */
static const char* count_of(int64_t what, int64_t at_least, int64_t* out) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  pthread_mutex_lock(&lock);
  while (counts[what] < at_least && pthread_cond_timedwait(&changed, &lock, &until) == 0) continue;
  *out = counts[what];
  pthread_mutex_unlock(&lock);
  return *out < at_least ? "fewer events within a minute" : NULL;
}
ARROYO_UDF_FUNCTION(count_of, int64, (int64, what), (int64, at_least));

/* ---- Calls that stay open ---------------------------------------------------------------------------------------- */

static void keep(const arroyo_udf_call* call, int64_t x) {
  pthread_mutex_lock(&lock);
  latest[x] = call->token;
  pthread_mutex_unlock(&lock);
  count(CALLED);
}

static void note_cancellation(void* context, arroyo_udf_token token) {
  (void)context;
  (void)token;
  count(CANCELLED);
}

static void open_call(const arroyo_udf_call* call, int64_t x) { keep(call, x); }
ARROYO_UDF_ASYNC_FUNCTION(open_call, (.cancel = note_cancellation), int64, (int64, x));

static void open_text(const arroyo_udf_call* call, arroyo_udf_utf8 text, int64_t x) {
  texts[x] = text.data;
  keep(call, x);
}
ARROYO_UDF_ASYNC_FUNCTION(open_text, (), utf8, (utf8, text), (int64, x));

/* complete(x, how): completes the latest call for x; returns whether that counts. */
static const char* complete(int64_t x, arroyo_udf_utf8 how, bool* out) {
  const arroyo_udf_token token = latest[x];
  switch (how.data[0]) {
    case 'v': *out = arroyo_udf_complete_int64(token, x + 1); break;
    case 'n': *out = arroyo_udf_complete_null(token); break;
    case 'e': *out = arroyo_udf_complete_error(token, arroyo_udf_failure("%d is refused \xC3\xA9", (int)x)); break;
    case 'c': arroyo_udf_complete_cancelled(token); break;
    case 'f': *out = arroyo_udf_complete_float64(token, 0.5); break;
    case 'u': *out = arroyo_udf_complete_utf8(token, "\xC3(", 2); break;
    case 't': *out = arroyo_udf_complete_utf8(token, texts[x], 3); break;
    case '-': *out = arroyo_udf_complete_int64(UINT64_MAX, 0) || arroyo_udf_complete_int64(0, 0); break;
    default: return "unknown";
  }
  return NULL;
}
ARROYO_UDF_FUNCTION(complete, bool, (int64, x), (utf8, how));

/* ---- Contexts ---------------------------------------------------------------------------------------------------- */

static int shared;

static const char* open_context(void** context) {
  shared = 40;
  *context = &shared;
  count(OPENED);
  return NULL;
}
static const char* close_context(void* context) {
  count(CLOSED);
  return context == &shared ? NULL : "another context";
}
static const char* fail_to_open(void** context) {
  (void)context;
  return "no server here";
}
static const char* fail_to_close(void* context) {
  (void)context;
  return "one is left open";
}
static void shares(const arroyo_udf_call* call, int64_t x) {
  arroyo_udf_complete_int64(call->token, *(int*)call->context + x);
}
ARROYO_UDF_ASYNC_FUNCTION(shares, (.init = open_context, .close = close_context), int64, (int64, x));
static void open_with_context(const arroyo_udf_call* call, int64_t x) { keep(call, x); }
ARROYO_UDF_ASYNC_FUNCTION(open_with_context, (.init = open_context, .close = close_context), int64, (int64, x));
static void never_opens(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_ASYNC_FUNCTION(never_opens, (.init = fail_to_open, .close = close_context), int64, (int64, x));
static void never_closes(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_ASYNC_FUNCTION(never_closes, (.close = fail_to_close), int64, (int64, x));

/* ---- What the function knows of a call --------------------------------------------------------------------------- */

static void knows(const arroyo_udf_call* call, int64_t fails) {
  char text[128];
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t left = call->deadline_ns - ((uint64_t)now.tv_sec * ARROYO_UDF_SECOND + (uint64_t)now.tv_nsec);
  const char* const in_time = left <= 3600 * ARROYO_UDF_SECOND ? "soon" : "?";
  const char* const deadline = call->deadline_ns == UINT64_MAX ? "none" : in_time;
  const int length =
      snprintf(text, sizeof text, "row %llu, attempt %u, deadline %s, lineage %02x...%02x",
               (unsigned long long)call->row, call->attempt, deadline, call->lineage[0], call->lineage[15]);
  if (call->attempt <= fails)
    arroyo_udf_complete_error(call->token, text);
  else
    arroyo_udf_complete_utf8(call->token, text, (size_t)length);
}
ARROYO_UDF_ASYNC_FUNCTION(knows, (.options.max_attempts = 3, .options.retry_on = ARROYO_UDF_RETRY_ERRORS,
                                  .options.backoff_ns = 1), utf8, (int64, fails));

/* ---- Types ------------------------------------------------------------------------------------------------------- */

#define SAME(word, type)                                                                       \
  static void same_##word(const arroyo_udf_call* call, type x, arroyo_udf_nullable_##word y) { \
    if (y.is_null)                                                                             \
      arroyo_udf_complete_null(call->token);                                                   \
    else                                                                                       \
      arroyo_udf_complete_##word(call->token, memcmp(&x, &y.value, sizeof x) == 0 ? x : 0);    \
  }                                                                                            \
  ARROYO_UDF_ASYNC_FUNCTION(same_##word, (), nullable_##word, (word, x), (nullable_##word, y));

SAME(int8, int8_t)
SAME(uint16, uint16_t)
SAME(uint64, uint64_t)
SAME(float32, float)
SAME(float64, double)
/* Not through the macro: there `bool` would be replaced before it is pasted into a name. */
static void same_bool(const arroyo_udf_call* call, bool x, arroyo_udf_nullable_bool y) {
  if (y.is_null)
    arroyo_udf_complete_null(call->token);
  else
    arroyo_udf_complete_bool(call->token, x == y.value && x);
}
ARROYO_UDF_ASYNC_FUNCTION(same_bool, (), nullable_bool, (bool, x), (nullable_bool, y));
static void same_utf8(const arroyo_udf_call* call, arroyo_udf_utf8 x, arroyo_udf_nullable_utf8 y) {
  if (y.is_null)
    arroyo_udf_complete_null(call->token);
  else
    arroyo_udf_complete_utf8(call->token, x.data, y.value.length == x.length ? x.length : 0);
}
ARROYO_UDF_ASYNC_FUNCTION(same_utf8, (), nullable_utf8, (utf8, x), (nullable_utf8, y));

ARROYO_UDF_PLUGIN(count_of, open_call, open_text, complete, shares, open_with_context, never_opens, never_closes, knows,
                  same_int8, same_uint16, same_uint64, same_float32, same_float64, same_bool,
                  same_utf8);
