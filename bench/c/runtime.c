/* Async functions as an engine in C sees them: CPU time, latency, idling, memory, the GIL. Prints one JSON object per
 * line: {"name": ..., "value": ...}. Every function takes one int64; at_once and plus_one return it plus one.
 *
 *     cc -O2 -Inative/include bench/c/runtime.c -o runtime -ldl -pthread
 *     ./runtime rows PLUGIN.so                  its function at_once
 *     ./runtime latency PLUGIN.so               its function at_once
 *     ./runtime idle SECONDS PLUGIN.so...       their functions at_once, all started in one process
 *     ./runtime memory PLUGIN.so                its function parked, which waits until it is cancelled
 *     ./runtime handover PLUGIN.so              its functions plus_one (sync), at_once, and spin, which takes turn after
 *                                               turn of the event loop until it is cancelled
 *
 * rows      CPU nanoseconds per row of the whole process, with 1,000 in flight and a timeout. "ordered" and "unordered"
 *           are each printed REPEATS times, alternating; each is one repeat over 25 batches of 8,192 rows. Values and
 *           ids are checked.
 * latency   Microseconds by the wall clock, with nothing else in flight and all threads asleep before: from `send` of
 *           one row until its result is drained ("p50", "p99"), and from sem_post until the waiting thread runs
 *           ("floor_p50", "floor_p99"), which is one wake-up by futex. The two alternate.
 * idle      After one row each, the activity of all threads except the measuring one for SECONDS: context "switches" (at
 *           least one per wake-up) and "cpu" in microseconds.
 * memory    Bytes per row of 100,000 rows that run at once: "native" is memory from malloc, which in Rust and in Python
 *           is the runtime's, because Python allocates small objects elsewhere; "resident" is all memory of the process,
 *           including the function's own.
 * handover  Microseconds by the wall clock of calls that need the GIL while another thread of the interpreter computes
 *           with it: of a sync call, beside a loop that never sleeps ("call_p50", "call_p99"); of a row, from `send` to
 *           its drained result, beside sync calls of 8,192 rows without pause ("row_p50", "row_p99"). "loop_share" and
 *           "calls_share" are the share of one CPU that the other thread got meanwhile. The measuring thread sleeps in
 *           between. */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

enum { BATCH = 8192, BATCHES = 25, REPEATS = 9, SAMPLES = 2000, WARM_UP = 200, HANDOVERS = 1000 };
enum { PARKED = 100000, SPINNING = 1000, VALUES = 1 << 17 };

static const uint64_t FOREVER = UINT64_C(60000000000);

static int64_t all_values[VALUES]; /* 0, 1, ...: a row's value is its id modulo VALUES, so that sending copies nothing */

/* ---- Batches: one small allocation each, freed by release -------------------------------------------------------- */

struct batch {
  struct ArrowArray column, *columns[1];
  const void *column_buffers[2], *buffers[1];
};

static void release_nothing(struct ArrowArray* array) { array->release = NULL; }

static void release_batch(struct ArrowArray* array) {
  array->release = NULL;
  free(array->private_data);
}

/* A batch for the ids first, first + 1, ... */
static struct ArrowArray make_batch(uint64_t first, int64_t rows) {
  struct batch* batch = malloc(sizeof *batch);
  if (batch == NULL || first % VALUES + (uint64_t)rows > VALUES) abort();
  batch->column_buffers[0] = NULL;
  batch->column_buffers[1] = all_values + first % VALUES;
  batch->buffers[0] = NULL;
  batch->column = (struct ArrowArray){
      .length = rows, .n_buffers = 2, .buffers = batch->column_buffers, .release = release_nothing};
  batch->columns[0] = &batch->column;
  return (struct ArrowArray){.length = rows,
                             .n_buffers = 1,
                             .buffers = batch->buffers,
                             .n_children = 1,
                             .children = batch->columns,
                             .release = release_batch,
                             .private_data = batch};
}

static void expect(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static const struct ArrowArray* field(const struct ArrowArray* results, const struct ArrowSchema* schema,
                                      const char* name) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (strcmp(schema->children[i]->name, name) == 0) return results->children[i];
  fprintf(stderr, "results have no field %s\n", name);
  exit(1);
}

/* ---- A started function ----------------------------------------------------------------------------------------- */

struct running {
  const arroyo_udf_table* table;
  arroyo_udf_handle handle;
  uint64_t next_id;   /* to send */
  uint64_t back;      /* rows drained */
  uint64_t id_sum;    /* of the ids drained */
  bool ordered;
};

