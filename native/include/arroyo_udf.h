/* arroyo_udf.h: how an engine calls user-defined functions (UDFs) that live in a shared library.
 *
 * ROLES     A *plugin* is one shared library with one or more functions. A *host* opens it with dlopen for an
 *           *engine* and calls through the one table that the plugin exports as the constant `arroyo_udf_plugin`.
 *           Authors of C functions include arroyo_udf_plugin.h or arroyo_udf_async.h instead.
 *
 * TERMS     A *runtime* is one started async function, behind a handle. An *attempt* is one execution of it for one
 *           row, or for a *micro-batch* of rows. An attempt is *stuck* if it has not ended one second after its
 *           cancellation. A *poisoned* runtime accepts no more rows and answers those it holds as errors. A *Context*
 *           is shared by all attempts of a runtime: its init runs at start, its close at the stop.
 *
 * LIFECYCLE dlopen (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE; never dlclose; not dlmopen) -> check `magic`, `abi_version`
 *           and `table_size` -> describe -> then for each function:
 *             sync   run(batch) -> results                                    any number of times
 *             async  start -> { send | drain_results | wait | arm | ... } -> stop_runtime -> drain_results until
 *                    ARROYO_UDF_END -> release
 *
 * SAMPLE    Sends batches of 1,000 rows to async function number 0. examples/host/c has a whole host, with errors.
 *
 *     const arroyo_udf_table* udf = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), "arroyo_udf_plugin");
 *     if (udf->magic != ARROYO_UDF_MAGIC || udf->abi_version != ARROYO_UDF_ABI_VERSION) return 1;
 *     if (udf->table_size < ARROYO_UDF_TABLE_SIZE_1) return 1;
 *     struct ArrowArray batch, results;
 *     const struct ArrowSchema* schema;
 *     arroyo_udf_handle handle;
 *     arroyo_udf_error error = {.size = sizeof error};
 *     if (udf->start(0, NULL, &handle, &error) != ARROYO_UDF_OK) return failed(&error);
 *     for (uint64_t id = 0; next(&batch); id += 1000) {
 *       arroyo_udf_status sent;
 *       while ((sent = udf->send(handle, id, &batch, NULL, &error)) == ARROYO_UDF_WOULD_BLOCK)
 *         if (udf->drain_results(handle, 0, &results, &schema, &error) == ARROYO_UDF_OK) take(&results, schema);
 *         else udf->wait(handle, ARROYO_UDF_RESULTS | ARROYO_UDF_ROOM, UINT64_MAX, &error);
 *       if (sent != ARROYO_UDF_OK) return batch.release(&batch), failed(&error); // it is still the host's
 *     }
 *     udf->stop_runtime(handle, ARROYO_UDF_DRAIN, UINT64_C(60000000000), &error);
 *     while (udf->drain_results(handle, 0, &results, &schema, &error) == ARROYO_UDF_OK) take(&results, schema);
 *     return udf->release(handle, &error);
 *
 * BATCHES   Rows cross in batches, as Arrow C Data arrays. The arguments of n rows are one struct array of length n
 *           with one child per argument, of exactly the types that `describe` states. A row that is null in the struct
 *           itself is null in every argument. Results are struct arrays too, and may have offsets: read their fields by
 *           name, and ignore unknown names. `value` is null in a row without a value, `error` in a row with one.
 *
 * CONSTANTS An argument that has one value for all rows of a batch need not be repeated: if both the function and the batch
 *           context have set its bit in `constants`, its child has length 1, and the struct's offset does not count for it.
 *
 * AGGREGATES An aggregate takes the rows of a group, and gives one value. Its `arguments` and `returns` are those that users
 *           see. It has a *state*: an Arrow value, which the host may keep anywhere and as long as it likes. A host calls
 *           its steps, three functions of the same descriptor, by `run`, with one row for each group:
 *             update(state, for each argument the list of the group's new values) -> state
 *             merge(state, other) -> state of both
 *             finish(state) -> value
 *           A group begins with a null state; update and merge never give one. merge takes no null: where one state is
 *           null, the other one is the state of both. update leaves out rows with a null in an argument that is not
 *           nullable. A group whose row fails in a step has no state any more.
 *
 * VALIDITY  A plugin refuses a batch with other numbers of buffers or children than its types have, or with negative
 *           lengths or offsets, missing buffers, or children that are too short (INVALID_ARGUMENT). A row whose offsets
 *           do not ascend, or whose text is not UTF-8, is an error. What no check can tell, the host must keep: buffers
 *           are as long as lengths and offsets say, and do not change.
 *
 * THREADS   Any thread may call any slot, also several at once. A [never waits] slot runs no user code, takes no lock
 *           that user code can hold, and returns at once. A [waits] slot may run user code or sleep: a host written in
 *           Python must release the GIL around it.
 *
 * OWNERSHIP Input arrays move to the plugin, and results to the host, only if the status is ARROYO_UDF_OK; a moved
 *           input has a NULL `release`. With any other status the caller still owns the inputs, and outputs are
 *           untouched. The side that allocated memory frees it, in its release callback. The plugin releases input
 *           arrays only while the host calls one of its slots, in the thread of that call, with no lock held; at the
 *           latest in the release of the handle, unless a stuck attempt may use them. `const` results live as long as
 *           the process.
 *
 * ERRORS    A call that fails returns ARROYO_UDF_INVALID_ARGUMENT or a higher status, with a text. A *row* that fails
 *           is not a failed call: its outcome says so, and other rows are not affected. Its error begins with plugin,
 *           function and row, as in "flights.mph, row 7: no time". The row is its id; in `run`, its place in the batch.
 *
 * EVOLUTION Version 1 is frozen. Within it the table, and every struct that begins with its size, may grow at the end
 *           and change nowhere else; enumerations may get more values. A host refuses a plugin of another version.
 *           Each side states the size that it knows. The other reads, or fills in, the part that both know, and treats
 *           absent fields as zero and absent slots as NULL. Minimum sizes are those of version 1 (..._SIZE_1): a table
 *           or struct that is smaller is refused; an error that is smaller gets no text.
 *           Unknown values: a plugin refuses an option or an option's value, and ignores what a batch
 *           context has beyond it. A host lists a function of an unknown kind by name, and refuses to call it; takes an
 *           unknown status of 16 or more for an error, and any other for a broken contract; takes a row with an unknown
 *           outcome for an error.
 */
