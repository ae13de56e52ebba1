/* arroyo_udf_async.h: asynchronous functions written in C, for work that waits: for sockets, queues, your own threads.
 *
 *     #include "arroyo_udf_async.h"
 *
 *     static void cancel(void* context, arroyo_udf_token token) { ... }
 *
 *     static void price(const arroyo_udf_call* call, arroyo_udf_utf8 item) {
 *       ask(call->token, item);    later, in any thread: arroyo_udf_complete_float64(token, 9.5);
 *     }
 *     ARROYO_UDF_ASYNC_FUNCTION(price, (.cancel = cancel, .options.timeout_ns = 2 * ARROYO_UDF_SECOND),
 *                               float64, (utf8, item));
 *     ARROYO_UDF_PLUGIN(price);
 *
 * The function starts the work for a row and returns at once. Once the answer is there, *complete* the call with it, by
 * the call's token, from any thread, even before the function has returned. Types, nulls and ARROYO_UDF_PLUGIN work as
 * in arroyo_udf_plugin.h; a plugin may have functions of both kinds. `arroyo-udf build` links a runtime to it.
 *
 * COMPLETE  Complete each call once. The first of these counts: a completion, the timeout, a cancellation by the host.
 *           Later completions, and completions after the runtime was stopped or released, have no effect; while the
 *           runtime exists they are counted (arroyo_udf_statistics, `discarded`). A call occupies one of the
 *           `allowed_in_flight` places until it is completed. A call still open one second after its cancellation is
 *           stuck.
 *
 * THREADS   The function, `init`, `cancel` and `close` run in one thread per started function, one at a time; if one of
 *           them waits, the others wait too. Functions named arroyo_udf_complete_... may be called from any thread, at
 *           any time, with any lock held. They never wait, and call none of these four.
 *
 * MEMORY    *call is valid until the function returns, texts among the arguments until the call is completed.
 *           Completions copy what they get.
 *
 * C11 with the extensions of gcc and clang; not for C++. Names that begin with arroyo_udf_c_ are private.
 */
#ifndef ARROYO_UDF_ASYNC_H
#define ARROYO_UDF_ASYNC_H

#include "arroyo_udf_plugin.h"

#pragma GCC visibility push(hidden) /* shared with the static library that is linked to the plugin */

#define ARROYO_UDF_MILLISECOND UINT64_C(1000000)
#define ARROYO_UDF_SECOND UINT64_C(1000000000)

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* Identifies an open call. A number, unique in this plugin: keep, copy and compare it freely. */
typedef uint64_t arroyo_udf_token;

/* About a call. */
typedef struct arroyo_udf_call {
  arroyo_udf_token token;
  uint64_t row;         /* the row's id */
  uint64_t deadline_ns; /* when the call times out, in CLOCK_MONOTONIC; UINT64_MAX: never */
  void* context;        /* made by init */
  uint32_t attempt;     /* 1, 2, ... */
  uint32_t reserved;
  uint8_t lineage[16]; /* of the started function */
  const char* trace_parent; /* the engine's W3C trace context; NULL: none. Valid until the call is completed */
  uint8_t idempotency_key[24]; /* of the row: the same in every attempt, also after a restart */
} arroyo_udf_call;

/* Settings of a function, all of them optional. */
typedef struct arroyo_udf_async {
  /* Makes the Context that all calls of one started function share, before the first call. Returns NULL, or a text that
   * says why the function cannot start. After 10 seconds the start fails; when init then returns, close is called. */
  const char* (*init)(void** context);
  /* The call timed out, its row was cancelled, or the function is being stopped: complete it soon, with
   * arroyo_udf_complete_cancelled unless there is an answer. It may already have been completed. */
  void (*cancel)(void* context, arroyo_udf_token token);
  /* Frees the Context, after the last call was completed. Returns NULL, or a text that stop_runtime reports. Not called
   * if stop_runtime returns ARROYO_UDF_STUCK, because an open call may use the Context. */
  const char* (*close)(void* context);
  arroyo_udf_options options; /* see arroyo_udf.h; zero: the default */
} arroyo_udf_async;

