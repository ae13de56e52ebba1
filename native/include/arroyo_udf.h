/* arroyo_udf.h: how an engine calls user-defined functions (UDFs) that live in a shared library.
 *
 * ROLES     A *plugin* is one shared library with one or more functions. A *host* opens it with dlopen for an
 *           *engine* and calls through the one table that the plugin exports as the constant `arroyo_udf_plugin`.
 *           Names that begin with arroyo_udf_host_ are implemented by the host side, all others by the plugin.
 *           Who writes functions in C includes arroyo_udf_plugin.h or arroyo_udf_async.h instead.
 *
 * LIFECYCLE dlopen (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE; never dlclose) -> check `magic`, `abi_version` and
 *           `table_size` -> describe -> then, function by function:
 *             sync   run(batch) -> results                                    as often as you like
 *             async  start -> { send | drain_results | wait | arm | ... } -> stop_runtime -> drain_results until
 *                    ARROYO_UDF_END -> release
 *
 * BATCHES   Rows cross as Arrow C Data arrays, never singly. The arguments of n rows are one struct array of length n
 *           with a child per argument, of exactly the types that `describe` names. Results are struct arrays as well;
 *           read their fields by name and ignore names that you do not know.
 *
 * THREADS   Every slot may be called from any thread, and from several at once; each slot's comment says what else
 *           holds. [never waits] slots take no lock that user code can hold, run no user code and return at once;
 *           [waits] slots may run user code or sleep. A host that is itself Python must not hold the GIL in a
 *           [waits] slot.
 *
 * OWNERSHIP What moves, moves only when the status is ARROYO_UDF_OK; with any other status the caller still owns the
 *           inputs, and outputs are untouched. Who made memory frees it, through the release callback that comes with
 *           it. Input arrays are released only inside a call of the host's into the same plugin, in the thread of that
 *           call, with no lock held. `const` results live as long as the process.
 *
 * ERRORS    A call that fails answers a status from ARROYO_UDF_INVALID_ARGUMENT up, with a text. A *row* that fails is
 *           not a failed call: its outcome says so, and its neighbours are unharmed.
 *
 * EVOLUTION Version 0 is a draft: host and plugin must have the same version and size. From version 1 on this table
 *           only grows at its end.
 */
#ifndef ARROYO_UDF_H
#define ARROYO_UDF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARROYO_UDF_MAGIC UINT64_C(0x4644555F4F595241) /* "ARYO_UDF" in memory, little-endian */
#define ARROYO_UDF_ABI_VERSION 0
#define ARROYO_UDF_EXPORT __attribute__((visibility("default")))

/* The Arrow C Data Interface, under its canonical guard: https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif

#pragma GCC visibility push(default) /* C++ fixes a symbol's visibility at its first declaration */
/* Between the two marks there are no preprocessor lines: cffi reads this span as it is. */
/* cffi: begin */

/* ---- Vocabulary ------------------------------------------------------------------------------------------------ */

typedef int32_t arroyo_udf_status;
enum {
  ARROYO_UDF_OK = 0,
  /* Answers, not errors; no text. */
  ARROYO_UDF_WOULD_BLOCK = 1, /* nothing was taken, handed out or true by now: wait or arm, then call again */
  ARROYO_UDF_READY = 2,       /* arm: the condition holds already, nothing was registered */
  ARROYO_UDF_END = 3,         /* drain_results: stopped, and every accepted row has been handed out */
  ARROYO_UDF_STUCK = 4,       /* stop_runtime: some attempt ignored its cancellation; what it uses stays allocated,
                                 and the Context is not closed */
  /* Errors, with a text. */
  ARROYO_UDF_INVALID_ARGUMENT = 16, /* the host's mistake: wrong index, array, id or option */
  ARROYO_UDF_INVALID_STATE = 17,    /* the host's mistake: stopped, released, used after fork, or not a handle */
  ARROYO_UDF_ENVIRONMENT = 18,      /* the plugin cannot work here: no Python, wrong version, missing package */
  ARROYO_UDF_USER_CODE = 19,        /* the user's code failed outside of a row: module, init or close of the Context */
  ARROYO_UDF_INTERNAL = 20,         /* the toolkit's own mistake; a handle is poisoned from then on */
  ARROYO_UDF_NOT_IMPLEMENTED = 21   /* this function or plugin does not do that: run of an async function, say */
};