static struct running start(const char* path, const char* name, uint32_t order, uint32_t in_flight) {
  struct running running = {.table = open_plugin(path), .ordered = order == ARROYO_UDF_ORDERED};
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_options options = {
      .size = sizeof options, .order = order, .allowed_in_flight = in_flight, .timeout_ns = FOREVER};
  check("start", running.table->start(find_function(running.table, name, 1), &options, &running.handle, &error), &error);
  return running;
}

/* False: no room. */
static bool send(struct running* running, int64_t rows) {
  arroyo_udf_error error = {.size = sizeof error};
  struct ArrowArray batch = make_batch(running->next_id, rows);
  const arroyo_udf_status status = running->table->send(running->handle, running->next_id, &batch, NULL, &error);
  if (status == ARROYO_UDF_WOULD_BLOCK) {
    batch.release(&batch);
    return false;
  }
  check("send", status, &error);
  running->next_id += (uint64_t)rows;
  return true;
}

/* Waits for results, drains all, and checks their values and order. */
static void drain(struct running* running) {
  arroyo_udf_error error = {.size = sizeof error};
  struct ArrowArray results;
  const struct ArrowSchema* schema;
  check("wait", running->table->wait(running->handle, ARROYO_UDF_RESULTS, FOREVER, &error), &error);
  check("drain_results", running->table->drain_results(running->handle, 0, &results, &schema, &error), &error);
  const struct ArrowArray *ids = field(&results, schema, "id"), *values = field(&results, schema, "value"),
                          *outcomes = field(&results, schema, "outcome");
  const uint64_t* id = (const uint64_t*)ids->buffers[1] + ids->offset;
  const int64_t* value = (const int64_t*)values->buffers[1] + values->offset;
  const uint8_t* outcome = (const uint8_t*)outcomes->buffers[1] + outcomes->offset;
  bool right = values->null_count == 0;
  for (int64_t i = 0; i < results.length; i++) {
    right = right && outcome[i] == ARROYO_UDF_VALUE && value[i] == (int64_t)(id[i] % VALUES) + 1 &&
            (!running->ordered || id[i] == running->back + (uint64_t)i);
    running->id_sum += id[i];
  }
  expect(right, "a row has the wrong result, or is out of order");
  running->back += (uint64_t)results.length;
  results.release(&results);
}

static arroyo_udf_statistics statistics(const struct running* running) {
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_statistics counted = {.size = sizeof counted};
  check("statistics", running->table->statistics(running->handle, &counted, &error), &error);
  return counted;
}

static void sleep_ns(int64_t time) {
  const struct timespec left = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL);
}

static void until_running(const struct running* running, uint64_t rows) {
  while (statistics(running).running < rows) sleep_ns(1000000);
}

/* Stops the runtime; `rows` rows must be cancelled. PARKED coroutines may take longer than the second that they have to
 * end after their cancellation: then the status is STUCK. */
static void cancel(struct running* running, uint64_t rows) {
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_table* table = running->table;
  arroyo_udf_status status = table->stop_runtime(running->handle, ARROYO_UDF_CANCEL, FOREVER, &error);
  if (rows < PARKED || status != ARROYO_UDF_STUCK) check("stop_runtime", status, &error);
  expect(statistics(running).cancelled == rows, "the number of cancelled rows is wrong");
  status = table->release(running->handle, &error);
  if (rows < PARKED || status != ARROYO_UDF_STUCK) check("release", status, &error);
}

static void finish(struct running* running) {
  expect(running->back == running->next_id, "rows are missing");
  expect(running->id_sum == running->next_id * (running->next_id - 1) / 2, "some rows came twice, others not at all");
  cancel(running, 0);
}

/* ---- Measurements ------------------------------------------------------------------------------------------------ */