/* Completes a call with a value. Its type must be the declared type of the result, else the row becomes an error.
 * Returns true if this completion counts, false if it is discarded, because the call had already ended. All functions
 * below that return bool do the same. There is one for each type of arroyo_udf_plugin.h: arroyo_udf_complete_bool,
 * ..._int8 to ..._int64, ..._uint8 to ..._uint64, ..._float32, ..._float64 and: */
bool arroyo_udf_complete_utf8(arroyo_udf_token token, const char* data, size_t length);

/* Completes a call with null. If the result is not declared nullable, the row becomes an error. */
bool arroyo_udf_complete_null(arroyo_udf_token token);

/* Completes a call with an error; `text` ends with a zero (arroyo_udf_failure formats one). The options decide whether
 * the row gets another attempt. */
bool arroyo_udf_complete_error(arroyo_udf_token token, const char* text);

/* Completes a cancelled call that has no answer; this does not count as discarded. If the call was not cancelled, its
 * row becomes an error. */
void arroyo_udf_complete_cancelled(arroyo_udf_token token);

/* Write it after the function's definition, with its name, its settings as (.cancel = ..., .options.timeout_ns = ...)
 * or (), the type of its result, then (type, name) for each argument. */
#define ARROYO_UDF_ASYNC_FUNCTION(name, with, result_type, ...) \
  ARROYO_UDF_DESCRIBED_ASYNC_FUNCTION(name, NULL, 0, with, result_type, __VA_ARGS__)

/* As ARROYO_UDF_DESCRIBED_FUNCTION. */
#define ARROYO_UDF_DESCRIBED_ASYNC_FUNCTION(name, documentation, volatility, with, result_type, ...) \
  ARROYO_UDF_C_ASYNC_FUNCTION_(name, documentation, volatility, with, result_type, __VA_ARGS__)

/* ---- The types ------------------------------------------------------------------------------------------------- */

bool arroyo_udf_c_complete(arroyo_udf_token token, char format, uint64_t bits);

/* One argument of a call. */
typedef struct arroyo_udf_c_argument {
  uint64_t bits;    /* of a number or a bool */
  const char* data; /* of a text */
  size_t length;
  bool is_null;
} arroyo_udf_c_argument;

#define ARROYO_UDF_C_TAKE_(name, nullable, type, take)                                                      \
  static inline type arroyo_udf_c_take_##name(const arroyo_udf_c_argument* argument) {                      \
    type value;                                                                                             \
    take;                                                                                                   \
    return value;                                                                                           \
  }                                                                                                         \
  static inline arroyo_udf_##nullable arroyo_udf_c_take_##nullable(const arroyo_udf_c_argument* argument) { \
    arroyo_udf_##nullable taken;                                                                            \
    memset(&taken, 0, sizeof taken);                                                                        \
    taken.is_null = argument->is_null;                                                                      \
    if (!taken.is_null) taken.value = arroyo_udf_c_take_##name(argument);                                   \
    return taken;                                                                                           \
  }
/* One more expansion, because `bool` may be a macro. */
#define ARROYO_UDF_C_TAKE(...) ARROYO_UDF_C_TAKE_(__VA_ARGS__)
#define ARROYO_UDF_C_ASYNC_NUMBER(name, type, letter)                                           \
  ARROYO_UDF_C_TAKE(name, nullable_##name, type, memcpy(&value, &argument->bits, sizeof value)) \
  static inline bool arroyo_udf_complete_##name(arroyo_udf_token token, type value) {           \
    uint64_t bits = 0;                                                                          \
    memcpy(&bits, &value, sizeof value);                                                        \
    return arroyo_udf_c_complete(token, letter, bits);                                          \
  }

ARROYO_UDF_C_ASYNC_NUMBER(int8, int8_t, 'c')
ARROYO_UDF_C_ASYNC_NUMBER(int16, int16_t, 's')
ARROYO_UDF_C_ASYNC_NUMBER(int32, int32_t, 'i')
ARROYO_UDF_C_ASYNC_NUMBER(int64, int64_t, 'l')
ARROYO_UDF_C_ASYNC_NUMBER(uint8, uint8_t, 'C')
ARROYO_UDF_C_ASYNC_NUMBER(uint16, uint16_t, 'S')
ARROYO_UDF_C_ASYNC_NUMBER(uint32, uint32_t, 'I')
ARROYO_UDF_C_ASYNC_NUMBER(uint64, uint64_t, 'L')
ARROYO_UDF_C_ASYNC_NUMBER(float32, float, 'f')
ARROYO_UDF_C_ASYNC_NUMBER(float64, double, 'g')
ARROYO_UDF_C_TAKE(bool, nullable_bool, bool, value = argument->bits != 0)
ARROYO_UDF_C_TAKE(utf8, nullable_utf8, arroyo_udf_utf8, (value.data = argument->data, value.length = argument->length))

