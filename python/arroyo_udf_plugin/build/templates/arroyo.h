/* The Arroyo engine's symbols for the function ARROYO_FUNCTION of a Python plugin; the end of plugin.c.
 *
 * GUARANTEES  Only `__run` waits for Python: `__start` returns at once, a thread boots the interpreter and executes the
 *             user's module, and the first `__send` is pending until that is done. If it fails, the reason is printed
 *             on standard error, sends return false and drains return errors, as that engine expects.
 * ASSUMES     That engine's promises: for one handle, calls do not overlap, and no future outlives it.
 *
 * The native core (native/runtime/src/arroyo) implements the interface, and documents its layout and rules. */

typedef struct { struct ArrowArray array; struct ArrowSchema schema; } arroyo_array;
typedef struct { arroyo_array *pointer; size_t length, capacity; bool error; } arroyo_arrays;
typedef struct { uint32_t tag; arroyo_array value; } arroyo_run_result;
typedef struct { uint32_t tag; arroyo_arrays data; } arroyo_drain_result;
typedef struct { void *pointer; } arroyo_handle;
typedef struct { uint8_t tag; bool accepted; } arroyo_poll;
typedef struct arroyo_waker arroyo_waker;
typedef struct {
  const arroyo_waker *(*clone)(const arroyo_waker *);
  void (*wake)(const arroyo_waker *);
  void (*wake_by_ref)(const arroyo_waker *);
  void (*drop)(const arroyo_waker *);
} arroyo_waker_functions;
struct arroyo_waker { const arroyo_waker_functions *functions; };
typedef struct { const arroyo_waker *waker; } arroyo_context;
typedef struct {
  void *state;
  arroyo_poll (*poll)(void *, arroyo_context *);
  void (*drop)(void *);
} arroyo_future;
enum { ARROYO_ERR = 1, ARROYO_DATA = 0, ARROYO_NONE = 1, ARROYO_ERROR = 2, ARROYO_READY = 0, ARROYO_PENDING = 1 };

/* arroyo::Table of the core. */
typedef struct {
  arroyo_run_result (*run)(uint32_t function, uint32_t on_error, arroyo_arrays arguments);
  arroyo_handle (*start)(uint32_t function, uint32_t on_error, bool ordered, uint64_t timeout_micros, uint32_t allowed);
  arroyo_future (*send)(arroyo_handle, uint64_t id, arroyo_arrays arguments);
  arroyo_drain_result (*drain_results)(arroyo_handle);
  void (*stop_runtime)(arroyo_handle);
} arroyo_table;

/* NULL: the plugin cannot start; the reason was printed, once. */
static const arroyo_table *arroyo_started(void) {
  static const arroyo_table *known;
  static int reported;
  const arroyo_table *table = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (table) return table;
  if (python_table()) table = opened()->arroyo();
  if (table)
    __atomic_store_n(&known, table, __ATOMIC_RELEASE);
  else if (!__atomic_exchange_n(&reported, 1, __ATOMIC_SEQ_CST)) {
    arroyo_udf_status status;
    bool retryable;
    char *text = why_no_table(&status, &retryable);
    fprintf(stderr, "arroyo-udf: %s\n", text ? text : "out of memory");
    free(text);
  }
  return table;
}

static void arroyo_release(arroyo_arrays arrays) {
  if (!arrays.capacity) return;
  for (size_t i = 0; i < arrays.length; i++) {
    arroyo_array *one = &arrays.pointer[i];
    if (one->array.release) one->array.release(&one->array);
    if (one->schema.release) one->schema.release(&one->schema);
  }
  free(arrays.pointer);
}

#if !ARROYO_STARTS

ARROYO_UDF_EXPORT arroyo_run_result __run(arroyo_arrays arguments) {
  const arroyo_table *table = arroyo_started();
  if (!table) {
    arroyo_release(arguments);
    return (arroyo_run_result){.tag = ARROYO_ERR};
  }
  arroyo_run_result result = table->run(plugin.base + ARROYO_FUNCTION, ARROYO_ON_ERROR, arguments);
  if (plugin.guard_exit) plugin.guard_exit();
  return result;
}