static void bench_rows(const char* path) {
  struct running both[2] = {start(path, "at_once", ARROYO_UDF_ORDERED, 1000),
                            start(path, "at_once", ARROYO_UDF_UNORDERED, 1000)};
  for (int repeat = -1; repeat < REPEATS; repeat++) { /* the first warms up */
    for (int order = 0; order < 2; order++) {
      struct running* running = &both[order];
      const int64_t begin = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
      for (int i = 0; i < BATCHES; i++)
        while (!send(running, BATCH)) drain(running);
      while (running->back < running->next_id) drain(running);
      const double spent = (double)(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
      if (repeat >= 0) report(running->ordered ? "ordered" : "unordered", spent / BATCHES / BATCH);
    }
  }
  finish(&both[0]);
  finish(&both[1]);
}

static struct {
  sem_t go, awake;
  double woken; /* when, by the monotonic clock */
} sleeper;

static void* sleep_until_woken(void* unused) {
  (void)unused;
  for (int i = 0; i < WARM_UP + SAMPLES; i++) {
    while (sem_wait(&sleeper.go) != 0) continue;
    sleeper.woken = (double)nanoseconds(CLOCK_MONOTONIC);
    sem_post(&sleeper.awake);
  }
  return NULL;
}

static void bench_latency(const char* path) {
  static double rows[WARM_UP + SAMPLES], floors[WARM_UP + SAMPLES];
  const int64_t pause = 150000; /* until all threads sleep again */
  struct running running = start(path, "at_once", ARROYO_UDF_ORDERED, 0);
  pthread_t thread;
  sem_init(&sleeper.go, 0, 0);
  sem_init(&sleeper.awake, 0, 0);
  expect(pthread_create(&thread, NULL, sleep_until_woken, NULL) == 0, "cannot start a thread");
  for (int i = 0; i < WARM_UP + SAMPLES; i++) {
    sleep_ns(pause);
    const double posted = (double)nanoseconds(CLOCK_MONOTONIC);
    sem_post(&sleeper.go);
    while (sem_wait(&sleeper.awake) != 0) continue;
    floors[i] = (sleeper.woken - posted) / 1e3;
    sleep_ns(pause);
    const int64_t begin = nanoseconds(CLOCK_MONOTONIC);
    expect(send(&running, 1), "an idle function has no room");
    drain(&running);
    rows[i] = (double)(nanoseconds(CLOCK_MONOTONIC) - begin) / 1e3;
  }
  pthread_join(thread, NULL);
  finish(&running);
  report("p50", quantile(rows + WARM_UP, SAMPLES, 0.5));
  report("p99", quantile(rows + WARM_UP, SAMPLES, 0.99));
  report("floor_p50", quantile(floors + WARM_UP, SAMPLES, 0.5));
  report("floor_p99", quantile(floors + WARM_UP, SAMPLES, 0.99));
}

struct activity {
  uint64_t switches;
  uint64_t cpu; /* nanoseconds */
};

/* Of one thread since its start; zero if it has ended. */
static struct activity activity_of(const char* thread) {
  struct activity activity = {0};
  char path[300], line[200];
  unsigned long long count;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
  FILE* file = fopen(path, "r");
  if (file == NULL) return activity;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1 ||
        sscanf(line, "nonvoluntary_ctxt_switches: %llu", &count) == 1)
      activity.switches += count;
  fclose(file);
  snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
  file = fopen(path, "r");
  if (file == NULL) return activity;
  if (fscanf(file, "%llu", &count) == 1) activity.cpu = count;
  fclose(file);
  return activity;
}

/* Of all threads except this one. */
static struct activity activity_of_others(void) {
  struct activity sum = {0};
  DIR* folder = opendir("/proc/self/task");
  expect(folder != NULL, "/proc/self/task cannot be read");
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid()) continue;
    const struct activity activity = activity_of(entry->d_name);
    sum.switches += activity.switches;
    sum.cpu += activity.cpu;
  }
  closedir(folder);
  return sum;
}

static void bench_idle(int seconds, int n, char** paths) {
  struct running running[8];
  expect(n <= 8, "at most 8 plugins");
  for (int i = 0; i < n; i++) {
    running[i] = start(paths[i], "at_once", ARROYO_UDF_ORDERED, 0);
    expect(send(&running[i], 1), "an idle function has no room");
    drain(&running[i]);
  }
  sleep_ns(1000000000); /* until the start and the row have settled */
  const struct activity before = activity_of_others();
  expect(before.switches > 0 && before.cpu > 0, "/proc shows no activity, although threads have run");
  sleep_ns((int64_t)seconds * 1000000000);
  const struct activity after = activity_of_others();
  report("switches", (double)(after.switches - before.switches));
  report("cpu", (double)(after.cpu - before.cpu) / 1e3);
  for (int i = 0; i < n; i++) finish(&running[i]);
}

static double allocated(void) {
  const struct mallinfo2 memory = mallinfo2();
  return (double)(memory.uordblks + memory.hblkhd);
}

static double resident(void) {
  long pages, resident_pages;
  FILE* file = fopen("/proc/self/statm", "r");
  expect(file != NULL && fscanf(file, "%ld %ld", &pages, &resident_pages) == 2, "/proc/self/statm cannot be read");
  fclose(file);
  return (double)resident_pages * (double)sysconf(_SC_PAGESIZE);
}