#ifndef ARROYO_UDF_H
#define ARROYO_UDF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARROYO_UDF_MAGIC UINT64_C(0x464455594F525241) /* "ARROYUDF" in memory, little-endian */
#define ARROYO_UDF_ABI_VERSION 1
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
/* No preprocessor lines between the two marks: cffi reads this span as it is. */
/* cffi: begin */

/* ---- Vocabulary ------------------------------------------------------------------------------------------------ */

typedef int32_t arroyo_udf_status;
enum {
  ARROYO_UDF_OK = 0,
  /* Not errors; no text. */
  ARROYO_UDF_WOULD_BLOCK = 1, /* try later: no room, no result, or timeout; nothing changed. See wait and arm */
  ARROYO_UDF_READY = 2,       /* arm: the condition already holds; nothing is registered now */
  ARROYO_UDF_END = 3,         /* drain_results: stopped, and every accepted row has come out */
  ARROYO_UDF_STUCK = 4,       /* stop_runtime, release: an attempt ignored its cancellation. Memory that it may use
                                 stays allocated, and the Context is not closed */
  /* Errors, with a text. */
  ARROYO_UDF_INVALID_ARGUMENT = 16, /* host error: wrong index, array, id or option */
  ARROYO_UDF_INVALID_STATE = 17,    /* host error: stopped, released, used after fork, or not a handle */
  ARROYO_UDF_ENVIRONMENT = 18,      /* the plugin cannot work here: no Python, wrong version, missing package */
  ARROYO_UDF_USER_CODE = 19,        /* user code failed outside of a row: module, or init or close of a Context */
  ARROYO_UDF_INTERNAL = 20,         /* the toolkit's mistake; the call's runtime is poisoned */
  ARROYO_UDF_NOT_IMPLEMENTED = 21,  /* this function or plugin cannot do it: for example, run an async function */
  ARROYO_UDF_OUT_OF_MEMORY = 22     /* nothing changed: the caller keeps its inputs */
};