#else

/* A row that was sent before the plugin was ready, or that no runtime will take. */
typedef struct arroyo_early {
  struct arroyo_runtime *runtime;
  uint64_t id;
  arroyo_arrays arguments;
  arroyo_future inner;         /* poll NULL: not sent to the core yet */
  const arroyo_waker *waker;   /* of a row that waits until ready */
  struct arroyo_early *others; /* the next row that waits */
} arroyo_early;

/* Behind a handle. The lock protects what the booting thread changes. */
typedef struct arroyo_runtime {
  pthread_mutex_t lock;
  bool ready;                  /* `table` and `inner` have their final values */
  const arroyo_table *table;   /* NULL: failed */
  arroyo_handle inner;
  bool stopped, booted;        /* by the host, by the thread: the later of them ends it */
  arroyo_early *waiting;
  bool ordered;
  uint64_t timeout_micros;
  uint32_t allowed_in_flight;
} arroyo_runtime;

static void arroyo_end(arroyo_runtime *runtime) {
  if (runtime->table) runtime->table->stop_runtime(runtime->inner);
  pthread_mutex_destroy(&runtime->lock);
  free(runtime);
}

static void *arroyo_boot(void *data) {
  arroyo_runtime *runtime = data;
  const arroyo_table *table = arroyo_started();
  arroyo_handle inner = {NULL};
  if (table)
    inner = table->start(plugin.base + ARROYO_FUNCTION, ARROYO_ON_ERROR, runtime->ordered, runtime->timeout_micros,
                         runtime->allowed_in_flight);
  pthread_mutex_lock(&runtime->lock);
  runtime->table = table;
  runtime->inner = inner;
  __atomic_store_n(&runtime->ready, true, __ATOMIC_RELEASE);
  while (runtime->waiting) {
    arroyo_early *first = runtime->waiting;
    const arroyo_waker *waker = first->waker;
    runtime->waiting = first->others;
    first->waker = NULL;
    pthread_mutex_unlock(&runtime->lock);
    waker->functions->wake(waker); /* host's code, so with no lock held */
    pthread_mutex_lock(&runtime->lock);
  }
  runtime->booted = true;
  bool stopped = runtime->stopped;
  pthread_mutex_unlock(&runtime->lock);
  if (stopped) arroyo_end(runtime);
  return NULL;
}

ARROYO_UDF_EXPORT arroyo_handle __start(bool ordered, uint64_t timeout_micros, uint32_t allowed_in_flight) {
  arroyo_runtime *runtime = calloc(1, sizeof *runtime);
  if (!runtime) return (arroyo_handle){NULL};
  pthread_mutex_init(&runtime->lock, NULL);
  runtime->ordered = ordered;
  runtime->timeout_micros = timeout_micros;
  runtime->allowed_in_flight = allowed_in_flight;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 16 << 20); /* it executes the user's module */
  pthread_t thread;
  int refused = pthread_create(&thread, &attributes, arroyo_boot, runtime);
  pthread_attr_destroy(&attributes);
  if (refused) {
    fprintf(stderr, "arroyo-udf: plugin \"%s\": no thread to start it: %s\n", DESCRIPTOR.name, strerror(refused));
    runtime->ready = runtime->booted = true;
  }
  return (arroyo_handle){runtime};
}

static bool arroyo_is_ready(arroyo_runtime *runtime) { return __atomic_load_n(&runtime->ready, __ATOMIC_ACQUIRE); }

/* Ends the waiting. Returns the host's waker, which must be dropped with no lock held. */
static const arroyo_waker *arroyo_unlink(arroyo_early *early) { /* with the lock */
  const arroyo_waker *waker = early->waker;
  arroyo_early **link = &early->runtime->waiting;
  while (*link && *link != early) link = &(*link)->others;
  if (*link) *link = early->others;
  early->waker = NULL;
  return waker;
}