static inline bool arroyo_udf_complete_bool(arroyo_udf_token token, bool value) {
  return arroyo_udf_c_complete(token, 'b', value);
}

/* ---- Declarations: macros -------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_c_async {
  void (*call)(const arroyo_udf_call* call, const arroyo_udf_c_argument* arguments);
  const arroyo_udf_async* settings;
} arroyo_udf_c_async;

/* Each argument becomes a local first, because C leaves open in which order a call evaluates its arguments. */
#define ARROYO_UDF_C_TAKEN(function, argument)                                  \
  const ARROYO_UDF_C_OF(parameter, argument) ARROYO_UDF_C_COLUMN_OF(argument) = \
      ARROYO_UDF_C_OF(take, argument)(arguments++);
#define ARROYO_UDF_C_TAKEN_OF(function, argument) ARROYO_UDF_C_COLUMN_OF(argument)

#define ARROYO_UDF_C_ASYNC_FUNCTION(name, documentation, volatility, with, result_type, ...)                    \
  void name(const arroyo_udf_call* arroyo_udf_c_call,                                                           \
            ARROYO_UDF_C_EACH(ARROYO_UDF_C_PARAMETER, ARROYO_UDF_C_COMMA, name, __VA_ARGS__));                  \
  ARROYO_UDF_C_SIGNATURE(name, result_type, __VA_ARGS__)                                                        \
  static void arroyo_udf_c_##name##_call(const arroyo_udf_call* call, const arroyo_udf_c_argument* arguments) { \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_TAKEN, ARROYO_UDF_C_NOTHING, name, __VA_ARGS__)                              \
    name(call, ARROYO_UDF_C_EACH(ARROYO_UDF_C_TAKEN_OF, ARROYO_UDF_C_COMMA, name, __VA_ARGS__));                \
  }                                                                                                             \
  static const arroyo_udf_async arroyo_udf_c_##name##_settings = {.options.size = sizeof(arroyo_udf_options),   \
                                                                  ARROYO_UDF_C_UNPACK with};                    \
  static const arroyo_udf_c_async arroyo_udf_c_##name##_async = {arroyo_udf_c_##name##_call,                    \
                                                                 &arroyo_udf_c_##name##_settings};              \
  static arroyo_udf_c_function arroyo_udf_c_##name##_function = {                                               \
      {sizeof(arroyo_udf_function), #name, ARROYO_UDF_ASYNC, 0, &arroyo_udf_c_##name##_arguments,               \
       &arroyo_udf_c_##name##_returns, &arroyo_udf_c_##name##_settings.options, documentation, volatility, 0, 0, \
       0, 0},                                                                                                    \
      &arroyo_udf_c_##name##_async,                                                                             \
      NULL,                                                                                                     \
      NULL,                                                                                                     \
      NULL,                                                                                                     \
      NULL}
#define ARROYO_UDF_C_ASYNC_FUNCTION_(name, ...) ARROYO_UDF_C_ASYNC_FUNCTION(name, __VA_ARGS__)

/* ---- The table: the runtime has it, and finds these two in the author's library --------------------------------- */

extern const arroyo_udf_c_plugin arroyo_udf_c_this_plugin;
arroyo_udf_status arroyo_udf_c_run(uint32_t function, struct ArrowArray* arguments,
                                   const arroyo_udf_batch_context* context, struct ArrowArray* results,
                                   const struct ArrowSchema** schema, arroyo_udf_error* error);

#undef ARROYO_UDF_C_LINKAGE
#define ARROYO_UDF_C_LINKAGE
#undef ARROYO_UDF_C_TABLE
#define ARROYO_UDF_C_TABLE extern const arroyo_udf_table arroyo_udf_plugin

#pragma GCC visibility pop

#endif /* ARROYO_UDF_ASYNC_H */