/* How a row ended: the `outcome` field of results. */
enum {
  ARROYO_UDF_VALUE = 0,
  ARROYO_UDF_ERROR = 1,
  ARROYO_UDF_TIMED_OUT = 2,
  ARROYO_UDF_CANCELLED = 3
};

/* The conditions that a host can wait for; RESULTS | ROOM waits for either. Both hold once the runtime has ended. */
enum {
  ARROYO_UDF_RESULTS = 1, /* drain_results returns OK, END or an error */
  ARROYO_UDF_ROOM = 2     /* send returns OK or an error */
};

/* stop_runtime: what to do with accepted rows that have not ended. */
enum {
  ARROYO_UDF_DRAIN = 1, /* let them finish; cancel the rest at the deadline */
  ARROYO_UDF_CANCEL = 2 /* cancel them now */
};

/* How a host calls a function. */
enum {
  ARROYO_UDF_SYNC = 1,      /* run */
  ARROYO_UDF_ASYNC = 2,     /* start, send, drain_results, ... */
  ARROYO_UDF_AGGREGATE = 3, /* run of its three steps: see AGGREGATES */
  ARROYO_UDF_TABLE = 4,     /* run. A value is a list: the rows that this row of arguments gives */
  ARROYO_UDF_STEP = 5       /* run. A step of an aggregate; not for users */
};

/* What a function's result depends on; 0: the author has not said. */
enum {
  ARROYO_UDF_IMMUTABLE = 1, /* on its arguments alone */
  ARROYO_UDF_STABLE = 2,    /* and on what does not change during a query */
  ARROYO_UDF_VOLATILE = 3   /* on anything; or it has effects */
};

/* The order of results. */
enum {
  ARROYO_UDF_ORDERED = 1,  /* results come out in the order in which rows were accepted */
  ARROYO_UDF_UNORDERED = 2 /* results come out as rows end */
};

/* A choice; zero means that nothing was chosen. */
enum {
  ARROYO_UDF_YES = 1,
  ARROYO_UDF_NO = 2
};

/* The sizes of the structs and of the table in version 1: the least that either side accepts. */
enum {
  ARROYO_UDF_ERROR_SIZE_1 = 40,
  ARROYO_UDF_OPTIONS_SIZE_1 = 128,
  ARROYO_UDF_FUNCTION_SIZE_1 = 64,
  ARROYO_UDF_DESCRIPTOR_SIZE_1 = 56,
  ARROYO_UDF_BATCH_CONTEXT_SIZE_1 = 24,
  ARROYO_UDF_STATISTICS_SIZE_1 = 1176,
  ARROYO_UDF_LOG_SIZE_1 = 24,
  ARROYO_UDF_TABLE_SIZE_1 = 128,
  ARROYO_UDF_ISOLATION_OPTIONS_SIZE_1 = 32,
  ARROYO_UDF_INSTANCE_SIZE_1 = 24,
  ARROYO_UDF_ISOLATION_SIZE_1 = 24,
  ARROYO_UDF_NATIVE_SIZE_1 = 32
};

/* A started async function. Opaque, never 0, checked on each call; valid only in the plugin that returned it. */
typedef uint64_t arroyo_udf_handle;

/* Why a call failed. The host sets `size` and zeroes the rest before the call; after reading the text it calls release,
 * if set. Every parameter of this type may be NULL: then there is no text. */
typedef struct arroyo_udf_error {
  uint64_t size;    /* sizeof(arroyo_udf_error) of the host; the plugin fills in no more */
  const char* text; /* UTF-8, names plugin and function */
  void (*release)(struct arroyo_udf_error* error);
  void* private_data;
  uint32_t retryable; /* ARROYO_UDF_YES: the same call may succeed later, because memory or a thread was lacking */
  uint32_t reserved;
} arroyo_udf_error;

/* ---- The descriptor -------------------------------------------------------------------------------------------- */