/* False: the runtime is ready. */
static bool arroyo_wait(arroyo_early *early, arroyo_context *context) {
  arroyo_runtime *runtime = early->runtime;
  const arroyo_waker *mine = context->waker->functions->clone(context->waker);
  pthread_mutex_lock(&runtime->lock);
  const arroyo_waker *unused = arroyo_unlink(early);
  bool waits = !runtime->ready;
  if (waits) {
    early->waker = mine;
    early->others = runtime->waiting;
    runtime->waiting = early;
  }
  pthread_mutex_unlock(&runtime->lock);
  if (unused) unused->functions->drop(unused);
  if (!waits) mine->functions->drop(mine);
  return waits;
}

static arroyo_poll arroyo_poll_early(void *state, arroyo_context *context) {
  arroyo_early *early = state;
  arroyo_runtime *runtime = early->runtime;
  if (!early->inner.poll) {
    if (!arroyo_is_ready(runtime) && arroyo_wait(early, context)) return (arroyo_poll){.tag = ARROYO_PENDING};
    if (!runtime->table) return (arroyo_poll){.tag = ARROYO_READY};
    early->inner = runtime->table->send(runtime->inner, early->id, early->arguments);
  }
  return early->inner.poll(early->inner.state, context);
}

static void arroyo_drop_early(void *state) {
  arroyo_early *early = state;
  if (early->inner.poll) {
    early->inner.drop(early->inner.state);
  } else {
    arroyo_release(early->arguments);
    pthread_mutex_lock(&early->runtime->lock);
    const arroyo_waker *waker = arroyo_unlink(early);
    pthread_mutex_unlock(&early->runtime->lock);
    if (waker) waker->functions->drop(waker);
  }
  free(early);
}

static arroyo_poll arroyo_poll_refused(void *state, arroyo_context *context) {
  (void)state, (void)context;
  return (arroyo_poll){.tag = ARROYO_READY};
}

static void arroyo_drop_refused(void *state) { (void)state; }

ARROYO_UDF_EXPORT arroyo_future __send(arroyo_handle handle, uint64_t id, arroyo_arrays arguments) {
  arroyo_runtime *runtime = handle.pointer;
  if (runtime && arroyo_is_ready(runtime) && runtime->table) return runtime->table->send(runtime->inner, id, arguments);
  arroyo_early *early = runtime ? calloc(1, sizeof *early) : NULL;
  if (!early) {
    arroyo_release(arguments);
    return (arroyo_future){.poll = arroyo_poll_refused, .drop = arroyo_drop_refused};
  }
  *early = (arroyo_early){.runtime = runtime, .id = id, .arguments = arguments};
  return (arroyo_future){.state = early, .poll = arroyo_poll_early, .drop = arroyo_drop_early};
}

ARROYO_UDF_EXPORT arroyo_drain_result __drain_results(arroyo_handle handle) {
  arroyo_runtime *runtime = handle.pointer;
  if (!runtime) return (arroyo_drain_result){.tag = ARROYO_ERROR};
  if (!arroyo_is_ready(runtime)) return (arroyo_drain_result){.tag = ARROYO_NONE};
  if (!runtime->table) return (arroyo_drain_result){.tag = ARROYO_ERROR};
  arroyo_drain_result result = runtime->table->drain_results(runtime->inner);
  if (result.tag == ARROYO_DATA && plugin.guard_exit) plugin.guard_exit();
  return result;
}

ARROYO_UDF_EXPORT void __stop_runtime(arroyo_handle handle) {
  arroyo_runtime *runtime = handle.pointer;
  if (!runtime) return;
  pthread_mutex_lock(&runtime->lock);
  runtime->stopped = true;
  bool booted = runtime->booted;
  pthread_mutex_unlock(&runtime->lock);
  if (booted) arroyo_end(runtime);
}

#endif
