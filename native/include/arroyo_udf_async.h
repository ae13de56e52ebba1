/* arroyo_udf_async.h: asynchronous functions written in C, for what waits: sockets, queues, threads of your own.
 *
 *     #include "arroyo_udf_async.h"
 *
 *     static void cancel(void* context, arroyo_udf_token token) { ... }
 *
 *     static void price(const arroyo_udf_call* call, arroyo_udf_utf8 item) {
 *       ask(call->token, item);    and some time, in any thread: arroyo_udf_complete_float64(token, 9.5);
 *     }
 *     ARROYO_UDF_ASYNC_FUNCTION(price, (.cancel = cancel, .options.timeout_ns = 2 * ARROYO_UDF_SECOND),
 *                               float64, (utf8, item));
 *     ARROYO_UDF_PLUGIN(price);
 *
 * The function begins the work for a row and returns at once. Whoever has the answer *completes* the call with it, by
 * its token, from any thread, also before the function returns. Types, nulls and ARROYO_UDF_PLUGIN are those of
 * arroyo_udf_plugin.h; a plugin may have functions of both kinds. `arroyo-udf build` links a runtime to such a plugin.
 *
 * COMPLETE  Each call is to be completed once. What comes first counts: the completion, the timeout, a cancellation by
 *           the host. A completion that comes later, a second one, and one whose runtime has been stopped or released
 *           do nothing but be counted (arroyo_udf_statistics, `discarded`, while there is a runtime). A call keeps its
 *           place among `allowed_in_flight` until it has been completed. One that is not, one second after its
 *           cancellation, is stuck.
 *
 * THREADS   The function, `init`, `cancel` and `close` run in one thread of the started function, one at a time; what
 *           waits there holds up the others. What is named arroyo_udf_complete_... may be called from any thread, at
 *           any time, with any lock held; it does not wait, and calls none of the four.
 *
 * MEMORY    *call lives until the function returns. Texts among the arguments live until the call is completed, in
 *           whatever way. What is given to a completion is copied.
 *
 * C11 with the extensions of gcc and clang; not for C++. What is named arroyo_udf_c_... is private to this header.
 */
#ifndef ARROYO_UDF_ASYNC_H
#define ARROYO_UDF_ASYNC_H

#include "arroyo_udf_plugin.h"

#pragma GCC visibility push(hidden) /* the library that is linked to the plugin has these */

#define ARROYO_UDF_MILLISECOND UINT64_C(1000000)
#define ARROYO_UDF_SECOND UINT64_C(1000000000)

/* ---- What authors use ------------------------------------------------------------------------------------------ */

/* A call that is to be completed. A number that no other call of this plugin has; may be kept, copied and compared. */
typedef uint64_t arroyo_udf_token;

/* What a call can know. */
typedef struct arroyo_udf_call {
  arroyo_udf_token token;
  uint64_t row;         /* the row's id */
  uint64_t deadline_ns; /* when it times out, by CLOCK_MONOTONIC; UINT64_MAX: never */
  void* context;        /* what init made */
  uint32_t attempt;     /* 1, 2, ... */
  uint32_t reserved;
  uint8_t lineage[16]; /* with the row's id the idempotency key: the same for each attempt, also after a restore */
} arroyo_udf_call;

/* What goes with a function. All of it may be left out. */
typedef struct arroyo_udf_async {
  /* Makes what the calls of one started function share, before the first. NULL: done; else a text, why it cannot start.
   * After 10 seconds the start has failed, and close is called when it returns after all. */
  const char* (*init)(void** context);
  /* The call timed out, or its row was cancelled, or the function is being stopped: complete it soon; with
   * arroyo_udf_complete_cancelled, unless there is more to say. It may have been completed by now. */
  void (*cancel)(void* context, arroyo_udf_token token);
  /* Frees what init made, after the last call was completed. NULL: done; else a text, which stop_runtime reports. It is
   * not called when stop_runtime answers ARROYO_UDF_STUCK: a call is open, and may use the Context. */
  const char* (*close)(void* context);
  arroyo_udf_options options; /* see arroyo_udf.h; zero: the default */
} arroyo_udf_async;

/* Completes a call with a value of the type that its result is declared with; another type is the row's error. True: it
 * is what the call came to. False: the call had ended before, and this is discarded. So for all that follow, and for
 * each type of arroyo_udf_plugin.h: arroyo_udf_complete_bool, ..._int8 ... int64, ..._uint8 ... uint64, ..._float32,
 * ..._float64, and */
bool arroyo_udf_complete_utf8(arroyo_udf_token token, const char* data, size_t length);

/* Completes a call with null, if the result is declared nullable; else that is the row's error. */
bool arroyo_udf_complete_null(arroyo_udf_token token);

/* Completes a call with an error; `text` ends with a zero (arroyo_udf_failure makes one as printf does). The row may be
 * tried again, if the options say so. */
bool arroyo_udf_complete_error(arroyo_udf_token token, const char* text);