/* How a row ended: the `outcome` field of results. */
enum {
  ARROYO_UDF_VALUE = 0,
  ARROYO_UDF_ERROR = 1,
  ARROYO_UDF_TIMED_OUT = 2,
  ARROYO_UDF_CANCELLED = 3
};

/* What a host can wait for; or them together to wait for either. Both hold once the runtime has ended. */
enum {
  ARROYO_UDF_RESULTS = 1, /* drain_results answers OK, END or an error */
  ARROYO_UDF_ROOM = 2     /* send answers OK or an error */
};

/* stop_runtime: what becomes of the rows that were accepted and have not ended. */
enum {
  ARROYO_UDF_DRAIN = 1, /* they run to their end, until the deadline; then as CANCEL */
  ARROYO_UDF_CANCEL = 2 /* they are cancelled now */
};

enum {
  ARROYO_UDF_SYNC = 1, /* run */
  ARROYO_UDF_ASYNC = 2 /* start, send, drain_results, ... */
};

enum {
  ARROYO_UDF_ORDERED = 1,  /* results come out in the order in which rows were accepted */
  ARROYO_UDF_UNORDERED = 2 /* results come out as rows end */
};

/* A started async function. Opaque, checked on each call; never 0; of no use in another plugin. */
typedef uint64_t arroyo_udf_handle;

/* The text of an error. The host zeroes it before the call and calls release, if set, when it has read the text. */
typedef struct arroyo_udf_error {
  const char* text; /* UTF-8, names plugin and function */
  void (*release)(struct arroyo_udf_error* error);
  void* private_data;
} arroyo_udf_error;

/* ---- What a plugin says of itself ------------------------------------------------------------------------------ */

/* What gets a row another attempt; or them together. */
enum {
  ARROYO_UDF_RETRY_TIMEOUTS = 1,
  ARROYO_UDF_RETRY_ERRORS = 2
};

enum {
  ARROYO_UDF_YES = 1,
  ARROYO_UDF_NO = 2
};

/* How an async function is run. Zero in a field means: as the function's author chose, else the default. */
typedef struct arroyo_udf_options {
  uint64_t size;              /* sizeof(arroyo_udf_options) of whoever filled it in */
  uint32_t order;             /* ARROYO_UDF_ORDERED (default) or ARROYO_UDF_UNORDERED */
  uint32_t allowed_in_flight; /* attempts that run at once, each of one row or one micro-batch; default 100 */
  uint64_t timeout_ns;        /* for one attempt, from its start; default 10 s; UINT64_MAX: none */
  uint64_t deadline_ns;       /* for a row, queueing and all attempts; default none (UINT64_MAX) */
  uint64_t max_rows;          /* rows held (waiting, running, not drained); default the larger of
                                 4 * allowed_in_flight (times batch_size) and 16,384 */
  uint64_t max_bytes;         /* bytes of the batches held; default 64 MiB */
  uint32_t max_attempts;      /* per row; default 1 where ordered, 3 where not */
  uint32_t retry_on;          /* ARROYO_UDF_RETRY_TIMEOUTS (default) | ARROYO_UDF_RETRY_ERRORS */
  uint64_t backoff_ns;        /* pause before a row's second attempt, doubled for each further one, less up to a half
                                 at random; default 100 ms */
  uint64_t max_backoff_ns;    /* the longest pause; default 10 s */
  uint64_t seed;              /* of that randomness; default from the lineage */
  uint32_t idempotent;        /* ARROYO_UDF_YES: a row may be tried again while an attempt that ignored its
                                 cancellation may still do something; default ARROYO_UDF_NO */
  uint32_t max_stuck;         /* so many attempts that ignore their cancellation end the runtime; default
                                 allowed_in_flight */
  uint8_t lineage[16];        /* followed by a row's id, 8 bytes, most significant first: the idempotency key of the
                                 row's calls; give the same after a restore; default random */
  uint64_t batch_size;        /* most rows of a call, for a function that takes micro-batches: it is one because its
                                 author has set this; a call starts when so many rows wait, */
  uint64_t max_wait_ns;       /* or when one has waited so long; default 2 ms, */
  uint64_t batch_bytes;       /* or when those that wait have so many bytes; default 1 MiB */
} arroyo_udf_options;