static void bench_memory(const char* path) {
  struct running running = start(path, "parked", ARROYO_UDF_ORDERED, PARKED);
  expect(send(&running, 1), "an idle function has no room"); /* allocations for the first row do not count */
  until_running(&running, 1);
  const double allocated_before = allocated(), resident_before = resident();
  expect(send(&running, PARKED - 1), "an idle function has no room");
  until_running(&running, PARKED);
  report("native", (allocated() - allocated_before) / (PARKED - 1));
  report("resident", (resident() - resident_before) / (PARKED - 1));
  cancel(&running, PARKED);
}

/* ---- The GIL ---- */

struct calls {
  const arroyo_udf_table* table;
  uint32_t function;
  atomic_bool over;
};

static void call_once(const struct calls* calls, uint64_t first, int64_t rows) {
  struct ArrowArray arguments = make_batch(first, rows), results;
  const struct ArrowSchema* schema;
  arroyo_udf_error error = {.size = sizeof error};
  check("run", calls->table->run(calls->function, &arguments, NULL, &results, &schema, &error), &error);
  const struct ArrowArray* value = field(&results, schema, "value");
  expect(((const int64_t*)value->buffers[1])[value->offset] == (int64_t)first + 1, "plus_one returned a wrong value");
  results.release(&results);
}

static void* call_repeatedly(void* data) {
  struct calls* calls = data;
  while (!atomic_load(&calls->over)) call_once(calls, 0, BATCH);
  return NULL;
}

static double share(const struct activity* before, int64_t begin) {
  return (double)(activity_of_others().cpu - before->cpu) / (double)(nanoseconds(CLOCK_MONOTONIC) - begin);
}

static void bench_handover(const char* path) {
  static double times[HANDOVERS];
  const int64_t pause = 500000; /* until the other thread is busy again */
  struct running running = start(path, "spin", ARROYO_UDF_ORDERED, SPINNING);
  struct calls calls = {.table = running.table, .function = find_function(running.table, "plus_one", 1)};
  expect(send(&running, SPINNING), "an idle function has no room");
  until_running(&running, SPINNING);
  struct activity before = activity_of_others();
  int64_t begin = nanoseconds(CLOCK_MONOTONIC);
  for (int i = 0; i < HANDOVERS; i++) {
    sleep_ns(pause);
    const int64_t called = nanoseconds(CLOCK_MONOTONIC);
    call_once(&calls, (uint64_t)i, 1);
    times[i] = (double)(nanoseconds(CLOCK_MONOTONIC) - called) / 1e3;
  }
  report("loop_share", share(&before, begin));
  report("call_p50", quantile(times, HANDOVERS, 0.5));
  report("call_p99", quantile(times, HANDOVERS, 0.99));
  cancel(&running, SPINNING);

  running = start(path, "at_once", ARROYO_UDF_ORDERED, 0);
  pthread_t thread;
  expect(pthread_create(&thread, NULL, call_repeatedly, &calls) == 0, "cannot start a thread");
  before = activity_of_others();
  begin = nanoseconds(CLOCK_MONOTONIC);
  for (int i = 0; i < HANDOVERS; i++) {
    sleep_ns(pause);
    const int64_t sent = nanoseconds(CLOCK_MONOTONIC);
    expect(send(&running, 1), "an idle function has no room");
    drain(&running);
    times[i] = (double)(nanoseconds(CLOCK_MONOTONIC) - sent) / 1e3;
  }
  report("calls_share", share(&before, begin));
  report("row_p50", quantile(times, HANDOVERS, 0.5));
  report("row_p99", quantile(times, HANDOVERS, 0.99));
  atomic_store(&calls.over, true);
  pthread_join(thread, NULL);
  finish(&running);
}

int main(int argc, char** argv) {
  const char* mode = argc >= 3 ? argv[1] : "";
  for (int64_t i = 0; i < VALUES; i++) all_values[i] = i;
  if (strcmp(mode, "rows") == 0) {
    bench_rows(argv[2]);
  } else if (strcmp(mode, "latency") == 0) {
    bench_latency(argv[2]);
  } else if (strcmp(mode, "idle") == 0) {
    bench_idle(atoi(argv[2]), argc - 3, argv + 3);
  } else if (strcmp(mode, "memory") == 0) {
    bench_memory(argv[2]);
  } else if (strcmp(mode, "handover") == 0) {
    bench_handover(argv[2]);
  } else {
    fprintf(stderr, "usage: %s rows|latency|memory|handover PLUGIN.so, or idle SECONDS PLUGIN.so...\n", argv[0]);
    return 2;
  }
  return 0;
}