/* When a row gets another attempt; RETRY_TIMEOUTS | RETRY_ERRORS for both. */
enum {
  ARROYO_UDF_RETRY_TIMEOUTS = 1,
  ARROYO_UDF_RETRY_ERRORS = 2
};

/* How to run an async function. Zero means: use the author's choice, else the default. */
typedef struct arroyo_udf_options {
  uint64_t size;              /* sizeof(arroyo_udf_options), as known to the side that filled it in */
  uint32_t order;             /* ARROYO_UDF_ORDERED (default) or ARROYO_UDF_UNORDERED */
  uint32_t allowed_in_flight; /* most attempts at once, each for one row or one micro-batch; default 100 */
  uint64_t timeout_ns;        /* of one attempt, from its start; default 10 s; UINT64_MAX: none */
  uint64_t deadline_ns;       /* of a row, including its time in the queue and all attempts; default, and
                                 UINT64_MAX: none */
  uint64_t max_rows;          /* most rows held: waiting, running or not drained; default the larger of
                                 4 * allowed_in_flight (* batch_size) and 16,384 */
  uint64_t max_bytes;         /* most bytes of the batches held; default 64 MiB */
  uint32_t max_attempts;      /* per row; default 1 if ordered, else 3 */
  uint32_t retry_on;          /* ARROYO_UDF_RETRY_TIMEOUTS (default) | ARROYO_UDF_RETRY_ERRORS */
  uint64_t backoff_ns;        /* pause before a row's second attempt, doubled for each later one, minus random jitter
                                 of 0-50 %; default 100 ms */
  uint64_t max_backoff_ns;    /* longest pause; default 10 s */
  uint64_t seed;              /* of the jitter; default: derived from the lineage */
  uint32_t idempotent;        /* ARROYO_UDF_YES: retry a row although a former attempt ignored its cancellation
                                 and may still have effects; default ARROYO_UDF_NO */
  uint32_t max_stuck;         /* poison the runtime once this many attempts ignore cancellation; default
                                 allowed_in_flight */
  uint8_t lineage[16];        /* of rows whose batch brings no idempotency keys: the key of a row's calls is the
                                 lineage, then the row's id in 8 bytes, most significant first; default random */
  uint64_t batch_size;        /* maximum rows per call; only for functions that take micro-batches, whose author
                                 has set it. A call starts once this many rows wait, */
  uint64_t max_wait_ns;       /* or one row has waited this long; default 2 ms, */
  uint64_t batch_bytes;       /* or the waiting rows have this many bytes; default 1 MiB */
  uint32_t deterministic;     /* ARROYO_UDF_YES: equal arguments give equal values, so rows that have them share a
                                 call: in a batch, and while the call is made; default ARROYO_UDF_NO */
  uint32_t cache_errors;      /* ARROYO_UDF_YES: `cache` keeps errors, too; default ARROYO_UDF_NO */
  uint64_t cache;             /* most values kept for later rows; only for deterministic functions; default: none */
  uint64_t cache_bytes;       /* most bytes of what is kept, with the arguments and 200 for each value; default 64 MiB */
  uint64_t cache_ttl_ns;      /* how long a value is kept, from the end of its call; default, and UINT64_MAX: as long as
                                 there is room */
  uint32_t rate;              /* most attempts that start in any time of rate_seconds, evenly paced; calls for parts
                                 of a micro-batch count, too. Started functions of one plugin's library, in one
                                 process, share it by name and rate; default no limit */
  uint32_t rate_seconds;      /* default 1 */
  uint32_t adaptive;          /* ARROYO_UDF_YES: the limit of attempts at once adapts, between 1 and allowed_in_flight
                                 (then by default 1,000); default ARROYO_UDF_NO */
  uint32_t reserved;          /* 0 */
} arroyo_udf_options;

/* One function. Its schemas are constants of the plugin with a NULL release: copy them for code that releases them.
 * They may have metadata, such as the names of Arrow's extension types; the value in results has that of `returns`. */