/* One function. Schemas here are constants of the plugin: their release is NULL, copy them before you give them away. */
typedef struct arroyo_udf_function {
  const char* name;
  uint32_t kind;                        /* ARROYO_UDF_SYNC or ARROYO_UDF_ASYNC */
  uint32_t vectorized;                  /* 1: the author's code sees whole arrays, nulls included */
  const struct ArrowSchema* arguments;  /* a struct ("+s"): one child per argument, in order, flags say nullable */
  const struct ArrowSchema* returns;    /* the type of a value */
  const arroyo_udf_options* options;    /* as the author chose; NULL for a sync function */
} arroyo_udf_function;

typedef struct arroyo_udf_descriptor {
  uint64_t size;               /* sizeof(arroyo_udf_descriptor) */
  const char* name;            /* of the plugin, for messages */
  const char* language;        /* "python", "rust", "c" */
  const char* toolkit_version; /* what built it */
  const char* hash;            /* of the source and of what it was built with; hexadecimal */
  uint64_t n_functions;
  const arroyo_udf_function* const* functions;
} arroyo_udf_descriptor;

/* Counters since start, and how many rows are where now. */
typedef struct arroyo_udf_statistics {
  uint64_t size;      /* in: sizeof(arroyo_udf_statistics) of the caller */
  uint64_t accepted;  /* rows that send took */
  uint64_t queued;    /* now: waiting for their attempt */
  uint64_t running;   /* now: attempts that have not ended, cancelled and stuck ones included */
  uint64_t backing_off; /* now: waiting for their next attempt */
  uint64_t held;      /* now: ended, waiting for an earlier row (ordered) */
  uint64_t ready;     /* now: drain_results would hand them out */
  uint64_t drained;   /* rows handed out */
  uint64_t values;    /* rows ended, by outcome */
  uint64_t errors;
  uint64_t timed_out;
  uint64_t cancelled;
  uint64_t retries;   /* attempts after a row's first */
  uint64_t stuck;     /* now: attempts that ignore their cancellation */
  uint64_t wake_ups;  /* times the executor was woken from sleep */
  uint64_t blocked;   /* times the event loop was found blocked while rows waited or ran */
  uint64_t left_behind; /* tasks that calls had left running, cancelled at the stop */
  uint64_t discarded; /* calls that answered after their row had ended otherwise, or a second time */
  /* Rows by how long they took, from the start of their first attempt to their end, pauses included: latency[i][j] took
   * at least (i == 0 ? j : (4 + j) << (i - 1)) times 1,024 ns, and less than the next one's; the last has the longer ones
   * as well. Without cancelled rows; none at all where neither a timeout, a deadline, max_wait_ns nor retries of errors
   * make the runtime read the clock. */
  uint64_t latency[32][4];
  uint64_t latency_max_ns; /* the longest */
} arroyo_udf_statistics;