/* Completes a call that was cancelled, and has no answer: nothing is discarded, hence counted. For a call that was not
 * cancelled it is an error. */
void arroyo_udf_complete_cancelled(arroyo_udf_token token);

/* ---- The types ------------------------------------------------------------------------------------------------- */

bool arroyo_udf_c_runtime_complete(arroyo_udf_token token, char format, uint64_t bits);

/* One argument of a call. */
typedef struct arroyo_udf_c_argument {
  uint64_t bits; /* of a number or a bool */
  const char* data; /* of a text */
  size_t length;
  bool is_null;
} arroyo_udf_c_argument;

#define ARROYO_UDF_C_TAKE_(word, nullable, type, take)                                                      \
  static inline type arroyo_udf_c_take_##word(const arroyo_udf_c_argument* argument) {                      \
    type value;                                                                                             \
    take;                                                                                                   \
    return value;                                                                                           \
  }                                                                                                         \
  static inline arroyo_udf_##nullable arroyo_udf_c_take_##nullable(const arroyo_udf_c_argument* argument) { \
    arroyo_udf_##nullable taken;                                                                            \
    memset(&taken, 0, sizeof taken);                                                                        \
    taken.is_null = argument->is_null;                                                                      \
    if (!taken.is_null) taken.value = arroyo_udf_c_take_##word(argument);                                   \
    return taken;                                                                                           \
  }
/* Through this one, because `bool` may be a macro. */
#define ARROYO_UDF_C_TAKE(...) ARROYO_UDF_C_TAKE_(__VA_ARGS__)
#define ARROYO_UDF_C_ASYNC_NUMBER(word, type, letter)                                           \
  ARROYO_UDF_C_TAKE(word, nullable_##word, type, memcpy(&value, &argument->bits, sizeof value)) \
  static inline bool arroyo_udf_complete_##word(arroyo_udf_token token, type value) {           \
    uint64_t bits = 0;                                                                          \
    memcpy(&bits, &value, sizeof value);                                                        \
    return arroyo_udf_c_runtime_complete(token, letter, bits);                                  \
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
  return arroyo_udf_c_runtime_complete(token, 'b', value);
}

/* ---- Declarations: macros -------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_c_async {
  void (*call)(const arroyo_udf_call* call, const arroyo_udf_c_argument* arguments);
  const arroyo_udf_async* settings;
} arroyo_udf_c_async;

#define ARROYO_UDF_C_UNPACK(...) __VA_ARGS__
/* Each argument is a local first: C does not say in which order a call's are read. */
#define ARROYO_UDF_C_TAKEN(function, argument)                                  \
  const ARROYO_UDF_C_OF(parameter, argument) ARROYO_UDF_C_COLUMN_OF(argument) = \
      ARROYO_UDF_C_OF(take, argument)(arguments++);
#define ARROYO_UDF_C_TAKEN_OF(function, argument) ARROYO_UDF_C_COLUMN_OF(argument)

#define ARROYO_UDF_C_ASYNC_FUNCTION(name, with, result_type, ...)                                               \
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
  static const arroyo_udf_c_function arroyo_udf_c_##name##_function = {                                         \
      {#name, ARROYO_UDF_ASYNC, 0, &arroyo_udf_c_##name##_arguments, &arroyo_udf_c_##name##_returns,            \
       &arroyo_udf_c_##name##_settings.options},                                                                \
      &arroyo_udf_c_##name##_async,                                                                             \
      NULL,                                                                                                     \
      NULL,                                                                                                     \
      NULL}
#define ARROYO_UDF_C_ASYNC_FUNCTION_(name, ...) ARROYO_UDF_C_ASYNC_FUNCTION(name, __VA_ARGS__)

/* ARROYO_UDF_ASYNC_FUNCTION(name, (.field = value, ...), result type, (type, argument name), ...); behind the
 * function's definition. The fields are those of arroyo_udf_async, options among them as .options.timeout_ns; () for
 * none. */
#define ARROYO_UDF_ASYNC_FUNCTION(name, with, result_type, ...) \
  ARROYO_UDF_C_ASYNC_FUNCTION_(name, with, result_type, __VA_ARGS__)

/* ---- The runtime's half: it has the table, and finds these two in the author's library --------------------------- */

extern const arroyo_udf_c_plugin arroyo_udf_c_this_plugin;
arroyo_udf_status arroyo_udf_c_run(uint32_t function, struct ArrowArray* arguments, struct ArrowArray* results,
                                   const struct ArrowSchema** schema, arroyo_udf_error* error);

#undef ARROYO_UDF_C_LINKAGE
#define ARROYO_UDF_C_LINKAGE
#undef ARROYO_UDF_C_TABLE
#define ARROYO_UDF_C_TABLE extern const arroyo_udf_table arroyo_udf_plugin

#pragma GCC visibility pop

#endif /* ARROYO_UDF_ASYNC_H */