typedef struct arroyo_udf_function {
  uint64_t size;                        /* sizeof(arroyo_udf_function) */
  const char* name;
  uint32_t kind;                        /* ARROYO_UDF_SYNC, ...; of kinds that a host does not know, only `name` counts */
  uint32_t vectorized;                  /* 1: user code gets whole arrays, nulls included */
  const struct ArrowSchema* arguments;  /* a struct ("+s") with one child per argument. A null in a child without
                                           ARROW_FLAG_NULLABLE gives null without a call */
  const struct ArrowSchema* returns;    /* the type of a value */
  const arroyo_udf_options* options;    /* the author's choices; NULL unless it is async */
  const char* documentation;            /* UTF-8; NULL: none */
  uint32_t volatility;                  /* ARROYO_UDF_IMMUTABLE, ..._STABLE or ..._VOLATILE; 0: not said */
  uint32_t reserved;
  uint64_t timeout_ns;                  /* of a sync function, for a batch: only for instances in processes (see
                                           arroyo_udf_isolation); 0: none */
  uint64_t first_step;                  /* of an aggregate: the number of `update`; those of `merge` and `finish` follow */
  uint64_t constants;                   /* bit i: argument number i may come as a constant; see CONSTANTS */
} arroyo_udf_function;

typedef struct arroyo_udf_descriptor {
  uint64_t size;               /* sizeof(arroyo_udf_descriptor) */
  const char* name;            /* for messages */
  const char* language;        /* "python", "rust", "c" */
  const char* toolkit_version; /* of the toolkit that built the plugin */
  const char* hash;            /* of the source and all that went into the build; hexadecimal */
  uint64_t n_functions;
  const arroyo_udf_function* const* functions;
} arroyo_udf_descriptor;

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* What is true of all rows of one batch. */
typedef struct arroyo_udf_batch_context {
  uint64_t size;            /* sizeof(arroyo_udf_batch_context) */
  uint64_t deadline_ns;     /* from the call, for each row; 0: none. If the options have one too, the earlier counts */
  const char* trace_parent; /* of the calls for these rows: a W3C traceparent, at most 255 visible ASCII characters;
                               NULL: none. Copied */
  const uint8_t* idempotency_keys; /* of the calls for these rows: 24 bytes for each row of the batch, in their order,
                               with whatever is there. They say where a row comes from: no two rows of a started function
                               have the same, and a row that is sent again, also after a restart, has its former one.
                               NULL: the lineage and the row's id. Copied */
  uint64_t constants;       /* of `run`. Bit i: argument number i is a constant; only for arguments whose bit the
                               function has set, and not for instances of the isolation extension */
} arroyo_udf_batch_context;

/* How important a line of a log is. */
enum {
  ARROYO_UDF_WARNING = 1 /* a stuck call, a blocked event loop, a Context that is not closed */
};

/* Where a runtime reports what belongs to no row. */
typedef struct arroyo_udf_log {
  uint64_t size; /* sizeof(arroyo_udf_log) */
  /* Takes one report: UTF-8, perhaps of several lines, valid during the call. Called from any thread, one call at a
   * time. It must be short and must not call the plugin. */
  void (*write)(void* data, uint32_t level, const char* text);
  void* data;
} arroyo_udf_log;