/* ---- The table ------------------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_table {
  uint64_t magic;       /* ARROYO_UDF_MAGIC */
  uint32_t abi_version; /* ARROYO_UDF_ABI_VERSION */
  uint32_t table_size;  /* sizeof(arroyo_udf_table) */

  /* What the plugin contains. [never waits] Runs no user code and starts no interpreter. */
  const arroyo_udf_descriptor* (*describe)(void);

  /* Calls sync function number `function` for a batch. [waits] On OK `arguments` has moved and the caller owns
   * `results`: a struct {value} when every row is a value, else {value, outcome: uint8, error: utf8}; *schema is a
   * constant of the plugin. */
  arroyo_udf_status (*run)(uint32_t function, struct ArrowArray* arguments, struct ArrowArray* results,
                           const struct ArrowSchema** schema, arroyo_udf_error* error);

  /* Starts async function number `function`: creates its Context and waits for its init. [waits] `options` may be
   * NULL. */
  arroyo_udf_status (*start)(uint32_t function, const arroyo_udf_options* options, arroyo_udf_handle* handle,
                             arroyo_udf_error* error);

  /* Hands over a batch; its rows have the ids first_id, first_id + 1, ... Ids rise from send to send. [never waits]
   * A batch is taken whole, if less than max_rows and max_bytes are held before it; else WOULD_BLOCK. Each row taken
   * comes out of drain_results exactly once. */
  arroyo_udf_status (*send)(arroyo_udf_handle handle, uint64_t first_id, struct ArrowArray* arguments,
                            arroyo_udf_error* error);

  /* Takes up to max_rows rows that have ended (0: all of them). [never waits] On OK the caller owns `results`: a struct
   * {id: uint64, value, outcome: uint8, attempts: uint16, error: utf8}; *schema is a constant of the plugin.
   * WOULD_BLOCK: none now. END: none any more. */
  arroyo_udf_status (*drain_results)(arroyo_udf_handle handle, uint64_t max_rows, struct ArrowArray* results,
                                     const struct ArrowSchema** schema, arroyo_udf_error* error);

  /* Sleeps until the condition (ARROYO_UDF_RESULTS | ARROYO_UDF_ROOM) holds: OK; or until timeout_ns have passed:
   * WOULD_BLOCK. [waits, runs no user code] A stop in another thread ends it. */
  arroyo_udf_status (*wait)(arroyo_udf_handle handle, uint32_t condition, uint64_t timeout_ns,
                            arroyo_udf_error* error);

  /* Asks for one call fn(data) when the condition holds. READY: it holds already, fn will not be called. OK: fn is
   * called once, from any thread, after the results are visible, also at stop and poisoning; it may not call back into
   * the plugin, and must be short. Arming again replaces the former request. [never waits] */
  arroyo_udf_status (*arm)(arroyo_udf_handle handle, uint32_t condition, void (*fn)(void* data), void* data,
                           arroyo_udf_error* error);

  /* Takes the request of arm back. After it returns, fn does not run and data is not touched. [waits only for a
   * running fn] */
  arroyo_udf_status (*disarm)(arroyo_udf_handle handle, arroyo_udf_error* error);

  /* Cancels the rows first_id ... first_id + rows - 1 that have not ended: each comes out as cancelled. Others, and ids
   * never sent, are left alone. [never waits] */
  arroyo_udf_status (*cancel)(arroyo_udf_handle handle, uint64_t first_id, uint64_t rows, arroyo_udf_error* error);

  /* Fills in `statistics`, whose size the caller has set. [never waits] */
  arroyo_udf_status (*statistics)(arroyo_udf_handle handle, arroyo_udf_statistics* statistics,
                                  arroyo_udf_error* error);

  /* Ends the execution: refuses further sends, ends all rows (mode ARROYO_UDF_DRAIN or ARROYO_UDF_CANCEL), closes the
   * Context. [waits] At most until deadline_ns from now, and one second. Afterwards drain_results hands out what is
   * left, then END. A second stop answers as the first one did. */
  arroyo_udf_status (*stop_runtime)(arroyo_udf_handle handle, uint32_t mode, uint64_t deadline_ns,
                                    arroyo_udf_error* error);

  /* Ends the handle; a runtime that was not stopped is stopped first (CANCEL, 1 s). Rows not drained are gone.
   * [waits] */
  arroyo_udf_status (*release)(arroyo_udf_handle handle, arroyo_udf_error* error);
} arroyo_udf_table;

/* The one symbol that a plugin exports. */
extern const arroyo_udf_table arroyo_udf_plugin;

/* cffi: end */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