/* Counters since start; fields marked "now" are current numbers. */
typedef struct arroyo_udf_statistics {
  uint64_t size;      /* in: sizeof(arroyo_udf_statistics) of the caller; out: the bytes filled in */
  uint64_t accepted;  /* rows accepted by send */
  uint64_t queued;    /* now: rows waiting for an attempt */
  uint64_t running;   /* now: attempts that have not ended, including cancelled and stuck ones */
  uint64_t backing_off; /* now: rows in the pause before another attempt */
  uint64_t held;      /* now: ended rows waiting for an earlier row (ordered) */
  uint64_t ready;     /* now: rows that drain_results would return */
  uint64_t drained;   /* rows returned by drain_results */
  uint64_t values;    /* rows ended, by outcome */
  uint64_t errors;
  uint64_t timed_out;
  uint64_t cancelled;
  uint64_t retries;   /* attempts after a row's first */
  uint64_t stuck;     /* now: attempts that ignore cancellation */
  uint64_t wake_ups;  /* how often the executor was woken from sleep */
  uint64_t blocked;   /* how often the event loop was found blocked while rows waited or ran */
  uint64_t left_behind; /* tasks left running by calls, cancelled at the stop */
  uint64_t discarded; /* completions that came second, or after their row had ended otherwise */
  /* Histogram of the time from the start of a row's first attempt to the row's end, including pauses. latency[i][j]
   * counts rows that took at least (i == 0 ? j : (4 + j) << (i - 1)) * 1,024 ns, and less than the lower bound of the
   * next bucket; the last bucket has no upper bound. Cancelled rows are not counted. Nothing is counted unless a
   * timeout, a deadline, max_wait_ns, a rate, an adaptive limit or retries of errors are set: otherwise the runtime does not read the clock. */
  uint64_t latency[32][4];
  uint64_t latency_max_ns; /* longest such time */
  /* Of deterministic functions: */
  uint64_t waiting;         /* now: rows waiting for the call of a row with equal arguments */
  uint64_t cache_hits;      /* rows that got a kept value */
  uint64_t cache_shared;    /* rows that have waited for the call of another row */
  uint64_t cache_misses;    /* rows with arguments for which there was neither */
  uint64_t cache_evictions; /* values that left to make room */
  uint64_t cache_entries;   /* now: values kept */
  uint64_t cache_bytes;     /* now: their bytes, counted as for the option */
  uint64_t paced;     /* attempts that had to wait for the rate */
  uint64_t limit;     /* now: the most attempts at once */
  uint64_t limit_most; /* the largest value of `limit` */
  uint64_t overloads; /* how often a limit that adapts has fallen because attempts failed */
} arroyo_udf_statistics;

/* ---- The table ------------------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_table {
  uint64_t magic;       /* ARROYO_UDF_MAGIC */
  uint32_t abi_version; /* ARROYO_UDF_ABI_VERSION */
  uint32_t table_size;  /* sizeof(arroyo_udf_table) of the plugin's header */

  /* Describes the plugin. [never waits] Runs no user code and starts no interpreter. NULL: it cannot; refuse it. */
  const arroyo_udf_descriptor* (*describe)(void);

  /* Calls function number `function`, which is neither async nor an aggregate, for a batch. [waits] On OK the plugin has
   * taken `arguments`, and the caller owns `results`: a struct {value} if every row is a value, else {value, outcome:
   * uint8, error: utf8}. *schema is a constant of the plugin. `context` may be NULL; the call is not interrupted at a
   * deadline. */
  arroyo_udf_status (*run)(uint32_t function, struct ArrowArray* arguments, const arroyo_udf_batch_context* context,
                           struct ArrowArray* results, const struct ArrowSchema** schema, arroyo_udf_error* error);

  /* Starts async function number `function`: creates its Context and waits until its init returns. [waits] `options`
   * may be NULL. */
  arroyo_udf_status (*start)(uint32_t function, const arroyo_udf_options* options, arroyo_udf_handle* handle,
                             arroyo_udf_error* error);

  /* Accepts a batch whose rows get the ids first_id, first_id + 1, ... [never waits] Ids must rise from send to send
   * (if several threads send: in the order in which sends are accepted), and may have gaps between sends. first_id plus
   * rows must fit into 64 bits. Else: INVALID_ARGUMENT. After an empty batch, first_id may come again.
   * Accepts the whole batch if fewer rows than max_rows and fewer bytes than max_bytes are held before it; else returns
   * WOULD_BLOCK. Each accepted row comes out of drain_results exactly once. `context` may be NULL. */
  arroyo_udf_status (*send)(arroyo_udf_handle handle, uint64_t first_id, struct ArrowArray* arguments,
                            const arroyo_udf_batch_context* context, arroyo_udf_error* error);

  /* Returns up to max_rows rows that have ended (0: any number). [never waits] One call may return fewer, so call it
   * until WOULD_BLOCK or END. On OK the caller owns `results`: a struct
   * {id: uint64, value, outcome: uint8, attempts: uint16, error: utf8}. *schema is a constant of the plugin.
   * WOULD_BLOCK: none yet. END: no more will come. */
  arroyo_udf_status (*drain_results)(arroyo_udf_handle handle, uint64_t max_rows, struct ArrowArray* results,
                                     const struct ArrowSchema** schema, arroyo_udf_error* error);

  /* Sleeps until the condition (ARROYO_UDF_RESULTS | ARROYO_UDF_ROOM) holds, then returns OK; or until timeout_ns have
   * passed (0: only looks), then returns WOULD_BLOCK. [waits, runs no user code] A stop in another thread ends the
   * sleep. */
  arroyo_udf_status (*wait)(arroyo_udf_handle handle, uint32_t condition, uint64_t timeout_ns,
                            arroyo_udf_error* error);

  /* Requests one call of fn(data) when the condition holds. [never waits] READY: it already holds, and fn will not be
   * called. OK: fn will be called once, from any thread, after the results are visible; also when the runtime stops or
   * is poisoned; perhaps within a call of yours, such as send or drain_results. fn must be short and must not call the
   * plugin. Arming again replaces the former request; READY clears it. */
  arroyo_udf_status (*arm)(arroyo_udf_handle handle, uint32_t condition, void (*fn)(void* data), void* data,
                           arroyo_udf_error* error);

  /* Withdraws the request of arm. After it returns, fn does not run and data is not used. [waits only for a running
   * fn] */
  arroyo_udf_status (*disarm)(arroyo_udf_handle handle, arroyo_udf_error* error);

  /* Cancels those of the rows first_id ... first_id + rows - 1 that have not ended: each comes out as cancelled.
   * Ignores ended rows and ids that were never sent. [never waits] */
  arroyo_udf_status (*cancel)(arroyo_udf_handle handle, uint64_t first_id, uint64_t rows, arroyo_udf_error* error);

  /* Fills in `statistics`; the caller has set its size. [never waits] */
  arroyo_udf_status (*statistics)(arroyo_udf_handle handle, arroyo_udf_statistics* statistics,
                                  arroyo_udf_error* error);

  /* Stops the runtime: refuses further sends, ends all rows (mode ARROYO_UDF_DRAIN or ARROYO_UDF_CANCEL), closes the
   * Context. [waits] Returns within deadline_ns and one second. Afterwards drain_results returns the
   * remaining rows, then END. A second stop returns the same as the first. */
  arroyo_udf_status (*stop_runtime)(arroyo_udf_handle handle, uint32_t mode, uint64_t deadline_ns,
                                    arroyo_udf_error* error);

  /* Ends the handle. A runtime that was not stopped is stopped first (CANCEL, 1 s). Rows not drained are lost.
   * [waits] Returns what stop_runtime returns: OK, STUCK, or why the Context's close failed; the handle has ended
   * anyway. INVALID_STATE: it was none. */
  arroyo_udf_status (*release)(arroyo_udf_handle handle, arroyo_udf_error* error);

  /* Sets the log of a runtime, instead of the former one; NULL: none, as after start. Without a log, nothing is
   * reported. Copies *log. After it returns, the former log is not used; after release, none. [waits only for a running
   * write] */
  arroyo_udf_status (*set_log)(arroyo_udf_handle handle, const arroyo_udf_log* log, arroyo_udf_error* error);

  /* A further table of this plugin, by an id that ends in its version; NULL: this plugin does not have it. [never
   * waits] "isolation/1" is an arroyo_udf_isolation, "native/1" an arroyo_udf_native. */
  const void* (*extension)(const char* id);
} arroyo_udf_table;

/* ---- Isolation: functions in workers ---------------------------------------------------------------------------- */

/* What a worker is. */
enum {
  ARROYO_UDF_SUBINTERPRETER = 1, /* of Python, with a lock of its own: only for plugins in Python, from 3.13 on */
  ARROYO_UDF_PROCESS = 2         /* if it dies, the row in hand is an error, and the next one is started */
};

typedef struct arroyo_udf_isolation_options {
  uint64_t size;         /* sizeof(arroyo_udf_isolation_options) */
  uint32_t mode;         /* ARROYO_UDF_SUBINTERPRETER or ARROYO_UDF_PROCESS */
  uint32_t workers;      /* how many; 0: one */
  uint64_t memory_limit; /* bytes that a process may have of its own; 0: no limit */
  uint64_t cpu_limit;    /* seconds of processor time that a process may use; 0: no limit */
} arroyo_udf_isolation_options;

/* A plugin whose functions run in workers. */
typedef struct arroyo_udf_instance {
  uint64_t size;                 /* in: sizeof(arroyo_udf_instance) of the caller */
  const arroyo_udf_table* table; /* takes the place of the plugin's own table, for all slots but describe */
  uint32_t first;                /* function number n of the plugin is number first + n of this table */
  uint32_t reserved;
} arroyo_udf_instance;

/* The extension "isolation/1". A plugin may be open in several instances, and be called by its own table as well. */
typedef struct arroyo_udf_isolation {
  uint64_t size; /* sizeof(arroyo_udf_isolation) of the plugin's header */

  /* Opens an instance. [waits] It runs the plugin's module in each subinterpreter; processes start when they are needed.
   * Their python is that of $ARROYO_UDF_PYTHON, by default the one that built the plugin. */
  arroyo_udf_status (*open)(const arroyo_udf_isolation_options* options, arroyo_udf_instance* instance,
                            arroyo_udf_error* error);

  /* Ends the workers of an instance. [waits] Its functions answer INVALID_STATE from now on. */
  arroyo_udf_status (*close)(const arroyo_udf_instance* instance, arroyo_udf_error* error);
} arroyo_udf_isolation;

/* ---- Native functions --------------------------------------------------------------------------------------------- */

/* A call of `run_fused`. */
typedef struct arroyo_udf_fused_call {
  uint32_t function;        /* its number. It is native */
  uint32_t is_wanted;       /* ARROYO_UDF_YES: `results` has its values, too; else they are for later calls alone */
  const int32_t* arguments; /* for each argument: n is column number n, -1 - n are the values of call number n, which
                               stands before this one and has the argument's type */
  int32_t condition;        /* the number of a column of bools: where it is not true, no call is made, and the value is
                               null; -1: none */
  uint32_t reserved;
} arroyo_udf_fused_call;

/* The extension "native/1", of a plugin in Python: which of its functions were compiled to C. `run` of these needs no
 * interpreter, unless a row is *deferred*, because its result is Python's to decide. */
typedef struct arroyo_udf_native {
  uint64_t size; /* sizeof(arroyo_udf_native) of the plugin's header */
  uint64_t n_functions;
  const char* const* reasons; /* for each function, why Python runs all its rows; NULL: it is native */

  /* The rows that came in through `run` of function number `function` since the library was opened, and how many of them
   * Python ran. [never waits] For instances of the isolation extension, whose rows Python runs, nothing is counted. */
  void (*count)(uint32_t function, uint64_t* rows, uint64_t* deferred);

  /* Makes calls that take each other's values, in one pass over a batch. [never waits] A row that one of them defers has
   * no values: the host calls `run` for it, of each function, and `count` counts it there alone.
   * `columns` is a struct array that stays the caller's, with a child for each column, of the type of the arguments that
   * take it. On OK the caller owns `results`: for each wanted call, in their order, a struct {value}, null where a row is
   * deferred. `deferred` gets a bit for each row, in whole words of 64; counts[0] gets the number of these rows, and
   * counts[1 + n] the number of other rows in which the value of call number n is null. If all rows are deferred, which
   * is also so if most would be or the columns cannot be read, there are no `results`. */
  arroyo_udf_status (*run_fused)(const arroyo_udf_fused_call* calls, uint32_t n_calls, const struct ArrowArray* columns,
                                 struct ArrowArray* results, uint64_t* deferred, uint64_t* counts,
                                 arroyo_udf_error* error);
} arroyo_udf_native;

/* The only symbol that a plugin must export. */
extern const arroyo_udf_table arroyo_udf_plugin;

/* cffi: end */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
